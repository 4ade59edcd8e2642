#pragma once
/// Chunks sized by three proportions, so that neither a small pool nor a nearly full one is left with coarse memory:
///
/// - to the pool: what a partly used chunk can waste is a share of the whole;
/// - to the headroom under the limit: the closer the limit, the finer the chunks, down to where the last request fits;
/// - to the run of growths with hardly a free in between, as when a program loads its weights: such memory stays, so it
///   is made in ever larger pieces, which cost next to nothing to create.

#include <algorithm>

#include "gmlake/core/alignment.hpp"
#include "gmlake/grow/growth_policy.hpp"

namespace gmlake {

struct adaptive_options {
  bytes smallest = 20_MiB;             ///< a chunk's size in a small pool
  bytes largest = 32_MiB;              ///< in a large one
  bytes chunks_a_pool = 400;           ///< in between: the pool's size divided by this
  bytes smallest_under_limit = 4_MiB;  ///< with little headroom left
  bytes chunks_in_headroom = 384;      ///< the headroom divided by this bounds every chunk
  bytes largest_in_run = 512_MiB;      ///< while growths follow each other with hardly a free
  bytes runs_a_pool = 256;             ///< and never more than the pool's size divided by this
  bytes frees_break_run = 20;          ///< a run ends when more than the deficit divided by this was freed meanwhile

  /// Chunks of one size throughout.
  [[nodiscard]] static constexpr adaptive_options fixed(bytes size) noexcept {
    return {.smallest = size, .largest = size, .smallest_under_limit = size, .largest_in_run = size};
  }
};

class adaptive_chunks {
 public:
  explicit adaptive_chunks(adaptive_options o = {}) noexcept : options_(o) {}

  [[nodiscard]] bytes chunk_size(growth const& g) noexcept {
    bytes const base = std::clamp(g.reserved / options_.chunks_a_pool, options_.smallest, options_.largest);
    bytes const longest = std::max(base, std::min(options_.largest_in_run, g.reserved / options_.runs_a_pool));
    run_ = g.freed <= g.deficit / options_.frees_break_run ? std::clamp(run_ * 2, base, longest) : base;
    bytes const near_limit = std::max(g.headroom / options_.chunks_in_headroom, options_.smallest_under_limit);
    return std::max(g.granule, align_down(std::min(run_, near_limit), g.granule));
  }
  [[nodiscard]] bool separate() const noexcept { return false; }

 private:
  adaptive_options options_;
  bytes run_ = 0;
};
static_assert(GrowthPolicy<adaptive_chunks>);

}  // namespace gmlake
