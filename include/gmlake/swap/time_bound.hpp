#pragma once
/// What no schedule that meets a limit can bring a step's time below. It must not look at any schedule.
///
/// The excess of an operation is its load over the limit: so much is away from its beginning to its end, at least.
///
/// - Out: of operation i's excess, what was last accessed before operation a can have left at any time, and what the
///   host has a copy of takes none. The rest crosses the lane out between the end of a and the beginning of i. What
///   that takes beyond the operations in between is stall, before one of the operations a + 1 to i.
/// - In: likewise what is accessed later than b can come back at any time, and what dies does not come back. The rest
///   crosses the lane in between the end of i and the beginning of b; the stall is before one of i + 1 to b.
/// - Stalls before different operations add up: the most that windows give which share no operation, whichever lane
///   each is about.
/// - Whole step: steps repeat, so a lane carries all that crosses it in a step within a step's time. Where no absence
///   covers two operations, both their excesses cross.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "gmlake/swap/coverage.hpp"
#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

namespace time_bound_parts {

/// Stall of at least `least` before one of the operations `first` to `last`; counted on over the step's end, where
/// `last` lies in this step or the next.
struct window {
  std::int64_t first, last;
  time least;
};

/// What `excess` at operation `i` gives, each window longer and with more stall than the one before. O(n log n).
inline void add_windows(setting const& at, std::uint32_t i, bytes excess, std::vector<window>& windows) {
  std::vector<covering> all = covering_at(at, i);
  bytes free = 0;  // may leave at any time, or without a transfer
  for (covering const& c : all) free += c.size;
  bytes away = free;  // may come back at any time
  time most{};
  // From the shortest window on: the transfers that are sure to fall in it become more.
  std::ranges::sort(all, std::ranges::greater{}, &covering::after);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!all[k].has_copy) free -= all[k].size;
    if (k + 1 < all.size() && all[k + 1].after == all[k].after) continue;
    if (free >= excess) continue;
    std::int64_t const first = all[k].after + 1;
    time const least = at.channel().out.time_of(excess - free) - (at.starts()[i] - at.start_of(first));
    if (least > most) windows.push_back({first, i, most = least});
  }
  most = time::zero();
  std::ranges::sort(all, {}, &covering::before);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].comes_back) away -= all[k].size;
    if (k + 1 < all.size() && all[k + 1].before == all[k].before) continue;
    if (away >= excess) continue;
    std::int64_t const last = all[k].before;
    time const least = at.channel().in.time_of(excess - away) - (at.start_of(last) - at.starts()[i + 1]);
    if (least > most) windows.push_back({i + 1, last, most = least});
  }
}

/// The most that disjoint windows give, of those that do not reach over `cut`. Linear.
[[nodiscard]] inline time most_stall(std::vector<window> const& windows, std::uint32_t cut, std::uint32_t n) {
  std::vector<std::vector<window>> ending(n);  // by the distance of `last` from the cut
  for (window const& w : windows) {
    std::int64_t const length = w.last - w.first;
    std::int64_t const last = (w.last - cut + 2 * std::int64_t{n}) % n;
    if (length <= last) ending[static_cast<std::size_t>(last)].push_back({last - length, last, w.least});
  }
  std::vector<time> best(n + 1, time::zero());  // over windows that end before
  for (std::size_t i = 0; i < n; ++i) {
    best[i + 1] = best[i];
    for (window const& w : ending[i])
      best[i + 1] = std::max(best[i + 1], best[static_cast<std::size_t>(w.first)] + w.least);
  }
  return best[n];
}

/// The least that crosses a lane in a step: the most that excesses add up to, at operations of which no absence covers
/// two. Absences over the step's end are taken to be away for nothing, unless it is one operation. O(n).
[[nodiscard]] inline bytes least_crossing(setting const& at, bytes limit, bool out) {
  std::uint32_t const n = at.size();
  std::vector<bytes> spared(n + 1), over_end(n + 1);  // what needs no transfer; what is over the step's end
  std::vector<std::uint32_t> begins(n + 1, n);        // of the absences that end here, the first operation
  auto const add = [](std::vector<bytes>& to, std::uint32_t from, std::uint32_t until, bytes size) {
    to[from] += size;
    to[until] -= size;
  };
  for (absence const& a : at.absences()) {
    variable const& v = at.program().variables[a.variable];
    bool const spares = out ? v.has_copy : !at.comes_back(a);
    if (a.before <= n) {
      if (spares) add(spared, a.after + 1, a.before, v.size);
      else begins[a.before] = std::min(begins[a.before], a.after + 1);
    } else {
      add(spares ? spared : over_end, a.after + 1, n, v.size);
      add(spares ? spared : over_end, 0, a.before - n, v.size);
    }
  }
  // From here on of those that end here or later.
  for (std::uint32_t i = n; i-- > 0;) begins[i] = std::min(begins[i], begins[i + 1]);
  std::vector<bytes> best(n + 1);
  bytes one = 0, spared_now = 0, over_end_now = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    spared_now += spared[i];
    over_end_now += over_end[i];
    bytes const load = at.loads()[i];
    auto const beyond = [&](bytes without) {
      return load > limit && load - limit > without ? load - limit - without : 0;
    };
    one = std::max(one, beyond(spared_now));
    best[i + 1] = std::max(best[i], best[std::min(i, begins[i + 1])] + beyond(spared_now + over_end_now));
  }
  return std::max(one, best[n]);
}

}  // namespace time_bound_parts

/// How long a step takes at least, whose resident bytes never exceed `limit`. Precondition: some schedule meets it
/// (`least_limit`). Windows are about so many operations, evenly spread, and all peaks of the load between them.
/// O(looks · n log n).
[[nodiscard]] inline time time_bound(setting const& at, bytes limit, std::uint32_t looks = 512) {
  using namespace time_bound_parts;
  std::uint32_t const n = at.size();
  if (n == 0) return time::zero();
  std::vector<window> windows;
  std::uint32_t const stride = n / std::max(looks, 1U) + 1;
  std::vector<bytes> const& loads = at.loads();
  for (std::uint32_t begin = 0; begin < n; begin += stride) {
    auto const end = loads.begin() + std::min(n, begin + stride);
    auto const i = static_cast<std::uint32_t>(std::max_element(loads.begin() + begin, end) - loads.begin());
    if (loads[i] > limit) add_windows(at, i, loads[i] - limit, windows);
  }
  // The step has no beginning: no window reaches over the first operation of one that is among the best.
  constexpr std::size_t cuts = 8;
  std::size_t const most = std::min(cuts, windows.size());
  std::ranges::partial_sort(windows, windows.begin() + static_cast<std::ptrdiff_t>(most), std::ranges::greater{},
                            &window::least);
  time stalled = most_stall(windows, 0, n);
  for (std::size_t k = 0; k < most; ++k) {
    std::int64_t const cut = (windows[k].first + n) % n;
    stalled = std::max(stalled, most_stall(windows, static_cast<std::uint32_t>(cut), n));
  }
  time least = at.step_time() + stalled;
  for (bool const out : {true, false}) {
    bytes const crossing = least_crossing(at, limit, out);
    lane const& through = out ? at.channel().out : at.channel().in;
    if (crossing > 0) least = std::max(least, through.time_of(crossing));
  }
  return least;
}

}  // namespace gmlake::swap
