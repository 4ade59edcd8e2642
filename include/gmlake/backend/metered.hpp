#pragma once
/// A backend whose calls are counted and timed, failed ones included: on its own clock where it has one, otherwise on
/// the steady clock. Copies are not calls of the driver's that a pool pays for, and are left out.

#include <chrono>
#include <concepts>
#include <utility>

#include "gmlake/backend/driver_usage.hpp"
#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

template <PhysicalBackend B>
class metered {
 public:
  explicit metered(B wrapped) noexcept : wrapped_(std::move(wrapped)) {}

  [[nodiscard]] driver_usage const& usage() const noexcept { return usage_; }
  [[nodiscard]] B& wrapped() noexcept { return wrapped_; }
  [[nodiscard]] B const& wrapped() const noexcept { return wrapped_; }

  [[nodiscard]] bytes granularity() const noexcept { return wrapped_.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept {
    return timed(driver_call::create, [&]() noexcept { return wrapped_.create(n); });
  }
  [[nodiscard]] result<void> release(handle h) noexcept {
    return timed(driver_call::release, [&]() noexcept { return wrapped_.release(h); });
  }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    return timed(driver_call::reserve, [&]() noexcept { return wrapped_.reserve(n, alignment); });
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    return timed(driver_call::unreserve, [&]() noexcept { return wrapped_.unreserve(va, n); });
  }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    return timed(driver_call::map, [&]() noexcept { return wrapped_.map(va, n, h); });
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    return timed(driver_call::unmap, [&]() noexcept { return wrapped_.unmap(va, n); });
  }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    return timed(driver_call::set_access, [&]() noexcept { return wrapped_.set_access(va, n, a); });
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
  [[nodiscard]] result<device_memory> memory_info() const noexcept
    requires MeasuredBackend<B>
  {
    return wrapped_.memory_info();
  }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept
    requires ClockedBackend<B>
  {
    return wrapped_.now();
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds clock() const noexcept {
    if constexpr (ClockedBackend<B>) return wrapped_.now();
    else return std::chrono::steady_clock::now().time_since_epoch();
  }

  template <std::invocable Call>
  [[nodiscard]] auto timed(driver_call c, Call call) noexcept {
    std::chrono::nanoseconds const begin = clock();
    auto outcome = call();
    driver_usage::line& line = usage_[c];
    ++line.calls;
    line.time += clock() - begin;
    return outcome;
  }

  B wrapped_;
  driver_usage usage_;
};

}  // namespace gmlake
