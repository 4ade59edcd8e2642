#pragma once
/// Counts and gauges with their peaks: what `stats()` reports. The default.

#include "gmlake/observe/no_observer.hpp"
#include "gmlake/observe/stats.hpp"

namespace gmlake {

class counters : public no_observer {
 public:
  void allocated(block_event const& b) noexcept {
    ++seen_.allocations;
    seen_.requested.add(b.requested);
    seen_.live.add(b.size);
  }
  void deallocated(block_event const& b) noexcept {
    ++seen_.deallocations;
    seen_.requested.sub(b.requested);
    seen_.live.sub(b.size);
  }
  void created(address, bytes n) noexcept {
    seen_.reserved.add(n);
    seen_.mapped.add(n);
  }
  void released(address, bytes n) noexcept {
    seen_.reserved.sub(n);
    seen_.mapped.sub(n);
  }
  void stitched(stitch_event const& s) noexcept {
    ++seen_.stitches_made;
    seen_.mapped.add(s.size);
  }
  void reused(stitch_event const&) noexcept { ++seen_.stitch_hits; }
  void evicted(stitch_event const& s) noexcept { seen_.mapped.sub(s.size); }
  void failed(memory_account const&) noexcept { ++seen_.failures; }

  [[nodiscard]] pool_stats const& seen() const noexcept { return seen_; }
  /// Peaks start again from what is there now.
  void reset_peaks() noexcept {
    for (gauge* g : {&seen_.requested, &seen_.live, &seen_.reserved, &seen_.mapped}) g->peak = g->now;
  }

 private:
  pool_stats seen_;
};
static_assert(Observer<counters>);

/// An observer that can tell the gauges and counts which it has seen.
template <class O>
concept CountingObserver = Observer<O> && requires(O const& o) {
  { o.seen() } noexcept -> std::same_as<pool_stats const&>;
};
static_assert(CountingObserver<counters>);

}  // namespace gmlake
