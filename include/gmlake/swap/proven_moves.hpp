#pragma once
/// Which moves of a plan need no proof that nobody touches what they send away: a plan before it, of the same steps,
/// has made them while what was away was not mapped, and whoever had touched it would have failed.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <vector>

#include "gmlake/swap/step_plan.hpp"

namespace gmlake::swap {

/// By number of `of`'s moves out: whether `before` sends the same block away between the same accesses, and `proven`
/// says of that, by its number, that it need not be proven either. Throws `std::bad_alloc`. O(n log n).
template <std::predicate<std::size_t> Proven>
[[nodiscard]] std::vector<bool> proven_moves(step_plan const& of, step_plan const& before, Proven proven) {
  auto const gap = [](planned_out const& o) { return std::tuple(o.variable, o.after, o.before); };
  std::vector<decltype(gap(planned_out{}))> known;
  for (std::size_t i = 0; i < before.moves().outs.size(); ++i) {
    if (proven(i)) known.push_back(gap(before.moves().outs[i]));
  }
  std::ranges::sort(known);
  std::vector<bool> made;
  made.reserve(of.moves().outs.size());
  for (planned_out const& o : of.moves().outs) {
    made.push_back(of.who(o.variable) == before.who(o.variable) && std::ranges::binary_search(known, gap(o)));
  }
  return made;
}

}  // namespace gmlake::swap
