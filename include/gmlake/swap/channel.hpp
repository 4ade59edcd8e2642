#pragma once
/// The link between device and host memory: one lane each way, each carrying one transfer at a time. Times are whole
/// nanoseconds, rounded against the transfer, so that what is found feasible here is feasible at the stated rate.

#include <cstdint>

#include "gmlake/core/types.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// One direction.
struct lane {
  time latency = std::chrono::microseconds(10);     ///< what a transfer costs beside its bytes
  std::uint64_t bytes_per_second = 55'000'000'000;  ///< more than zero; an H200's over PCIe 5, from pinned memory

  /// How long `n` bytes take, rounded up. Exact: long division by thousands, which 64 bits hold.
  [[nodiscard]] constexpr time time_of(bytes n) const noexcept {
    std::uint64_t whole = n / bytes_per_second;
    std::uint64_t rest = n % bytes_per_second;
    for (int thousands = 0; thousands < 3; ++thousands) {
      rest *= 1000;
      whole = whole * 1000 + rest / bytes_per_second;
      rest %= bytes_per_second;
    }
    return latency + time(static_cast<time::rep>(whole + (rest != 0 ? 1 : 0)));
  }

  /// The most bytes that any number of transfers, one at least, carry within `t`; 0 where `t` is no longer than the
  /// latency.
  [[nodiscard]] constexpr bytes most_in(time t) const noexcept {
    constexpr std::uint64_t second = 1'000'000'000;  // in nanoseconds
    if (t <= latency) return 0;
    auto const ns = static_cast<std::uint64_t>((t - latency).count());
    std::uint64_t const rest = ns % second;
    return ns / second * bytes_per_second + rest * (bytes_per_second / second) +
           rest * (bytes_per_second % second) / second;
  }
};

struct channel {
  lane out;  ///< to the host
  lane in;   ///< to the device
};

}  // namespace gmlake::swap
