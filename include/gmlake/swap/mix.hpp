#pragma once
/// AutoSwap's mix of scores with the weights that come out best when its schedules are replayed, as the paper (Zhang et
/// al., arXiv 1903.06631) has Bayesian optimization find them. Here a grid is tried, and then what lies around the
/// best.

#include <algorithm>
#include <concepts>
#include <optional>
#include <utility>

#include "gmlake/swap/autoswap.hpp"
#include "gmlake/swap/scores.hpp"
#include "gmlake/swap/setting.hpp"
#include "gmlake/swap/solution.hpp"

namespace gmlake::swap {

struct mix {
  score_weights weights;
  solution found;
};

namespace mix_parts {

/// The best that `attempt(weights)` finds, where it finds something: `better(a, b)` of two solutions says whether the
/// first one is.
template <std::invocable<score_weights> Attempt, std::predicate<outcome const&, outcome const&> Better>
[[nodiscard]] std::optional<mix> best_of(Attempt attempt, Better better) {
  std::optional<mix> best;
  auto const look = [&](score_weights const& w) {
    std::optional<solution> now = attempt(w);
    if (now && (!best || better(now->outcome, best->found.outcome))) best = mix{w, *std::move(now)};
  };
  each_mix(4, look);
  if (!best) return best;
  // Towards each score alone, and away from it.
  for (double const step : {0.5, 0.2}) {
    score_weights const from = best->weights;
    for (double score_weights::* score :
         {&score_weights::doa, &score_weights::aoa, &score_weights::wdoa, &score_weights::swdoa}) {
      for (double const factor : {1 / (1 + step), 1 + step}) {
        score_weights w = from;
        w.*score = std::max(w.*score, step / 8) * factor;
        look(w);
      }
    }
  }
  return best;
}

}  // namespace mix_parts

/// The mix with the lowest peak without a stall, under so many limits. All are tried under a quarter of them; the best
/// of those and each score alone then under all.
[[nodiscard]] inline mix mix_for_peak(setting const& at, unsigned limits = 64) {
  auto const lower = [](outcome const& a, outcome const& b) { return a.peak < b.peak; };
  mix best = *mix_parts::best_of(
      [&](score_weights const& w) { return std::optional(autoswap(at, w).lowest_peak(std::max(1U, limits / 4))); },
      lower);
  for (score_weights const& w : {best.weights, score_weights{.doa = 1}, score_weights{.aoa = 1},
                                 score_weights{.wdoa = 1}, score_weights{.swdoa = 1}}) {
    solution now = autoswap(at, w).lowest_peak(limits);
    if (lower(now.outcome, best.found.outcome)) best = {w, std::move(now)};
  }
  return best;
}

/// The mix with the shortest step under `limit`. Nothing where none meets it.
[[nodiscard]] inline std::optional<mix> mix_under(setting const& at, bytes limit) {
  return mix_parts::best_of([&](score_weights const& w) { return autoswap(at, w).under(limit); },
                            [](outcome const& a, outcome const& b) { return a.total < b.total; });
}

}  // namespace gmlake::swap
