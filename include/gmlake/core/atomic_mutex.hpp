#pragma once
/// A mutex that costs one atomic operation to lock and one to unlock, inlined, while nobody waits for it; otherwise
/// threads sleep. Source: Drepper, Futexes Are Tricky, "Mutex, Take 2".

#include <atomic>

#include "gmlake/core/null_mutex.hpp"

namespace gmlake {

class atomic_mutex {
 public:
  void lock() noexcept {
    int seen = unlocked;
    if (!state_.compare_exchange_strong(seen, locked, std::memory_order_acquire, std::memory_order_relaxed))
        [[unlikely]]
      wait();
  }
  void unlock() noexcept {
    if (state_.exchange(unlocked, std::memory_order_release) == awaited) [[unlikely]]
      state_.notify_one();
  }

 private:
  static constexpr int unlocked = 0;
  static constexpr int locked = 1;
  static constexpr int awaited = 2;  ///< locked, and somebody may sleep until it is not

  void wait() noexcept {
    while (state_.exchange(awaited, std::memory_order_acquire) != unlocked) {
      state_.wait(awaited, std::memory_order_relaxed);
    }
  }

  std::atomic<int> state_{unlocked};
};
static_assert(Mutex<atomic_mutex>);

}  // namespace gmlake
