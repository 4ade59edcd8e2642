#pragma once
/// What a pool can say about itself in numbers: sizes in bytes, times in nanoseconds of the backend's clock.

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "gmlake/core/types.hpp"

namespace gmlake {

/// The kinds of call that a pool makes of its backend, in the order in which memory comes and goes.
enum class driver_call : std::uint8_t { create, map, set_access, unmap, release, reserve, unreserve };
inline constexpr std::array<std::string_view, 7> driver_call_names = {"create",  "map",     "set_access", "unmap",
                                                                      "release", "reserve", "unreserve"};

/// Calls of a backend, failed ones included, and the time spent in them.
struct driver_usage {
  struct line {
    std::uint64_t calls = 0;
    std::chrono::nanoseconds time{0};
  };
  std::array<line, driver_call_names.size()> lines{};

  [[nodiscard]] constexpr line& operator[](driver_call c) noexcept { return lines[static_cast<std::size_t>(c)]; }
  [[nodiscard]] constexpr line const& operator[](driver_call c) const noexcept {
    return lines[static_cast<std::size_t>(c)];
  }
  [[nodiscard]] constexpr line total() const noexcept {
    line sum;
    for (line const& l : lines) {
      sum.calls += l.calls;
      sum.time += l.time;
    }
    return sum;
  }
};

/// A quantity and the highest value it has had.
struct gauge {
  bytes now = 0;
  bytes peak = 0;

  constexpr void add(bytes n) noexcept {
    now += n;
    if (now > peak) peak = now;
  }
  constexpr void sub(bytes n) noexcept { now -= n; }
};

struct pool_stats {
  gauge requested;  ///< sizes as asked for, of blocks handed out
  gauge live;       ///< the same blocks as rounded and placed
  gauge reserved;   ///< physical memory held
  gauge mapped;     ///< addresses with memory behind them: homes and stitches together
  std::uint64_t allocations = 0;
  std::uint64_t deallocations = 0;
  std::uint64_t stitches_live = 0;    ///< stitches that serve a block now
  std::uint64_t stitches_cached = 0;  ///< idle stitches whose mapping is kept
  std::uint64_t stitches_made = 0;    ///< mapped anew, since the beginning
  std::uint64_t stitch_hits = 0;      ///< requests served by a mapping made before
  std::uint64_t device_waits = 0;     ///< a stream was made to wait for another
  std::uint64_t host_waits = 0;       ///< the host waited for a stream
  std::uint64_t failures = 0;         ///< requests that ended out of memory
  driver_usage driver;
};

}  // namespace gmlake
