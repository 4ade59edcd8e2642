#pragma once
/// The backend of the pool's tests: simulated memory or real pages, chosen at run time, so that a pool of each policy
/// is compiled once; with faults on demand; and watched, so that a test knows independently of the pool which physical
/// memory lies beneath an address. The pool borrows it: it can be looked at after the pool has gone.

#include <cassert>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "gmlake/backend/faulty.hpp"
#include "gmlake/backend/memfd.hpp"
#include "gmlake/backend/simulated.hpp"

namespace gmlake::test {

/// A simulated device or host memory.
class either_device {
 public:
  explicit either_device(simulated d) noexcept : device_(std::move(d)) {}
  explicit either_device(memfd d) noexcept : device_(std::move(d)) {}

  [[nodiscard]] bytes granularity() const noexcept {
    return std::visit([](auto const& d) noexcept { return d.granularity(); }, device_);
  }
  [[nodiscard]] result<handle> create(bytes n) noexcept {
    return std::visit([n](auto& d) noexcept { return d.create(n); }, device_);
  }
  [[nodiscard]] result<void> release(handle h) noexcept {
    return std::visit([h](auto& d) noexcept { return d.release(h); }, device_);
  }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    return std::visit([n, alignment](auto& d) noexcept { return d.reserve(n, alignment); }, device_);
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    return std::visit([va, n](auto& d) noexcept { return d.unreserve(va, n); }, device_);
  }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    return std::visit([va, n, h](auto& d) noexcept { return d.map(va, n, h); }, device_);
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    return std::visit([va, n](auto& d) noexcept { return d.unmap(va, n); }, device_);
  }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    return std::visit([va, n, a](auto& d) noexcept { return d.set_access(va, n, a); }, device_);
  }

  void set_capacity(bytes n) noexcept {
    std::visit([n](auto& d) noexcept { d.set_capacity(n); }, device_);
  }
  [[nodiscard]] bytes capacity() const noexcept {
    return std::visit([](auto const& d) noexcept { return d.capacity(); }, device_);
  }
  [[nodiscard]] bytes created_bytes() const noexcept {
    return std::visit([](auto const& d) noexcept { return d.created_bytes(); }, device_);
  }
  [[nodiscard]] bytes live_handles() const noexcept {
    return std::visit([](auto const& d) noexcept { return d.live_handles(); }, device_);
  }
  [[nodiscard]] bool idle() const noexcept {
    return std::visit([](auto const& d) noexcept { return d.idle(); }, device_);
  }

 private:
  std::variant<simulated, memfd> device_;
};
static_assert(PhysicalBackend<either_device>);

/// Some bytes of one handle.
struct physical_piece {
  handle memory{};
  bytes offset = 0;
  bytes size = 0;
};

/// A backend and what is mapped in it.
struct watched_device {
  struct mapping {
    handle memory{};
    bytes size = 0;
    bool writable = false;
  };

  explicit watched_device(either_device d) noexcept : calls(std::move(d)) {}

  faulty<either_device> calls;
  std::map<address, mapping> mappings;
  /// Told of [va, va + n) before it is unmapped.
  std::function<void(address, bytes)> unmapping;

  [[nodiscard]] either_device& device() noexcept { return calls.wrapped(); }
  [[nodiscard]] bool idle() const noexcept { return calls.wrapped().idle() && mappings.empty(); }

  /// What [va, va + n) reads and writes; empty where some of it can't be.
  [[nodiscard]] std::vector<physical_piece> beneath(address va, bytes n) const {
    std::vector<physical_piece> pieces;
    auto at = mappings.upper_bound(va);
    if (at == mappings.begin()) return {};
    --at;
    while (n > 0) {
      if (at == mappings.end() || at->first > va || at->first + at->second.size <= va || !at->second.writable)
        return {};
      bytes const offset = va - at->first;
      bytes const size = std::min(n, at->second.size - offset);
      pieces.push_back({at->second.memory, offset, size});
      va = va + size;
      n -= size;
      ++at;
    }
    return pieces;
  }
};

/// Passes every call on to a watched device that outlives it.
class borrowed_device {
 public:
  explicit borrowed_device(watched_device& lender) noexcept : lender_(&lender) {}

  [[nodiscard]] watched_device& lender() noexcept { return *lender_; }

  [[nodiscard]] bytes granularity() const noexcept { return lender_->calls.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept { return lender_->calls.create(n); }
  [[nodiscard]] result<void> release(handle h) noexcept { return lender_->calls.release(h); }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    return lender_->calls.reserve(n, alignment);
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept { return lender_->calls.unreserve(va, n); }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    result<void> done = lender_->calls.map(va, n, h);
    if (done) lender_->mappings[va] = {h, n, false};
    return done;
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    result<void> done = lender_->calls.unmap(va, n);
    if (!done) return done;
    if (lender_->unmapping) lender_->unmapping(va, n);
    lender_->mappings.erase(lender_->mappings.lower_bound(va), lender_->mappings.lower_bound(va + n));
    return done;
  }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    result<void> done = lender_->calls.set_access(va, n, a);
    if (!done) return done;
    auto const end = lender_->mappings.lower_bound(va + n);
    for (auto i = lender_->mappings.lower_bound(va); i != end; ++i) i->second.writable = a == access::read_write;
    return done;
  }

 private:
  watched_device* lender_;
};
static_assert(PhysicalBackend<borrowed_device>);

}  // namespace gmlake::test
