#pragma once
/// The least time that is found for a step under a limit. AutoSwap's choices come first. Then several ways to choose
/// take turns, on the pace without stalls first, then on paces between that and the best so far: where stalls are
/// expected, there is time to use. Only what a simulation confirms counts.

#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/swap/autoswap.hpp"
#include "gmlake/swap/chosen.hpp"
#include "gmlake/swap/cover.hpp"
#include "gmlake/swap/coverage.hpp"
#include "gmlake/swap/enlist.hpp"
#include "gmlake/swap/pace.hpp"
#include "gmlake/swap/setting.hpp"
#include "gmlake/swap/simulate.hpp"
#include "gmlake/swap/solution.hpp"
#include "gmlake/swap/time_bound.hpp"
#include "gmlake/swap/ways.hpp"

namespace gmlake::swap {

class least_stall {
 public:
  least_stall(setting const& at, bytes limit) : at_(at), limit_(limit) {}

  /// Nothing where no schedule was found that meets the limit. Deterministic. May be called once.
  [[nodiscard]] std::optional<solution> find() {
    if (limit_ < least_limit(at_)) return std::nullopt;
    keep({{}, simulate(at_.program(), {}, at_.channel(), limit_)});
    bound_ = time_bound(at_, limit_);
    for (score_weights const& w : {score_weights{.doa = 1}, {.aoa = 1}, {.aoa = 0.25, .swdoa = 0.75}}) {
      if (auto scored = autoswap(at_, w).under(limit_)) keep(*std::move(scored));
    }
    ways all(at_);
    pace const plain = pace_of(at_);
    // Those on the pace without stalls first; then each on a pace of its own.
    for (unsigned k = 0; !all.over() && !reached(); ++k) {
      if (k < on_plain_pace || !best_) attempt(plain, all.next());
      else attempt(pace_of(at_, best_->outcome, parts[k % std::size(parts)]), all.next());
    }
    return std::move(best_);
  }

 private:
  static constexpr unsigned on_plain_pace = 6;
  static constexpr std::int64_t parts[] = {1000, 900, 800, 950, 600, 980};  // of the stalls, in thousandths

  [[nodiscard]] bool reached() const { return best_ && best_->outcome.total <= bound_; }

  void attempt(pace const& p, cover_options how) {
    how.may_stall = true;
    auto all = cover(at_, p, how).meet(limit_);
    if (!all) return;
    try_both(p, *all);
    std::size_t const before = all->size();
    thin_out(at_, limit_, *all);
    if (all->size() < before) try_both(p, *all);
  }

  void try_both(pace const& p, std::vector<chosen> const& all) {
    schedule s = enlist(at_, p, all);
    keep({s, simulate(at_.program(), s, at_.channel(), limit_)});
    hasten(at_, limit_, s);
    keep({s, simulate(at_.program(), s, at_.channel(), limit_)});
  }

  void keep(solution s) {
    if (s.outcome.stuck || !s.outcome.settled) return;
    if (!best_ || s.outcome.total < best_->outcome.total) best_ = std::move(s);
  }

  setting const& at_;
  bytes limit_;
  time bound_{};
  std::optional<solution> best_;
};

}  // namespace gmlake::swap
