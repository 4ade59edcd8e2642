#pragma once
/// The steps that stand for a trace: the one that comes most often, or all that come again, with the times that their
/// operations usually take.

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

/// The steps that do the same, by position.
using step_kind = std::vector<std::size_t>;

/// In the order in which they first come; steps without operations are none.
[[nodiscard]] inline std::vector<step_kind> kinds_of(std::vector<step_program> const& steps) {
  std::map<std::uint64_t, std::size_t> numbers;  // by fingerprint
  std::vector<step_kind> kinds;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].program.operations.empty()) continue;
    auto const [found, is_new] = numbers.try_emplace(fingerprint(steps[k].program), kinds.size());
    if (is_new) kinds.emplace_back();
    kinds[found->second].push_back(k);
  }
  return kinds;
}

[[nodiscard]] inline auto most_frequent(std::vector<step_kind> const& kinds, std::vector<step_program> const& steps) {
  return std::ranges::max_element(kinds, {}, [&](step_kind const& kind) {
    swap::program const& p = steps[kind.front()].program;
    return std::tuple(kind.size(), swap::peak_of(swap::loads_of(p)), ~kind.front());
  });
}

[[nodiscard]] inline typical_step made_typical(step_kind const& kind, std::vector<step_program> const& steps) {
  auto const all = static_cast<std::size_t>(
      std::ranges::count_if(steps, [](step_program const& s) { return !s.program.operations.empty(); }));
  typical_step made{steps[kind.front()].program, kind.front(), kind.size(), all - kind.size()};
  std::vector<swap::time> times(kind.size());
  for (std::size_t i = 0; i < made.program.operations.size(); ++i) {
    std::ranges::transform(kind, times.begin(), [&](std::size_t k) { return steps[k].program.operations[i]; });
    made.program.operations[i] = median(times);
  }
  return made;
}

/// By id.
[[nodiscard]] inline std::vector<std::uint32_t> carried_by(step_program const& s) {
  std::vector<std::uint32_t> carried;
  for (std::size_t v = 0; v < s.allocations.size(); ++v) {
    if (s.program.variables[v].carried) carried.push_back(s.allocations[v]);
  }
  return carried;
}

}  // namespace detail

/// Those that come twice or more, in the order in which they first come, and carry what the typical step does, which is
/// among them; it alone where none comes twice. Empty where no step has operations. O(n log n) likewise.
[[nodiscard]] inline std::vector<typical_step> recurring_steps_of(std::vector<step_program> const& steps) {
  std::vector<detail::step_kind> const kinds = detail::kinds_of(steps);
  auto const typical = detail::most_frequent(kinds, steps);
  std::vector<typical_step> made;
  if (typical == kinds.end()) return made;
  auto const carried = detail::carried_by(steps[typical->front()]);
  for (auto k = kinds.begin(); k != kinds.end(); ++k) {
    bool const recurs = k->size() > 1 && detail::carried_by(steps[k->front()]) == carried;
    if (k == typical || recurs) made.push_back(detail::made_typical(*k, steps));
  }
  return made;
}

/// Of those that come equally often, the one with the highest peak, the first of equals. Nothing where no step has
/// operations. O(n log n) in the operations and accesses of all steps.
[[nodiscard]] inline std::optional<typical_step> typical_step_of(std::vector<step_program> const& steps) {
  std::vector<detail::step_kind> const kinds = detail::kinds_of(steps);
  auto const typical = detail::most_frequent(kinds, steps);
  if (typical == kinds.end()) return std::nullopt;
  return detail::made_typical(*typical, steps);
}

}  // namespace gmlake::trace
