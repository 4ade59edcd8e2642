#pragma once
/// The step that stands for a trace: the one that comes most often, with the times that its operations usually take.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "gmlake/swap/load.hpp"
#include "gmlake/trace/programs.hpp"

namespace gmlake::trace {

struct typical_step {
  swap::program program;   ///< each operation takes the median of its times in the steps alike
  std::size_t first = 0;   ///< of the steps alike, counted from 0
  std::size_t alike = 0;   ///< how many they are
  std::size_t others = 0;  ///< steps that do something else
};

namespace detail {

/// The lower one of an even number.
[[nodiscard]] inline swap::time median(std::vector<swap::time>& of) {
  auto const middle = of.begin() + static_cast<std::ptrdiff_t>((of.size() - 1) / 2);
  std::ranges::nth_element(of, middle);
  return *middle;
}

}  // namespace detail

/// Of those that come equally often, the one with the highest peak, the first of equals. Nothing where no step has
/// operations. O(n log n) in the operations and accesses of all steps.
[[nodiscard]] inline std::optional<typical_step> typical_step_of(std::vector<step_program> const& steps) {
  std::map<std::uint64_t, std::vector<std::size_t>> kinds;  // positions, by fingerprint
  std::size_t all = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].program.operations.empty()) continue;
    kinds[fingerprint(steps[k].program)].push_back(k);
    ++all;
  }
  std::vector<std::size_t> const* best = nullptr;
  auto const rank = [&](std::vector<std::size_t> const& kind) {
    swap::program const& p = steps[kind.front()].program;
    return std::tuple(kind.size(), swap::peak_of(swap::loads_of(p)), ~kind.front());
  };
  for (auto const& [_, kind] : kinds) {
    if (best == nullptr || rank(kind) > rank(*best)) best = &kind;
  }
  if (best == nullptr) return std::nullopt;
  typical_step made{steps[best->front()].program, best->front(), best->size(), all - best->size()};
  std::vector<swap::time> times(best->size());
  for (std::size_t i = 0; i < made.program.operations.size(); ++i) {
    std::ranges::transform(*best, times.begin(), [&](std::size_t k) { return steps[k].program.operations[i]; });
    made.program.operations[i] = detail::median(times);
  }
  return made;
}

}  // namespace gmlake::trace
