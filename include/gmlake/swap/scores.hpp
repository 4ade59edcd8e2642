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
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

struct score_weights {
  double doa = 0, aoa = 0, wdoa = 0, swdoa = 0;
};

/// What loads exceed a limit by, over time, in byte · ns: sums from the step's beginning on.
class excess {
 public:
  /// Linear.
  excess(setting const& at, std::vector<bytes> const& loads, bytes limit) : sums_{0} {
    sums_.reserve(loads.size() + 1);
    for (std::size_t i = 0; i < loads.size(); ++i) {
      bytes const over = loads[i] > limit ? loads[i] - limit : 0;
      auto const ns = at.program().operations[i].count();
      sums_.push_back(sums_.back() + static_cast<double>(over) * static_cast<double>(ns));
    }
  }

  /// Of the operations between; 0 where none of them exceeds it.
  [[nodiscard]] double during(absence const& a) const noexcept {
    auto const n = sums_.size() - 1;
    if (a.before <= n) return sums_[a.before] - sums_[a.after + 1];
    return sums_[n] - sums_[a.after + 1] + sums_[a.before - n];
  }

 private:
  std::vector<double> sums_;
};

/// The scores of a program's absences under a limit.
class scores {
 public:
  /// Linear in operations and absences.
  scores(setting const& at, bytes limit, score_weights const& w) : at_(at), weights_(w) {
    auto const count = static_cast<std::uint32_t>(at.absences().size());
    excess const over(at, at.loads(), limit);
    std::vector<double> whole(count);
    for (std::uint32_t k = 0; k < count; ++k) {
      whole[k] = over.during(at.absences()[k]);
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

  /// The mix, where what loads are left exceed the limit by `left`. Never rises while they fall.
  [[nodiscard]] double mixed(std::uint32_t k, excess const& left) const {
    if (weights_.swdoa == 0) return fixed_[k];
    return fixed_[k] + share(weights_.swdoa, left.during(at_.absences()[k]), highest_.wdoa);
  }

 private:
  [[nodiscard]] static double share(double weight, double of, double highest) noexcept {
    return highest > 0 ? weight * of / highest : 0;
  }

  setting const& at_;
  score_weights weights_;
  score_weights highest_;      ///< of each score; SWDOA begins as WDOA
  std::vector<double> fixed_;  ///< the mix without SWDOA
};

/// Calls `f(weights)` for all weights that are multiples of `1 / parts` and add up to one, SWDOA alone first.
template <std::invocable<score_weights> F>
void each_mix(int parts, F&& f) {
  auto const share = [&](int of) { return static_cast<double>(of) / parts; };
  for (int doa = 0; doa <= parts; ++doa) {
    for (int aoa = 0; doa + aoa <= parts; ++aoa) {
      for (int wdoa = 0; doa + aoa + wdoa <= parts; ++wdoa) {
        f(score_weights{share(doa), share(aoa), share(wdoa), share(parts - doa - aoa - wdoa)});
      }
    }
  }
}

}  // namespace gmlake::swap
