#pragma once
/// What is on the device over a step under a schedule, as a static allocation problem: each stay of a block, from where
/// its memory is taken to where it is given back, is a buffer of its own, as other memory may come under the same
/// address. What packers make of it tells how little memory a schedule's peak fits into.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmlake/plan/problem.hpp"
#include "gmlake/swap/changes.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// Time is counted in changes; steps repeat, so stays wrap. `all`: by `changes_of`. Linear.
[[nodiscard]] inline plan::problem stays_of(program const& p, std::vector<change> const& all) {
  plan::problem made{.buffers = {}, .period = std::max<plan::instant>(1, all.size())};
  std::vector<bool> const at_begin = resident_at_begin(p, all);
  auto const n = static_cast<std::uint32_t>(p.variables.size());
  std::vector<plan::instant> since(n), first_gone(n, made.period);
  std::vector<bool> here = at_begin;
  auto const add = [&](std::uint32_t v, plan::instant from, plan::instant to) {
    if (p.variables[v].size > 0)
      made.buffers.push_back({.lower = from, .upper = to, .size = p.variables[v].size, .fixed = {}});
  };
  for (plan::instant i = 0; i < all.size(); ++i) {
    std::uint32_t const v = all[i].variable;
    if (all[i].takes()) {
      here[v] = true;
      since[v] = i;
    } else if (at_begin[v] && first_gone[v] == made.period) {
      here[v] = false;
      first_gone[v] = i;
    } else {
      here[v] = false;
      add(v, since[v], i);
    }
  }
  for (std::uint32_t v = 0; v < n; ++v) {
    if (!here[v]) continue;
    // It stays over the end of the step, until it first goes in the next.
    if (first_gone[v] == made.period) add(v, 0, made.period);
    else add(v, since[v], made.period + first_gone[v]);
  }
  return made;
}

}  // namespace gmlake::swap
