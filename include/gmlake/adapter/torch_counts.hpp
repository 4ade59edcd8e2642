#pragma once
/// What PyTorch's statistics count, kept as they are changed: current, peak and totals since a reset, for all requests
/// and apart for small and large ones.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "gmlake/adapter/torch_together.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/observe/counters.hpp"

namespace gmlake {

/// One line of PyTorch's statistics. A peak reset forgets the peak, a totals reset what was added and taken so far.
struct torch_gauge {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t added = 0;
  std::int64_t taken = 0;

  void add(std::int64_t n) noexcept {
    current += n;
    added += n;
    if (current > peak) peak = current;
  }
  void take(std::int64_t n) noexcept {
    current -= n;
    taken += n;
  }
  /// Two pools' gauges as one; its peak is at most as high as the two together ever were.
  void merge(torch_gauge const& o) noexcept {
    current += o.current;
    peak += o.peak;
    added += o.added;
    taken += o.taken;
  }
};

/// Requests of one size class, or of all.
struct torch_totals {
  torch_gauge allocation;       ///< blocks handed out
  torch_gauge segment;          ///< chunks
  torch_gauge allocated_bytes;  ///< as placed
  torch_gauge reserved_bytes;
  torch_gauge requested_bytes;

  /// Calls f(gauge of this, gauge of o) for each.
  template <class F>
  void each(torch_totals const& o, F&& f) {
    f(allocation, o.allocation);
    f(segment, o.segment);
    f(allocated_bytes, o.allocated_bytes);
    f(reserved_bytes, o.reserved_bytes);
    f(requested_bytes, o.requested_bytes);
  }
  void merge(torch_totals const& o) noexcept {
    each(o, [](torch_gauge& mine, torch_gauge const& its) { mine.merge(its); });
  }
  void reset_peaks() noexcept {
    each(*this, [](torch_gauge& g, torch_gauge const&) { g.peak = g.current; });
  }
  void reset_totals() noexcept {
    each(*this, [](torch_gauge& g, torch_gauge const&) { g.added = g.taken = 0; });
  }
};

/// A pool's totals, as PyTorch tells them apart.
struct torch_lines {
  torch_totals all;
  torch_totals small;
  torch_totals large;

  void merge(torch_lines const& o) noexcept {
    all.merge(o.all);
    small.merge(o.small);
    large.merge(o.large);
  }
  /// All that was there has gone; only the totals stay.
  void leave() noexcept {
    for (torch_totals* t : {&all, &small, &large}) {
      t->each(*t, [](torch_gauge& g, torch_gauge const&) {
        g.taken += g.current;
        g.current = g.peak = 0;
      });
    }
  }
};

class torch_device;

/// Told of everything that the pools of a device do, under the lock of the pool that does it.
class torch_listener {
 public:
  virtual ~torch_listener() = default;
  virtual void allocated(block_event const&) noexcept = 0;
  virtual void deallocated(block_event const&) noexcept = 0;
  virtual void created(address home, bytes n) noexcept = 0;
  virtual void released(address home, bytes n) noexcept = 0;
  /// A request has been served; no lock is held.
  virtual void served(torch_device&) noexcept {}
};

/// The listeners of a device, of which there may be one of each kind. They live as long as the process.
class torch_audience final : public torch_listener {
 public:
  enum kind : std::size_t { recording, history, sharing, kinds };

  /// Null: nobody of that kind. Returns whether anybody is left.
  [[nodiscard]] bool seat(kind k, torch_listener* l) noexcept {
    seats_[k].store(l, std::memory_order_release);
    for (auto const& s : seats_) {
      if (s.load(std::memory_order_relaxed) != nullptr) return true;
    }
    return false;
  }

  void allocated(block_event const& b) noexcept override {
    each([&](torch_listener& l) { l.allocated(b); });
  }
  void deallocated(block_event const& b) noexcept override {
    each([&](torch_listener& l) { l.deallocated(b); });
  }
  void created(address home, bytes n) noexcept override {
    each([&](torch_listener& l) { l.created(home, n); });
  }
  void released(address home, bytes n) noexcept override {
    each([&](torch_listener& l) { l.released(home, n); });
  }
  void served(torch_device& d) noexcept override {
    each([&](torch_listener& l) { l.served(d); });
  }

 private:
  template <class F>
  void each(F&& f) noexcept {
    for (auto const& s : seats_) {
      if (torch_listener* const l = s.load(std::memory_order_acquire)) f(*l);
    }
  }

