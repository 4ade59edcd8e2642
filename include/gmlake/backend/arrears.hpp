#pragma once
/// What is owed to a backend: a call that gives something back and fails is remembered and made again later, so that a
/// failing driver costs time and not memory. One that has shut down is not asked again.
///
/// Debts are paid in the order in which they were made, so that a range is unreserved after it was unmapped.

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

template <PhysicalBackend Backend>
class arrears {
 public:
  explicit arrears(Backend& backend) noexcept : backend_(&backend) {}

  [[nodiscard]] Backend& backend() noexcept { return *backend_; }

  void unmap(address va, bytes n) noexcept { pay_or_owe({debt::kind::unmap, va, n, handle{}}); }
  void release(handle h) noexcept { pay_or_owe({debt::kind::release, address{}, 0, h}); }
  void unreserve(address va, bytes n) noexcept { pay_or_owe({debt::kind::unreserve, va, n, handle{}}); }

  [[nodiscard]] bool clear() const noexcept { return debts_.empty(); }

  /// Tries all debts again; those that fail once more stay.
  void settle() noexcept {
    std::erase_if(debts_, [this](debt const& d) { return pay(d); });
  }

 private:
  struct debt {
    enum class kind : std::uint8_t { unmap, release, unreserve };
    kind what;
    address va;
    bytes size;
    handle memory;
  };

  [[nodiscard]] bool pay(debt const& d) noexcept {
    switch (d.what) {
      case debt::kind::unmap: return backend_->unmap(d.va, d.size).has_value();
      case debt::kind::release: return backend_->release(d.memory).has_value();
      case debt::kind::unreserve: return backend_->unreserve(d.va, d.size).has_value();
    }
    return true;
  }
  void pay_or_owe(debt const& d) noexcept {
    if (pay(d)) return;
    try {
      debts_.push_back(d);
    } catch (std::bad_alloc const&) {
      // Neither the driver nor the host's heap will have it: it is lost until the process ends.
    }
  }

  Backend* backend_;
  std::vector<debt> debts_;
};

}  // namespace gmlake
