#pragma once
/// A channel as it turns out to be: calibrated at first, then by what transfers take. What else crosses the link, the
/// host's use of its memory and where in that a copy lies make it slower than it was when nothing else ran.

#include <cmath>
#include <cstdint>

#include "gmlake/swap/carried.hpp"
#include "gmlake/swap/channel.hpp"

namespace gmlake::swap {

class observed_channel {
 public:
  explicit constexpr observed_channel(channel const& calibrated) noexcept : now_(calibrated) {}

  [[nodiscard]] channel const& now() const noexcept { return now_; }

  /// The latest transfers, of a step or so, have that weight in the average; the first ones stand for all before.
  void note(carried const& c, double weight) noexcept {
    note(now_.out, out_seen_, c.out, weight);
    note(now_.in, in_seen_, c.in, weight);
  }

 private:
  static void note(lane& l, bool& seen, lane_load const& load, double weight) noexcept {
    time const of_bytes = load.took - load.transfers * l.latency;
    if (load.size == 0 || of_bytes <= time::zero()) return;
    double const seconds_a_byte = 1e-9 * static_cast<double>(of_bytes.count()) / static_cast<double>(load.size);
    double const before = 1 / static_cast<double>(l.bytes_per_second);
    double const average = seen ? before + weight * (seconds_a_byte - before) : seconds_a_byte;
    if (average > 1) return;  // no link is that slow
    l.bytes_per_second = static_cast<std::uint64_t>(std::llround(1 / average));
    seen = true;
  }

  channel now_;
  bool out_seen_ = false, in_seen_ = false;
};

}  // namespace gmlake::swap