  std::array<std::atomic<torch_listener*>, kinds> seats_{};
};

/// The pools' observer: counts for the pool's own figures and for PyTorch's, and passes on what is listened to.
class torch_observer : public counters {
 public:
  /// `listener` is looked up at each event; what it points to outlives the pool.
  explicit torch_observer(std::atomic<torch_listener*> const* listener = nullptr, bytes small_limit = 0,
                          bytes small_chunk = 0) noexcept
      : listener_(listener), small_limit_(small_limit), small_chunk_(small_chunk) {}

  void allocated(block_event const& b) noexcept {
    counters::allocated(b);
    torch_totals& t = line_of(b.requested);
    t.allocation.add(1);
    t.allocated_bytes.add(static_cast<std::int64_t>(b.size));
    t.requested_bytes.add(static_cast<std::int64_t>(b.requested));
    most_blocks_ = std::max(most_blocks_, seen().allocations - seen().deallocations);
    if (together_ != nullptr) [[unlikely]]
      together_->allocated(b);
    if (torch_listener* const l = listener()) [[unlikely]]
      l->allocated(b);
  }
  void deallocated(block_event const& b) noexcept {
    counters::deallocated(b);
    torch_totals& t = line_of(b.requested);
    t.allocation.take(1);
    t.allocated_bytes.take(static_cast<std::int64_t>(b.size));
    t.requested_bytes.take(static_cast<std::int64_t>(b.requested));
    if (together_ != nullptr) [[unlikely]]
      together_->deallocated(b);
    if (torch_listener* const l = listener()) [[unlikely]]
      l->deallocated(b);
  }
  void created(address home, bytes n) noexcept {
    counters::created(home, n);
    torch_totals& t = n <= small_chunk_ ? small_ : large_;
    t.segment.add(1);
    t.reserved_bytes.add(static_cast<std::int64_t>(n));
    most_chunks_ = std::max(most_chunks_, small_.segment.current + large_.segment.current);
    if (torch_listener* const l = listener()) l->created(home, n);
  }
  void released(address home, bytes n) noexcept {
    counters::released(home, n);
    torch_totals& t = n <= small_chunk_ ? small_ : large_;
    t.segment.take(1);
    t.reserved_bytes.take(static_cast<std::int64_t>(n));
    if (torch_listener* const l = listener()) l->released(home, n);
  }

  /// From now on the pool's blocks count there too, with what is there. Its peaks so far are all pools', if `first`.
  void count_in(torch_together& all, bool first) noexcept {
    together_ = &all;
    auto const blocks = static_cast<std::int64_t>(seen().allocations - seen().deallocations);
    auto const enter = [first](torch_together::amount& a, std::int64_t now, std::uint64_t peak) {
      a.add(now);
      if (first) a.raise(static_cast<std::int64_t>(peak));
    };
    enter(all.blocks, blocks, most_blocks_);
    enter(all.placed, static_cast<std::int64_t>(seen().live.now), seen().live.peak);
    enter(all.requested, static_cast<std::int64_t>(seen().requested.now), seen().requested.peak);
  }

  /// The peaks of `all` are the pool's own.
  [[nodiscard]] torch_lines lines() const noexcept {
    torch_lines out{.all = small_, .small = small_, .large = large_};
    out.all.merge(large_);
    out.all.allocation.peak = static_cast<std::int64_t>(most_blocks_);
    out.all.segment.peak = most_chunks_;
    out.all.allocated_bytes.peak = static_cast<std::int64_t>(seen().live.peak);
    out.all.reserved_bytes.peak = static_cast<std::int64_t>(seen().reserved.peak);
    out.all.requested_bytes.peak = static_cast<std::int64_t>(seen().requested.peak);
    return out;
  }
  /// The pool's peaks are reset with them.
  void reset_peaks() noexcept {
    counters::reset_peaks();
    small_.reset_peaks();
    large_.reset_peaks();
    most_blocks_ = seen().allocations - seen().deallocations;
    most_chunks_ = small_.segment.current + large_.segment.current;
  }
  void reset_totals() noexcept {
    small_.reset_totals();
    large_.reset_totals();
  }

 private:
  [[nodiscard]] torch_listener* listener() const noexcept {
    return listener_ != nullptr ? listener_->load(std::memory_order_acquire) : nullptr;
  }
  [[nodiscard]] torch_totals& line_of(bytes requested) noexcept { return requested <= small_limit_ ? small_ : large_; }

  std::atomic<torch_listener*> const* listener_;
  torch_together* together_ = nullptr;
  bytes small_limit_;
  bytes small_chunk_;
  torch_totals small_;
  torch_totals large_;
  std::uint64_t most_blocks_ = 0;
  std::int64_t most_chunks_ = 0;
};
static_assert(CountingObserver<torch_observer>);

}  // namespace gmlake
