#pragma once
/// What leaves in a step, and when it comes back. Transfers of one direction follow one another in the schedule's
/// order; a runtime needs to know about operations only, never about time.
///
/// Invariants (`find_fault`): every move is one of the program's absences, none twice, and `returns` has each of those
/// that come back once.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gmlake/swap/absence.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

struct move {
  absence away;
  /// Its way back, if it has one, begins when all operations before this one are over, at the earliest; after
  /// `away.after`, and not after `away.before`.
  std::uint32_t from = 0;
};

struct schedule {
  std::vector<move> moves;             ///< in the order in which they leave
  std::vector<std::uint32_t> returns;  ///< positions in `moves`, in the order in which they come back within a step
};

/// Bytes a step, each way.
struct traffic {
  bytes out = 0;
  bytes in = 0;
};

[[nodiscard]] inline traffic traffic_of(program const& p, schedule const& s) noexcept {
  traffic sum;
  for (move const& m : s.moves) {
    variable const& v = p.variables[m.away.variable];
    if (comes_back(p, m.away)) sum.in += v.size;
    if (!v.has_copy) sum.out += v.size;
  }
  return sum;
}

/// Null, or the invariant that is broken. O(n log n).
[[nodiscard]] inline char const* find_fault(program const& p, schedule const& s) {
  auto const less = [](absence const& a, absence const& b) {
    return std::pair(a.variable, a.after) < std::pair(b.variable, b.after);
  };
  std::vector<absence> const all = absences_of(p);
  std::vector<absence> moved;
  for (move const& m : s.moves) {
    auto const same = std::ranges::lower_bound(all, m.away, less);
    if (same == all.end() || *same != m.away) return "a move is an absence of the program";
    if (m.from <= m.away.after || m.from > m.away.before) return "a way back begins while the variable is away";
    moved.push_back(m.away);
  }
  std::ranges::sort(moved, less);
  if (std::ranges::adjacent_find(moved) != moved.end()) return "a variable leaves once between two accesses";
  auto const back_at_all = std::ranges::count_if(s.moves, [&](move const& m) { return comes_back(p, m.away); });
  if (std::cmp_not_equal(s.returns.size(), back_at_all)) return "what leaves comes back, unless it dies";
  std::vector<bool> back(s.moves.size());
  for (std::uint32_t const r : s.returns) {
    if (r >= back.size() || back[r]) return "what leaves comes back once";
    if (!comes_back(p, s.moves[r].away)) return "what dies does not come back";
    back[r] = true;
  }
  return nullptr;
}

}  // namespace gmlake::swap
