#pragma once
/// From what was chosen, with times, to a schedule, which knows only operations and orders. Two ways back: as late as
/// was reserved, or as early as there is room.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "gmlake/swap/chosen.hpp"
#include "gmlake/swap/pace.hpp"
#include "gmlake/swap/room.hpp"
#include "gmlake/swap/schedule.hpp"
#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

/// Transfers in the order of their times; a way back may begin with the operation that runs at its time. O(n log n).
[[nodiscard]] inline schedule enlist(setting const& at, pace const& p, std::vector<chosen> const& all) {
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t k) { return std::pair(all[k].out, k); });
  schedule made;
  std::vector<time> back;
  for (std::uint32_t const k : order) {
    absence const& a = at.absences()[all[k].absence];
    std::uint32_t low = a.after + 1, high = a.before;  // the first that is not over by then
    while (low < high) {
      std::uint32_t const middle = low + (high - low) / 2;
      if (p.end_of(middle) > all[k].in) high = middle;
      else low = middle + 1;
    }
    made.moves.push_back({a, low});
    back.push_back(all[k].in - (a.before < at.size() ? time::zero() : p.step));
  }
  for (std::uint32_t m = 0; m < made.moves.size(); ++m) {
    if (at.comes_back(made.moves[m].away)) made.returns.push_back(m);
  }
  std::ranges::sort(made.returns, {}, [&](std::uint32_t m) { return std::pair(back[m], m); });
  return made;
}

/// Leaves out what `limit` does not need to be away, transfers aside; the largest first. O(n log n).
inline void thin_out(setting const& at, bytes limit, std::vector<chosen>& all) {
  room free(at.loads(), limit);
  auto const away = [&](chosen const& c) -> absence const& { return at.absences()[c.absence]; };
  for (chosen const& c : all) free.give(away(c).after + 1, away(c).before, at.size_of(away(c)));
  std::ranges::stable_sort(all, std::ranges::greater{}, [&](chosen const& c) { return at.size_of(away(c)); });
  std::erase_if(all, [&](chosen const& c) {
    absence const& a = away(c);
    bytes const size = at.size_of(a);
    if (free.least(a.after + 1, a.before) < static_cast<std::int64_t>(size)) return false;
    free.take(a.after + 1, a.before, size);
    return true;
  });
}

/// Lets everything come back as early as it can without taking room that an operation needs under `limit`, in the order
/// in which it is accessed. O(n log n).
inline void hasten(setting const& at, bytes limit, schedule& s) {
  std::uint32_t const n = at.size();
  auto const due = [&](std::uint32_t m) { return s.moves[m].away.before % n; };
  std::ranges::stable_sort(s.returns, {}, due);
  room free(at.loads(), limit);
  for (move const& m : s.moves) free.give(m.away.after + 1, m.away.before, at.size_of(m.away));
  std::int64_t from = -std::int64_t{n};  // of the return before, in the step of the returns
  for (std::uint32_t const r : s.returns) {
    move& m = s.moves[r];
    std::int64_t const shift = m.away.before < n ? 0 : n;
    from = std::max(from + shift, std::int64_t{m.away.after} + 1);
    m.from =
        std::min(free.first_with(static_cast<std::uint32_t>(from), m.away.before, at.size_of(m.away)), m.away.before);
    free.take(m.from, m.away.before, at.size_of(m.away));
    from = std::int64_t{m.from} - shift;
  }
}

}  // namespace gmlake::swap
