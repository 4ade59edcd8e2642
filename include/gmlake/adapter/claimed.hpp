#pragma once
/// A backend whose reservations are entered in a table of address owners.

#include <utility>

#include "gmlake/adapter/address_owners.hpp"
#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

template <PhysicalBackend B>
class claimed {
 public:
  static constexpr bool reservations_are_memory = PlacedBackend<B>;

  /// Precondition: `owners` outlives the backend.
  claimed(B wrapped, address_owners& owners, address_owners::number owner) noexcept
      : wrapped_(std::move(wrapped)), owners_(&owners), owner_(owner) {}

  [[nodiscard]] B& wrapped() noexcept { return wrapped_; }

  [[nodiscard]] bytes granularity() const noexcept { return wrapped_.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept { return wrapped_.create(n); }
  [[nodiscard]] result<void> release(handle h) noexcept { return wrapped_.release(h); }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    result<address> at = wrapped_.reserve(n, alignment);
    if (!at || owners_->claim(*at, n, owner_)) return at;
    static_cast<void>(owners_->claim(*at, n, 0));
    static_cast<void>(wrapped_.unreserve(*at, n));
    return failure(errc::out_of_host_memory, "reserve");
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    // Before the driver can give the addresses to another pool.
    static_cast<void>(owners_->claim(va, n, 0));
    result<void> done = wrapped_.unreserve(va, n);
    if (!done) static_cast<void>(owners_->claim(va, n, owner_));
    return done;
  }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept { return wrapped_.map(va, n, h); }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept { return wrapped_.unmap(va, n); }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    return wrapped_.set_access(va, n, a);
  }
  [[nodiscard]] result<device_memory> memory_info() const noexcept
    requires MeasuredBackend<B>
  {
    return wrapped_.memory_info();
  }

 private:
  B wrapped_;
  address_owners* owners_;
  address_owners::number owner_;
};

}  // namespace gmlake
