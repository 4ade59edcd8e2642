#pragma once
/// static_pool: a region that a plan is served from, and PyTorch's native rules for everything else, whose memory is
/// held besides. What `smartpool` and `stweaver` share.
///
/// Figures are of both together. The fallback may hold what the limit leaves beside the region. Nothing here plans,
/// decides where a request goes, or locks.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "gmlake/backend/metered.hpp"
#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/core/error.hpp"
#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/observe/stats.hpp"
#include "gmlake/pool/presets/pytorch.hpp"
#include "gmlake/pool/presets/static_region.hpp"

namespace gmlake {

/// What a plan has done, as counts of requests.
struct static_plan_stats {
  std::uint64_t made = 0;       ///< plans
  std::uint64_t placed = 0;     ///< at the place planned
  std::uint64_t squeezed = 0;   ///< not planned, but served from planned memory
  std::uint64_t displaced = 0;  ///< planned, but their place was in use
  std::uint64_t astray = 0;     ///< not foreseen, while there was a plan
};

/// Passes every call on to a backend that outlives it.
template <PhysicalBackend B>
class lent_backend {
 public:
  explicit lent_backend(B& lender) noexcept : to_(&lender) {}

  [[nodiscard]] bytes granularity() const noexcept { return to_->granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept { return to_->create(n); }
  [[nodiscard]] result<void> release(handle h) noexcept { return to_->release(h); }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept { return to_->reserve(n, alignment); }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept { return to_->unreserve(va, n); }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept { return to_->map(va, n, h); }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept { return to_->unmap(va, n); }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept { return to_->set_access(va, n, a); }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept
    requires ClockedBackend<B>
  {
    return to_->now();
  }

 private:
  B* to_;
};

template <PhysicalBackend Backend>
class static_pool {
 public:
  static_pool(Backend backend, bytes limit) noexcept
      : backend_(std::move(backend)), limit_(limit), fallback_(lent_backend(backend_), {.limit = limit}) {}
  static_pool(static_pool const&) = delete;
  static_pool& operator=(static_pool const&) = delete;
  ~static_pool() { (void)region_.dismantle(backend_); }

  [[nodiscard]] static_region const& region() const noexcept { return region_; }

  /// Brings the region, of n bytes at least, after the fallback has released what is free. Errors: `out_of_memory`, the
  /// backend's.
  [[nodiscard]] result<void> make_region(bytes n) noexcept {
    fallback_.empty_cache();
    follow_fallback();
    bytes const granule = backend_.granularity();
    if (n == 0 || !fits_aligned(n, granule)) return failure(errc::invalid_argument, "allocate");
    bytes const size = align_up(n, granule);
    if (size > limit_ || reserved_.now > limit_ - size) return failure(errc::out_of_memory, "allocate");
    result<void> const made = region_.create(backend_, size);
    fallback_.set_limit(limit_ - region_.reserved());
    follow_fallback();
    return made;
  }

  /// A place in the region; `address{}` where it is in use.
  [[nodiscard]] address take(bytes offset, bytes size, bytes requested) noexcept {
    address const at = region_.take(offset, size, requested);
    if (at == address{}) return at;
    requested_.add(requested);
    live_.add(size);
    ++allocations_;
    return at;
  }

  /// By PyTorch's rules. Errors: `pytorch_pool`'s.
  [[nodiscard]] result<address> fall_back(bytes n, stream s) noexcept {
    auto at = fallback_.allocate(n, s);
    if (at) ++allocations_;
    follow_fallback();
    return at;
  }

  /// Errors: `unknown_pointer`, `double_free`.
  [[nodiscard]] result<void> deallocate(address a) noexcept {
    if (!region_.covers(a)) {
      result<void> const done = fallback_.deallocate(a);
      if (done) ++deallocations_;
      follow_fallback();
      return done;
    }
    auto const gone = region_.give(a);
    if (!gone) return failure(region_.lies_free(a) ? errc::double_free : errc::unknown_pointer, "deallocate");
    requested_.sub(gone->requested);
    live_.sub(gone->size);
    ++deallocations_;
    return {};
  }

  [[nodiscard]] pool_stats stats() const noexcept {
    pool_stats s;
    s.requested = requested_;
    s.live = live_;
    s.reserved = reserved_;
    s.mapped = mapped_;
    s.allocations = allocations_;
    s.deallocations = deallocations_;
    s.failures = fallback_.stats().failures;
    s.driver = backend_.usage();
    return s;
  }

  [[nodiscard]] Backend& backend() noexcept { return backend_.wrapped(); }

 private:
  /// Adds to the gauges by how much the fallback's have changed.
  void follow_fallback() noexcept {
    pytorch_usage const now = fallback_.usage();
    move(requested_, requested_.now - last_.requested + now.requested);
    move(live_, live_.now - last_.live + now.live);
    move(reserved_, region_.reserved() + now.reserved);
    move(mapped_, region_.mapped() + now.mapped);
    last_ = now;
  }
  static void move(gauge& g, bytes to) noexcept {
    g.now = to;
    g.peak = std::max(g.peak, to);
  }

  metered<Backend> backend_;
  bytes limit_;
  static_region region_;
  pytorch_pool<lent_backend<metered<Backend>>> fallback_;
  pytorch_usage last_;  ///< the fallback's when it was last looked at
  gauge requested_;
  gauge live_;
  gauge reserved_;
  gauge mapped_;
  std::uint64_t allocations_ = 0;
  std::uint64_t deallocations_ = 0;
};

}  // namespace gmlake
