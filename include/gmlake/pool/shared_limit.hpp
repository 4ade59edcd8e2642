#pragma once
/// One limit on the physical memory of several pools together. Each takes from it before it creates a chunk and gives
/// back what it releases, so that the sum never exceeds the limit whatever threads the pools are used by.

#include <atomic>
#include <limits>

#include "gmlake/core/types.hpp"

namespace gmlake {

class shared_limit {
 public:
  explicit shared_limit(bytes limit = std::numeric_limits<bytes>::max()) noexcept : limit_(limit) {}
  shared_limit(shared_limit const&) = delete;
  shared_limit& operator=(shared_limit const&) = delete;

  [[nodiscard]] bytes limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  [[nodiscard]] bytes held() const noexcept { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] bytes left() const noexcept {
    bytes const held = held_.load(std::memory_order_relaxed);
    bytes const limit = limit_.load(std::memory_order_relaxed);
    return limit > held ? limit - held : 0;
  }

  /// The most that was held at a time since the last reset, chunks included that then could not be created.
  [[nodiscard]] bytes peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() noexcept { peak_.store(held(), std::memory_order_relaxed); }

  /// What is held beyond a new limit stays until it is given back.
  void set(bytes limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }

  /// Whether n bytes were left; they are held from now on.
  [[nodiscard]] bool take(bytes n) noexcept {
    bytes held = held_.load(std::memory_order_relaxed);
    do {
      bytes const limit = limit_.load(std::memory_order_relaxed);
      if (held > limit || n > limit - held) return false;
    } while (!held_.compare_exchange_weak(held, held + n, std::memory_order_relaxed));
    bytes peak = peak_.load(std::memory_order_relaxed);
    while (peak < held + n && !peak_.compare_exchange_weak(peak, held + n, std::memory_order_relaxed)) {
    }
    return true;
  }
  void give(bytes n) noexcept { held_.fetch_sub(n, std::memory_order_relaxed); }

 private:
  std::atomic<bytes> limit_;
  std::atomic<bytes> held_{0};
  std::atomic<bytes> peak_{0};
};

}  // namespace gmlake
