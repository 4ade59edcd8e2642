#pragma once
/// AutoSwap's way (Zhang et al., arXiv 1903.06631): absences by score until the load is below the limit, as if each had
/// the lanes for itself; out as soon as possible, in as late as is in time. Then it shows what that comes to.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "gmlake/swap/chosen.hpp"
#include "gmlake/swap/coverage.hpp"
#include "gmlake/swap/enlist.hpp"
#include "gmlake/swap/pace.hpp"
#include "gmlake/swap/scores.hpp"
#include "gmlake/swap/setting.hpp"
#include "gmlake/swap/simulate.hpp"
#include "gmlake/swap/solution.hpp"

namespace gmlake::swap {

class autoswap {
 public:
  autoswap(setting const& at, score_weights const& w) : at_(at), weights_(w) {}

  /// What the choice for `limit` comes to under it. Nothing where the limit can't be met so.
  [[nodiscard]] std::optional<solution> under(bytes limit) const {
    solution now{schedule_for(limit), {}};
    now.outcome = simulate(at_.program(), now.schedule, at_.channel(), limit);
    if (now.outcome.stuck) return std::nullopt;
    return now;
  }

  /// The lowest peak without a stall, of as many limits between the peak and the least that any schedule may meet.
  [[nodiscard]] solution lowest_peak(unsigned limits = 64) const {
    solution best{{}, simulate(at_.program(), {}, at_.channel())};
    bytes const least = least_limit(at_);
    bytes const span = at_.peak() - least;
    for (unsigned k = 0; k < limits; ++k) {
      solution now{schedule_for(least + span / limits * k), {}};
      now.outcome = simulate(at_.program(), now.schedule, at_.channel());
      if (now.outcome.without_stall() && now.outcome.peak < best.outcome.peak) best = std::move(now);
    }
    return best;
  }

  /// O(absences · log absences + choices · operations), mostly.
  [[nodiscard]] schedule schedule_for(bytes limit) const {
    std::vector<chosen> all = choose(limit);
    return_in_time(all);
    return enlist(at_, pace_of(at_), all);
  }

 private:
  [[nodiscard]] std::vector<chosen> choose(bytes limit) const {
    scores const s(at_, limit, weights_);
    std::vector<bytes> loads = at_.loads();
    excess left(at_, loads, limit);
    auto over = std::ranges::count_if(loads, [&](bytes l) { return l > limit; });
    // Where only a short peak exceeds the limit, all that cover it weigh the same: then the longest absence first.
    std::priority_queue<std::tuple<double, double, std::uint32_t>> ranked;
    for (std::uint32_t k = 0; k < at_.absences().size(); ++k) {
      if (at_.size_of(at_.absences()[k]) < at_.smallest()) continue;
      if (s.duration(k) > 0) ranked.emplace(s.mixed(k, left), s.duration(k), k);
    }
    std::vector<chosen> all;
    while (over > 0 && !ranked.empty()) {
      auto const [score, duration, k] = ranked.top();
      ranked.pop();
      // Scores only fall, so the first that is still as high as it was is the highest.
      double const now = s.mixed(k, left);
      if (now < score) {
        ranked.emplace(now, duration, k);
        continue;
      }
      absence const& a = at_.absences()[k];
      if (left.during(a) <= 0) continue;  // relieves nothing
      for (std::uint32_t i = a.after + 1; i < a.before; ++i) {
        bytes& load = loads[i < at_.size() ? i : i - at_.size()];
        bytes const before = std::exchange(load, load - at_.size_of(a));
        if (before > limit && load <= limit) --over;
      }
      left = excess(at_, loads, limit);
      all.push_back({k, at_.start_of(a.after + 1), at_.start_of(a.before) - at_.in_time(a)});
    }
    return all;
  }

  /// As late as all are in time, the earlier deadline first; twice around, as the step repeats.
  void return_in_time(std::vector<chosen>& all) const {
    auto const deadline = [&](chosen const& c) { return at_.start_of(at_.absences()[c.absence].before % at_.size()); };
    std::ranges::sort(all, [&](chosen const& a, chosen const& b) {
      return std::pair(deadline(a), a.absence) > std::pair(deadline(b), b.absence);
    });
    time free = time::max() / 2;
    for (int round = 0; round < 2; ++round) {
      for (chosen& c : all) {
        absence const& a = at_.absences()[c.absence];
        if (!at_.comes_back(a)) continue;
        free = std::min(free, deadline(c)) - at_.in_time(a);
        c.in = free + (a.before < at_.size() ? time::zero() : at_.step_time());
      }
      free += at_.step_time();
    }
  }

  setting const& at_;
  score_weights weights_;
};

}  // namespace gmlake::swap
