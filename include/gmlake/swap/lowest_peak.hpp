#pragma once
/// The lowest peak that is found without any stall. AutoSwap's choices come first. Then several ways to choose take
/// turns; each gets a limit just below the best peak so far, and where it meets that, the lowest it meets by halving.
/// Only what a simulation confirms counts.

#include <utility>

#include "gmlake/swap/autoswap.hpp"
#include "gmlake/swap/cover.hpp"
#include "gmlake/swap/enlist.hpp"
#include "gmlake/swap/pace.hpp"
#include "gmlake/swap/peak_bound.hpp"
#include "gmlake/swap/setting.hpp"
#include "gmlake/swap/simulate.hpp"
#include "gmlake/swap/solution.hpp"
#include "gmlake/swap/ways.hpp"

namespace gmlake::swap {

class lowest_peak {
 public:
  explicit lowest_peak(setting const& at) : at_(at), pace_(pace_of(at)) {}

  /// Never stalls; the empty schedule where nothing helps. Deterministic. May be called once.
  [[nodiscard]] solution find() {
    best_.outcome = simulate(at_.program(), {}, at_.channel());
    if (at_.absences().empty()) return std::move(best_);
    bound_ = peak_bound(at_);
    for (score_weights const& w : {score_weights{.doa = 1}, {.aoa = 1}}) {
      solution scored = autoswap(at_, w).lowest_peak(limits_a_score);
      if (scored.outcome.peak < best_.outcome.peak) best_ = std::move(scored);
    }
    for (ways all(at_); !all.over() && best_.outcome.peak > bound_;) lower(all.next());
    return std::move(best_);
  }

 private:
  static constexpr bytes worth_trying = 2000;  // of the peak, one part
  static constexpr unsigned limits_a_score = 64;

  void lower(cover_options const& how) {
    bytes const step = best_.outcome.peak / worth_trying + 1;
    if (bound_ + step > best_.outcome.peak || !meet(how, best_.outcome.peak - step)) return;
    for (bytes low = bound_; low + step <= best_.outcome.peak;) {
      bytes const limit = low + (best_.outcome.peak - 1 - low) / 2;
      if (!meet(how, limit)) low = limit + 1;
    }
  }

  /// Whether the peak became lower.
  bool meet(cover_options const& how, bytes limit) {
    auto const all = cover(at_, pace_, how).meet(limit);
    if (!all) return false;
    solution now{enlist(at_, pace_, *all), {}};
    for (bytes const l : {limit, no_limit}) {
      now.outcome = simulate(at_.program(), now.schedule, at_.channel(), l);
      if (now.outcome.without_stall() && now.outcome.peak < best_.outcome.peak) {
        best_ = std::move(now);
        return true;
      }
    }
    return false;
  }

  setting const& at_;
  pace pace_;
  bytes bound_ = 0;
  solution best_;
};

}  // namespace gmlake::swap
