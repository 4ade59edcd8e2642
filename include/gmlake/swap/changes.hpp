#pragma once
/// What comes to device memory and goes from it over a step under a schedule, in order: the simulation's outcome as a
/// list that a pool can act on and a chart can draw. Steps repeat, so the list is a circle: what it begins with, the
/// step finds as the list's end has left it.
///
///     born    before its first operation     left      its copy is whole, its memory free
///     dead    after its last one, or when    returns   memory is taken, and the way back begins
///             it has left for good

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmlake/swap/absence.hpp"
#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/outcome.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/schedule.hpp"

namespace gmlake::swap {

enum class change_kind : std::uint8_t { left, dead, born, returns };

struct change {
  time at{};  ///< from the step's beginning
  change_kind kind = change_kind::born;
  std::uint32_t variable = 0;

  [[nodiscard]] constexpr bool takes() const noexcept {
    return kind == change_kind::born || kind == change_kind::returns;
  }
};

/// What is carried is neither born nor dead. At one time, what leaves goes before all else and what returns comes last.
/// Preconditions: all are well-formed and belong together, and the outcome has settled. O(n log n).
[[nodiscard]] inline std::vector<change> changes_of(program const& p, schedule const& s, channel const& c,
                                                    outcome const& o) {
  auto const end = static_cast<std::uint32_t>(p.operations.size());
  auto const whole_at = [&](std::uint32_t m) {
    variable const& v = p.variables[s.moves[m].away.variable];
    return o.ways_out[m] + (v.has_copy ? time::zero() : c.out.time_of(v.size));
  };
  std::vector<change> all;
  std::vector<bool> leaves_for_good(p.variables.size());
  for (std::uint32_t m = 0; m < s.moves.size(); ++m) {
    std::uint32_t const v = s.moves[m].away.variable;
    if (comes_back(p, s.moves[m].away)) continue;
    leaves_for_good[v] = true;
    all.push_back({std::min(whole_at(m), o.total), change_kind::dead, v});
  }
  std::vector<std::vector<std::uint32_t>> born(end + 1), dead(end + 1);
  for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
    if (p.variables[v].carried) continue;
    born[p.variables[v].birth].push_back(v);
    if (!leaves_for_good[v]) dead[p.variables[v].death].push_back(v);
  }
  for (std::uint32_t i = 0; i <= end; ++i) {  // operations that take no time keep their order so
    time const over = i == 0 ? time::zero() : o.starts[i - 1] + p.operations[i - 1];
    for (std::uint32_t const v : dead[i]) all.push_back({over, change_kind::dead, v});
    for (std::uint32_t const v : born[i]) all.push_back({o.starts[i], change_kind::born, v});
  }
  for (std::uint32_t m = 0; m < s.moves.size(); ++m) {
    if (!comes_back(p, s.moves[m].away)) continue;
    all.push_back({whole_at(m) % o.total, change_kind::left, s.moves[m].away.variable});
    all.push_back({o.ways_back[m], change_kind::returns, s.moves[m].away.variable});
  }
  auto const rank = [](change const& x) {
    return x.kind == change_kind::left ? 0 : x.kind == change_kind::returns ? 2 : 1;
  };
  std::ranges::stable_sort(
      all, [&](change const& a, change const& b) { return a.at != b.at ? a.at < b.at : rank(a) < rank(b); });
  return all;
}

/// By variable: whether it has memory as a step begins. Of what is carried, all but what returns before it leaves.
[[nodiscard]] inline std::vector<bool> resident_at_begin(program const& p, std::vector<change> const& all) {
  std::vector<bool> resident, seen(p.variables.size());
  for (variable const& v : p.variables) resident.push_back(v.carried);
  for (change const& c : all) {
    if (seen[c.variable]) continue;
    seen[c.variable] = true;
    resident[c.variable] = !c.takes();
  }
  return resident;
}

}  // namespace gmlake::swap
