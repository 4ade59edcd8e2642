#pragma once
/// Steps in which some contents are made again instead of brought back (TENSILE, arXiv 2105.13336, recomputes where
/// swapping can't help): each absence that is bridged so splits its variable in two, and the operation that accesses it
/// next takes longer. What comes out is a program like any other, with schedules and bounds of its own.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/swap/absence.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

/// The absences at whose end contents may be made again in less time than the channel takes for them, those first that
/// take the device the least time for what they spare the channel. Of what is carried those over the step's end only:
/// the rest of it would be in two pieces that are one. O(n log n).
[[nodiscard]] inline std::vector<absence> worth_recomputing(setting const& at) {
  std::uint32_t const n = at.size();
  std::vector<std::pair<double, absence>> all;
  for (absence const& a : at.absences()) {
    variable const& v = at.program().variables[a.variable];
    if (!at.comes_back(a) || v.has_copy || v.size < at.smallest() || (v.carried && a.before < n)) continue;
    auto const next = std::ranges::lower_bound(v.accesses, a.before % n, {}, &access::operation);
    time const spared = std::max(at.in_time(a), at.out_time(a));
    if (!next->recomputable || v.recompute >= spared) continue;
    all.emplace_back(static_cast<double>(v.recompute.count()) / static_cast<double>(spared.count()), a);
  }
  std::ranges::stable_sort(all, {}, [](auto const& x) { return x.first; });
  std::vector<absence> sorted;
  sorted.reserve(all.size());
  for (auto const& [cost, a] : all) sorted.push_back(a);
  return sorted;
}

struct recomputed_program {
  swap::program program;
  std::vector<std::uint32_t> of;   ///< by variable: which of the original's it is a part of
  std::vector<absence> discarded;  ///< by the parts before them
};

/// `p` with these absences bridged. Precondition: `worth_recomputing` has them, for it. O(n log n).
[[nodiscard]] inline recomputed_program recompute(program const& p, std::span<absence const> which) {
  auto const n = static_cast<std::uint32_t>(p.operations.size());
  std::vector<absence> discarded(which.begin(), which.end());
  std::ranges::sort(discarded, {}, [](absence const& a) { return std::pair(a.variable, a.after); });
  recomputed_program made;
  made.program.operations = p.operations;
  made.program.launched = p.launched;
  auto next = discarded.begin();
  for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
    variable const& whole = p.variables[v];
    variable part = whole;
    auto const add = [&] {
      made.program.variables.push_back(part);
      made.of.push_back(v);
    };
    auto first = whole.accesses.begin();
    for (; next != discarded.end() && next->variable == v; ++next) {
      made.program.operations[next->before % n] += whole.recompute;
      made.discarded.push_back({static_cast<std::uint32_t>(made.of.size()), next->after, next->before});
      if (whole.carried) {  // over the step's end
        part.carried = false;
        part.birth = next->before - n;
        part.death = next->after + 1;
        continue;
      }
      auto const end = std::ranges::upper_bound(first, whole.accesses.end(), next->after, {}, &access::operation);
      part.accesses.assign(first, end);
      part.death = next->after + 1;
      add();
      first = end;
      part.birth = next->before;
      part.death = whole.death;
      part.accesses.assign(first, whole.accesses.end());
    }
    add();
  }
  return made;
}

}  // namespace gmlake::swap
