#pragma once
/// A backend whose calls fail on demand: for tests of what a pool does then.
///
/// A call that is made to fail never reaches the wrapped backend. `create` fails with `out_of_memory`, `reserve` with
/// `out_of_addresses`, the others with `driver_failure`. Copies never fail here, and don't count.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "gmlake/backend/driver_usage.hpp"
#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

/// Which calls fail. By default, none: `{.first = 0}` fails the next call, `{.first = 2, .only = driver_call::map}` the
/// third map, `{.first = 5, .count = fault_plan::endless}` every call after the fifth.
struct fault_plan {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t first = never;           ///< calls that succeed first, of those that count
  std::uint64_t count = 1;               ///< calls that fail then, in a row; `endless`
  std::optional<driver_call> only = {};  ///< only calls of this kind count and fail; otherwise all do
};

template <PhysicalBackend B>
class faulty {
 public:
  explicit faulty(B wrapped, fault_plan plan = {}) noexcept : wrapped_(std::move(wrapped)), plan_(plan) {}

  /// Puts `plan` in the place of the one before; it counts from now.
  void arm(fault_plan plan) noexcept {
    plan_ = plan;
    counted_ = 0;
  }
  void disarm() noexcept { arm({}); }

  /// Calls since the beginning, those that failed included.
  [[nodiscard]] std::uint64_t calls(driver_call c) const noexcept { return calls_[static_cast<std::size_t>(c)]; }
  [[nodiscard]] std::uint64_t calls() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint64_t n : calls_) sum += n;
    return sum;
  }
  /// Calls made to fail, since the beginning.
  [[nodiscard]] std::uint64_t faults() const noexcept { return faults_; }

  [[nodiscard]] B& wrapped() noexcept { return wrapped_; }
  [[nodiscard]] B const& wrapped() const noexcept { return wrapped_; }

  [[nodiscard]] bytes granularity() const noexcept { return wrapped_.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept {
    if (fails(driver_call::create)) return failure(errc::out_of_memory, "create: injected");
    return wrapped_.create(n);
  }
  [[nodiscard]] result<void> release(handle h) noexcept {
    if (fails(driver_call::release)) return failure(errc::driver_failure, "release: injected");
    return wrapped_.release(h);
  }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    if (fails(driver_call::reserve)) return failure(errc::out_of_addresses, "reserve: injected");
    return wrapped_.reserve(n, alignment);
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    if (fails(driver_call::unreserve)) return failure(errc::driver_failure, "unreserve: injected");
    return wrapped_.unreserve(va, n);
  }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    if (fails(driver_call::map)) return failure(errc::driver_failure, "map: injected");
    return wrapped_.map(va, n, h);
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    if (fails(driver_call::unmap)) return failure(errc::driver_failure, "unmap: injected");
    return wrapped_.unmap(va, n);
  }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    if (fails(driver_call::set_access)) return failure(errc::driver_failure, "set_access: injected");
    return wrapped_.set_access(va, n, a);
  }

  [[nodiscard]] result<void> write(address va, std::span<std::byte const> from) noexcept
    requires CopyingBackend<B>
  {
    return wrapped_.write(va, from);
  }
  [[nodiscard]] result<void> read(std::span<std::byte> to, address va) noexcept
    requires CopyingBackend<B>
  {
    return wrapped_.read(to, va);
  }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept
    requires ClockedBackend<B>
  {
    return wrapped_.now();
  }

 private:
  [[nodiscard]] bool fails(driver_call c) noexcept {
    ++calls_[static_cast<std::size_t>(c)];
    if (plan_.only && *plan_.only != c) return false;
    std::uint64_t const index = counted_++;
    if (index < plan_.first || index - plan_.first >= plan_.count) return false;
    ++faults_;
    return true;
  }

  B wrapped_;
  fault_plan plan_;
  std::uint64_t counted_ = 0;
  std::uint64_t faults_ = 0;
  std::array<std::uint64_t, driver_call_names.size()> calls_{};
};

}  // namespace gmlake
