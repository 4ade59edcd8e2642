#pragma once
/// What the pools of a device have handed out together, and the most that it was at a time: peaks of single pools can't
/// be added up, as they come at different times. Kept from the device's second pool on, by the observers of all.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "gmlake/observe/observer.hpp"
#include "gmlake/observe/stats.hpp"

namespace gmlake {

class torch_together {
 public:
  /// Thread-safe.
  class amount {
   public:
    void add(std::int64_t n) noexcept { raise(now_.fetch_add(n, std::memory_order_relaxed) + n); }
    void take(std::int64_t n) noexcept { now_.fetch_sub(n, std::memory_order_relaxed); }
    void raise(std::int64_t to) noexcept {
      std::int64_t peak = peak_.load(std::memory_order_relaxed);
      while (peak < to && !peak_.compare_exchange_weak(peak, to, std::memory_order_relaxed)) {
      }
    }
    void reset_peak() noexcept { peak_.store(now_.load(std::memory_order_relaxed), std::memory_order_relaxed); }
    [[nodiscard]] std::int64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::int64_t> now_{0}, peak_{0};
  };

  amount blocks, placed, requested;  ///< the last two in bytes

  void allocated(block_event const& b) noexcept {
    blocks.add(1);
    placed.add(static_cast<std::int64_t>(b.size));
    requested.add(static_cast<std::int64_t>(b.requested));
  }
  void deallocated(block_event const& b) noexcept {
    blocks.take(1);
    placed.take(static_cast<std::int64_t>(b.size));
    requested.take(static_cast<std::int64_t>(b.requested));
  }
  void reset_peaks() noexcept {
    for (amount* const a : {&blocks, &placed, &requested}) a->reset_peak();
  }
};

/// Two pools' figures as one; its peaks are at most as high as the two together ever were.
inline void merge(pool_stats& sum, pool_stats const& s) noexcept {
  for (gauge pool_stats::* const g :
       {&pool_stats::requested, &pool_stats::live, &pool_stats::reserved, &pool_stats::mapped}) {
    (sum.*g).now += (s.*g).now;
    (sum.*g).peak += (s.*g).peak;
  }
  for (std::uint64_t pool_stats::* const n :
       {&pool_stats::allocations, &pool_stats::deallocations, &pool_stats::stitches_live, &pool_stats::stitches_cached,
        &pool_stats::stitches_made, &pool_stats::stitch_hits, &pool_stats::device_waits, &pool_stats::host_waits,
        &pool_stats::retries, &pool_stats::failures}) {
    sum.*n += s.*n;
  }
  for (std::size_t i = 0; i < sum.driver.lines.size(); ++i) {
    sum.driver.lines[i].calls += s.driver.lines[i].calls;
    sum.driver.lines[i].time += s.driver.lines[i].time;
  }
}
/// Of a pool that is gone: what it held no longer counts, what it did does.
inline void leave(pool_stats& s) noexcept {
  s.requested = s.live = s.reserved = s.mapped = {};
  s.stitches_live = s.stitches_cached = 0;
}

}  // namespace gmlake
