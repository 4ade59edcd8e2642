#pragma once
/// What a pool can say about itself in numbers: sizes in bytes, times in nanoseconds of the backend's clock.

#include <cstdint>

#include "gmlake/backend/driver_usage.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

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
  std::uint64_t retries = 0;          ///< requests that came to the last resorts
  std::uint64_t failures = 0;         ///< requests that ended out of memory
  driver_usage driver;
};

}  // namespace gmlake
