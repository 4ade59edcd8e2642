#pragma once
/// A device that exists only as rules and costs: PhysicalBackend for replay and tests.
///
/// There is no memory behind its addresses. It holds its caller to every rule of the driver (see `mapping_ledger`),
/// runs out of memory at a capacity that may change at any time, and has a clock that each call advances by what the
/// call would cost. Addresses are not handed out twice and stand apart by a granule, so that stale or overrunning use
/// is an error and not an accident. A call that fails costs no time.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "gmlake/backend/cost_model.hpp"
#include "gmlake/backend/mapping_ledger.hpp"
#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

struct simulated_options {
  static constexpr bytes unlimited = std::numeric_limits<bytes>::max();

  bytes capacity = 143'155_MiB;    ///< bytes that can be created at once; `unlimited`. By default, an H200's
  bytes granularity = 2_MiB;       ///< a power of two
  cost_model costs = costs::h200;  ///< what each call adds to the clock
  bytes addresses = 127_TiB;       ///< bytes of addresses that can be reserved at once
  address base = static_cast<address>(0x7f00'0000'0000);  ///< where reservations begin; not 0
};

class simulated {
 public:
  explicit simulated(simulated_options const& options = {}) noexcept
      : options_(options), ledger_(options.granularity), next_(options.base) {}

  [[nodiscard]] bytes granularity() const noexcept { return options_.granularity; }

  [[nodiscard]] result<handle> create(bytes n) noexcept {
    if (auto ok = ledger_.check_size(n, "create: size"); !ok) return failure(ok.error());
    bytes const used = ledger_.created();
    if (used > options_.capacity || n > options_.capacity - used) return failure(errc::out_of_memory, "create");
    auto h = ledger_.create(n);
    if (h) spend(options_.costs.create.of(n));
    return h;
  }

  [[nodiscard]] result<void> release(handle h) noexcept {
    if (auto ok = ledger_.check_release(h); !ok) return ok;
    spend(options_.costs.release.of(ledger_.size_of(h)));
    ledger_.release(h);
    return {};
  }

  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    if (auto ok = ledger_.check_reserve(n, alignment); !ok) return failure(ok.error());
    if (n > options_.addresses - ledger_.reserved()) return failure(errc::out_of_addresses, "reserve");
    bytes const wanted = std::max(alignment, options_.granularity);
    if (!fits_aligned(to_integer(next_), wanted)) return failure(errc::out_of_addresses, "reserve");
    address const base = align_up(next_, wanted);
    auto const highest = static_cast<address>(std::numeric_limits<bytes>::max() - options_.granularity);
    if (base > highest || n > highest - base) return failure(errc::out_of_addresses, "reserve");
    if (auto ok = ledger_.reserve(base, n); !ok) return failure(ok.error());
    next_ = base + n + options_.granularity;
    spend(options_.costs.reserve);
    return base;
  }

  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    if (auto ok = ledger_.check_unreserve(va, n); !ok) return ok;
    ledger_.unreserve(va, n);
    spend(options_.costs.unreserve);
    return {};
  }

  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    if (auto ok = ledger_.check_map(va, n, h); !ok) return ok;
    ledger_.map(va, n, h);
    spend(options_.costs.map.of(n));
    return {};
  }

  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    if (auto ok = ledger_.check_unmap(va, n); !ok) return ok;
    cost_model::time cost{0};
    ledger_.for_each_mapping(va, n, [&](mapping_ledger::mapping m) { cost += options_.costs.unmap.of(m.size); });
    ledger_.unmap(va, n);
    spend(cost);
    return {};
  }

  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    if (auto ok = ledger_.check_set_access(va, n); !ok) return ok;
    cost_model::time cost{0};
    ledger_.for_each_mapping(va, n, [&](mapping_ledger::mapping m) {
      if (m.allowed != a) cost += options_.costs.set_access.of(m.size);
    });
    ledger_.set_access(va, n, a);
    spend(std::max(cost, options_.costs.set_access_again));
    return {};
  }

  /// What all calls so far would have cost.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept { return now_; }

  /// As when other processes take memory or give it back. Below what is created already, the next `create` fails.
  void set_capacity(bytes n) noexcept { options_.capacity = n; }
  [[nodiscard]] bytes capacity() const noexcept { return options_.capacity; }

  [[nodiscard]] bytes live_handles() const noexcept { return ledger_.live_handles(); }
  [[nodiscard]] bytes created_bytes() const noexcept { return ledger_.created(); }
  [[nodiscard]] bytes reservations() const noexcept { return ledger_.reservations(); }
  [[nodiscard]] bytes reserved_bytes() const noexcept { return ledger_.reserved(); }
  [[nodiscard]] bytes mappings() const noexcept { return ledger_.mappings(); }
  /// Nothing is held: every handle was released, every range given back.
  [[nodiscard]] bool idle() const noexcept { return ledger_.idle(); }

 private:
  void spend(cost_model::time t) noexcept { now_ += std::chrono::nanoseconds{std::llround(t.count())}; }

  simulated_options options_;
  mapping_ledger ledger_;
  address next_;
  std::chrono::nanoseconds now_{0};
};
static_assert(PhysicalBackend<simulated> && ClockedBackend<simulated>);

}  // namespace gmlake
