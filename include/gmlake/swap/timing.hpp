#pragma once
/// When operations begin if nothing holds them up, and the same program on a faster or slower device.

#include <cstdint>
#include <vector>

#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// The beginning of each operation and the step's end, from zero. Linear.
[[nodiscard]] inline std::vector<time> starts_of(program const& p) {
  std::vector<time> starts{time::zero()};
  starts.reserve(p.operations.size() + 1);
  for (time const t : p.operations) starts.push_back(starts.back() + t);
  return starts;
}

/// With operations that take `numerator / denominator` of their time, rounded down.
[[nodiscard]] inline program slowed(program p, std::int64_t numerator, std::int64_t denominator = 1) {
  for (time& t : p.operations) t = t * numerator / denominator;
  return p;
}

}  // namespace gmlake::swap
