#pragma once
/// What no schedule without stalls can bring the peak below. It must not look at any schedule.
///
/// Without stalls every operation begins when it always does. So what is away at an instant has crossed the lane out
/// between its last access and the instant, and will cross the lane in between the instant and its next access:
///
///     - of the variables last accessed at r or later, no more than the lane carries from r to the instant;
///     - of those next accessed at d or sooner, unless they die first, no more than the lane carries from the instant
///       to d;
///     - of the others, no more than their size.
///
/// For every r and d the three add up to a bound on the bytes away, as every variable is in one of them at least; the
/// least of them is the maximum flow through the two chains of constraints, by its minimum cut. The load less what is
/// away is resident, and the peak is no less than that at any instant.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gmlake/swap/coverage.hpp"
#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

namespace peak_bound_parts {

/// Weights on a line of costs, and the least of cost and weights to the right of it.
class cut_line {
 public:
  static constexpr bytes unreachable = static_cast<bytes>(-1) / 4;  ///< sums of it and sizes don't overflow

  explicit cut_line(std::vector<bytes> const& costs)
      : leaves_(std::bit_ceil(costs.size())), least_(2 * leaves_, unreachable), sums_(2 * leaves_) {
    std::ranges::copy(costs, least_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t k = leaves_ - 1; k > 0; --k) update(k);
  }

  /// Adds `weight` to all costs left of `position`. O(log n).
  void add_before(std::size_t position, bytes weight) {
    std::size_t k = leaves_ + position;
    sums_[k] += weight;
    while (k /= 2) update(k);
  }

  [[nodiscard]] bytes least() const noexcept { return least_[1]; }

 private:
  void update(std::size_t k) noexcept {
    sums_[k] = sums_[2 * k] + sums_[2 * k + 1];
    least_[k] = std::min(least_[2 * k] + sums_[2 * k + 1], least_[2 * k + 1]);
  }

  std::size_t leaves_;
  std::vector<bytes> least_, sums_;
};

/// The most bytes of `all` that can be away at `instant`. O(n log n). Sorts them.
[[nodiscard]] inline bytes most_away(setting const& at, std::vector<covering>& all, time instant) {
  std::ranges::sort(all, {}, &covering::before);
  std::vector<bytes> costs{0};  // of cutting the lane in at no deadline, at the first, ...; and what has none
  std::vector<std::size_t> deadline_rank(at.absences().size());
  std::int64_t last = -1;
  for (covering const& c : all) {
    if (!c.comes_back) continue;
    if (c.before != last) costs.push_back(at.channel().in.most_in(at.start_of(last = c.before) - instant));
    deadline_rank[c.absence] = costs.size() - 1;
  }
  costs.push_back(cut_line::unreachable);
  for (covering const& c : all) {
    if (!c.comes_back) deadline_rank[c.absence] = costs.size() - 1;
  }
  cut_line line(costs);
  // What the host has a copy of does not cross the lane out.
  auto const middle = std::stable_partition(all.begin(), all.end(), [](covering const& c) { return c.has_copy; });
  for (auto c = all.begin(); c != middle; ++c) line.add_before(deadline_rank[c->absence], c->size);
  std::sort(middle, all.end(), [](covering const& a, covering const& b) { return a.after < b.after; });
  bytes most = static_cast<bytes>(-1);
  for (auto c = middle; c != all.end(); ++c) {
    if (c == middle || c->after != (c - 1)->after) {
      most = std::min(most, line.least() + at.channel().out.most_in(instant - at.start_of(c->after + 1)));
    }
    line.add_before(deadline_rank[c->absence], c->size);
  }
  return std::min(most, line.least());
}

/// The least that is resident at some instant of operation `i`, at its beginning and its end: the larger.
[[nodiscard]] inline bytes least_resident(setting const& at, std::uint32_t i) {
  std::vector<covering> all = covering_at(at, i);
  bytes const load = at.loads()[i];
  bytes const at_begin = load - most_away(at, all, at.starts()[i]);
  return std::max(at_begin, load - most_away(at, all, at.starts()[i + 1]));
}

}  // namespace peak_bound_parts

/// Bytes. Looks at so many operations, 2 at least: all those that may decide, or half of them at the highest loads and
/// the others spread over the rest. O(looks · n log n).
[[nodiscard]] inline bytes peak_bound(setting const& at, std::uint32_t looks = 4096) {
  looks = std::max(looks, 2U);
  std::vector<std::uint32_t> order(at.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, std::ranges::greater{}, [&](std::uint32_t i) { return at.loads()[i]; });
  bytes best = least_limit(at);
  std::uint32_t const dense = looks / 2;
  std::uint32_t const stride = at.size() <= looks ? 1 : (at.size() - dense) / (looks - dense) + 1;
  for (std::size_t k = 0; k < order.size(); k += k < dense ? 1 : stride) {
    if (at.loads()[order[k]] <= best) break;  // so are all that follow
    best = std::max(best, peak_bound_parts::least_resident(at, order[k]));
  }
  return best;
}

}  // namespace gmlake::swap
