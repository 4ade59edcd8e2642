#pragma once
/// How large the chunks of movable blocks are best: mappings take a time for each, and a block wastes the rest of its
/// last one. Where a step's blocks are multiples of large ones, as those of transformers often are, these waste
/// nothing.

#include <algorithm>

#include "gmlake/swap/load.hpp"
#include "gmlake/swap/step_log.hpp"

namespace gmlake::swap {

inline constexpr bytes largest_chosen_chunk = 16_MiB;

/// The largest that is the present size times a power of two, and by which a logged step's peak is higher than by
/// that by a share of `worth` at the most. Precondition: the log is complete. Throws `std::bad_alloc`. Linear.
[[nodiscard]] inline bytes chunk_for(step_log const& log, block_counting const& present, double worth) {
  auto const peak_by = [&](bytes chunk) {
    return static_cast<double>(peak_of(loads_of(log.program({present.smallest, chunk}).program)));
  };
  bytes best = present.chunk;
  if (log.operations() == 0) return best;
  double const most = peak_by(present.chunk) * (1 + worth);
  for (bytes chunk = 2 * best; chunk <= largest_chosen_chunk && peak_by(chunk) <= most; chunk *= 2) best = chunk;
  return best;
}

}  // namespace gmlake::swap
