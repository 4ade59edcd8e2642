#pragma once
/// How AutoSwap ranks what might leave (Zhang et al., arXiv 1903.06631, on AutoSwap's priority scores):
///
/// - duration of absence (DOA): how long it is away, the transfers taken off;
/// - area of absence (AOA): that times its size;
/// - weighted DOA (WDOA): the excess of the load over the limit, integrated over the absence;
/// - submodular WDOA (SWDOA): the same, of the load that what has been chosen leaves. It falls with each choice.
///
/// A mix adds them up, each as a share of the highest there is.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

struct score_weights {
  double doa = 0, aoa = 0, wdoa = 0, swdoa = 0;
};

/// The scores of a program's absences under a limit.
class scores {
 public:
  /// O(operations + absences · the operations of one).
  scores(setting const& at, bytes limit, score_weights const& w) : at_(at), limit_(limit), weights_(w) {
    auto const count = static_cast<std::uint32_t>(at.absences().size());
    std::vector<double> whole(count);
    for (std::uint32_t k = 0; k < count; ++k) {
      whole[k] = weighted(k, at.loads());
      highest_.doa = std::max(highest_.doa, duration(k));
      highest_.aoa = std::max(highest_.aoa, area(k));
      highest_.wdoa = std::max(highest_.wdoa, whole[k]);
    }
    for (std::uint32_t k = 0; k < count; ++k) {
      fixed_.push_back(share(w.doa, duration(k), highest_.doa) + share(w.aoa, area(k), highest_.aoa) +
                       share(w.wdoa, whole[k], highest_.wdoa));
    }
  }

  /// In ns; negative where the transfers take longer than the absence.
  [[nodiscard]] double duration(std::uint32_t k) const {
    absence const& a = at_.absences()[k];
    time const away = at_.start_of(a.before) - at_.start_of(a.after + 1) - at_.out_time(a) - at_.in_time(a);
    return static_cast<double>(away.count());
  }
  /// In byte · ns.
  [[nodiscard]] double area(std::uint32_t k) const {
    return duration(k) * static_cast<double>(at_.size_of(at_.absences()[k]));
  }
  /// In byte · ns, of these loads.
  [[nodiscard]] double weighted(std::uint32_t k, std::vector<bytes> const& loads) const {
    absence const& a = at_.absences()[k];
    double sum = 0;
    for (std::uint32_t i = a.after + 1; i < a.before; ++i) {
      std::uint32_t const operation = i < at_.size() ? i : i - at_.size();
      if (loads[operation] <= limit_) continue;
      auto const ns = at_.program().operations[operation].count();
      sum += static_cast<double>(loads[operation] - limit_) * static_cast<double>(ns);
    }
    return sum;
  }

  /// The mix, where `loads` are left. Never rises while they fall.
  [[nodiscard]] double mixed(std::uint32_t k, std::vector<bytes> const& loads) const {
    if (weights_.swdoa == 0) return fixed_[k];
    return fixed_[k] + share(weights_.swdoa, weighted(k, loads), highest_.wdoa);
  }

 private:
  [[nodiscard]] static double share(double weight, double of, double highest) noexcept {
    return highest > 0 ? weight * of / highest : 0;
  }

  setting const& at_;
  bytes limit_;
  score_weights weights_;
  score_weights highest_;      ///< of each score; SWDOA begins as WDOA
  std::vector<double> fixed_;  ///< the mix without SWDOA
};

/// The weights with the lowest cost, the first of equals, of all that are multiples of `1 / parts` and add up to one.
template <std::invocable<score_weights> Cost>
[[nodiscard]] score_weights best_weights(Cost&& cost, int parts = 4) {
  score_weights best{.swdoa = 1};
  auto least = cost(best);
  auto const share = [&](int of) { return static_cast<double>(of) / parts; };
  for (int doa = 0; doa <= parts; ++doa) {
    for (int aoa = 0; doa + aoa <= parts; ++aoa) {
      for (int wdoa = 0; doa + aoa + wdoa <= parts; ++wdoa) {
        score_weights const w{share(doa), share(aoa), share(wdoa), share(parts - doa - aoa - wdoa)};
        auto const c = cost(w);
        if (!(c < least)) continue;
        least = c;
        best = w;
      }
    }
  }
  return best;
}

}  // namespace gmlake::swap
