#pragma once
/// Parts of a swapping pool that fail now and then, each with a die of its own, so that threads can share them under
/// the pool's locks.

#include <atomic>
#include <cstdint>
#include <random>
#include <utility>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/stream/stream_policy.hpp"
#include "gmlake/swap/copier.hpp"

namespace gmlake::test {

/// One call of `sides` fails, on average; 0: none.
class die {
 public:
  die(std::atomic<unsigned> const& sides, std::uint64_t seed) noexcept : sides_(&sides), random_(seed) {}
  [[nodiscard]] bool fails() noexcept {
    unsigned const sides = sides_->load(std::memory_order_relaxed);
    return sides != 0 && random_() % sides == 0;
  }

 private:
  std::atomic<unsigned> const* sides_;
  std::mt19937_64 random_;
};

template <PhysicalBackend B>
class flaky_backend {
 public:
  flaky_backend(B wrapped, die d) noexcept : wrapped_(std::move(wrapped)), die_(std::move(d)) {}

  [[nodiscard]] bytes granularity() const noexcept { return wrapped_.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept {
    if (die_.fails()) return failure(errc::out_of_memory, "create: injected");
    return wrapped_.create(n);
  }
  [[nodiscard]] result<void> release(handle h) noexcept {
    return unless([&]() noexcept { return wrapped_.release(h); });
  }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    if (die_.fails()) return failure(errc::out_of_addresses, "reserve: injected");
    return wrapped_.reserve(n, alignment);
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    return unless([&]() noexcept { return wrapped_.unreserve(va, n); });
  }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    return unless([&]() noexcept { return wrapped_.map(va, n, h); });
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    return unless([&]() noexcept { return wrapped_.unmap(va, n); });
  }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    return unless([&]() noexcept { return wrapped_.set_access(va, n, a); });
  }

 private:
  template <class Call>
  [[nodiscard]] result<void> unless(Call call) noexcept {
    if (die_.fails()) return failure(errc::driver_failure, "injected");
    return call();
  }

  B wrapped_;
  die die_;
};

template <swap::Copier C>
class flaky_copier {
 public:
  flaky_copier(C wrapped, die d) noexcept : wrapped_(std::move(wrapped)), die_(std::move(d)) {}

  [[nodiscard]] stream stream_out() const noexcept { return wrapped_.stream_out(); }
  [[nodiscard]] stream stream_in() const noexcept { return wrapped_.stream_in(); }
  [[nodiscard]] result<void> copy_out(address host, address device, bytes n) noexcept {
    if (die_.fails()) return failure(errc::driver_failure, "copy_out: injected");
    return wrapped_.copy_out(host, device, n);
  }
  [[nodiscard]] result<void> copy_in(address device, address host, bytes n) noexcept {
    if (die_.fails()) return failure(errc::driver_failure, "copy_in: injected");
    return wrapped_.copy_in(device, host, n);
  }

 private:
  C wrapped_;
  die die_;
};

/// Waiting for the whole device never fails.
template <StreamPolicy S>
class flaky_streams {
 public:
  using fence = typename S::fence;

  flaky_streams(S wrapped, die d) noexcept : wrapped_(std::move(wrapped)), die_(std::move(d)) {}

  [[nodiscard]] bool concurrent() const noexcept { return wrapped_.concurrent(); }
  [[nodiscard]] result<fence> record(stream s) noexcept {
    if (die_.fails()) return failure(errc::driver_failure, "record: injected");
    return wrapped_.record(s);
  }
  [[nodiscard]] result<bool> reached(fence& f) noexcept {
    if (die_.fails()) return failure(errc::driver_failure, "reached: injected");
    return wrapped_.reached(f);
  }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    if (die_.fails()) return failure(errc::driver_failure, "wait: injected");
    return wrapped_.wait(s, f);
  }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept {
    if (die_.fails()) return failure(errc::driver_failure, "synchronize: injected");
    return wrapped_.synchronize(f);
  }
  [[nodiscard]] result<void> synchronize_device() noexcept { return wrapped_.synchronize_device(); }
  void release(fence& f) noexcept { wrapped_.release(f); }

 private:
  S wrapped_;
  die die_;
};

}  // namespace gmlake::test
