#pragma once
/// What the driver's calls cost, as figures: the clock of the simulated backend.
///
/// A call costs a fixed time and a time for each MiB of the handle it works on. `set_access` and `unmap` cost that for
/// every handle in their range, whether one call spans it or many, so the number of handles is what a mapping costs.

#include <chrono>

#include "gmlake/core/types.hpp"

namespace gmlake {

struct cost_model {
  using time = std::chrono::duration<double, std::nano>;

  /// What one handle costs a call.
  struct rate {
    time call{0};     ///< whatever the handle's size
    time per_mib{0};  ///< for each MiB of the handle

    [[nodiscard]] constexpr time of(bytes n) const noexcept { return call + per_mib * (static_cast<double>(n) / mib); }
    [[nodiscard]] friend constexpr rate operator*(rate r, double k) noexcept { return {r.call * k, r.per_mib * k}; }

   private:
    static constexpr double mib = 1024.0 * 1024.0;
  };

  rate create;
  rate map;
  rate set_access;           ///< for each handle in the range whose access changes
  time set_access_again{0};  ///< for a call over a range whose access is so already
  rate unmap;                ///< for each handle in the range
  rate release;
  time reserve{0};    ///< whatever the range's size
  time unreserve{0};  ///< whatever the range's size

  /// The same driver, `k` times as slow.
  [[nodiscard]] friend constexpr cost_model operator*(cost_model const& c, double k) noexcept {
    return {.create = c.create * k,
            .map = c.map * k,
            .set_access = c.set_access * k,
            .set_access_again = c.set_access_again * k,
            .unmap = c.unmap * k,
            .release = c.release * k,
            .reserve = c.reserve * k,
            .unreserve = c.unreserve * k};
  }
};

namespace costs {

/// Every call is free.
inline constexpr cost_model zero{};

/// One NVIDIA H200, driver 580.159, CUDA 13.0: medians, fitted to handles of 2 MiB to 2 GiB, the device otherwise idle.
inline constexpr cost_model h200{
    .create = {cost_model::time{7'000}, cost_model::time{20}},
    .map = {cost_model::time{450}, cost_model::time{0}},
    .set_access = {cost_model::time{18'500}, cost_model::time{35}},
    .set_access_again = cost_model::time{1'800},
    .unmap = {cost_model::time{12'400}, cost_model::time{13}},
    .release = {cost_model::time{8'000}, cost_model::time{240}},
    .reserve = cost_model::time{1'500},
    .unreserve = cost_model::time{1'500},
};

}  // namespace costs
}  // namespace gmlake
