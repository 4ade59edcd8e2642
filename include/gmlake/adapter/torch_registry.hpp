#pragma once
/// Every pool of the process, by number: from a pointer to the pool that gave it out, and its device.

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "gmlake/adapter/address_owners.hpp"

namespace gmlake {

class torch_device;
class torch_pool;

class torch_registry {
 public:
  using number = address_owners::number;
  static constexpr number none = 0;

  struct entry {
    std::atomic<torch_pool*> pool{nullptr};
    std::atomic<torch_device*> device{nullptr};
  };

  [[nodiscard]] address_owners& owners() noexcept { return owners_; }

  /// A number that no pool has; `none` where all are taken.
  [[nodiscard]] number reserve(torch_device& device) noexcept {
    std::scoped_lock const lock(mutex_);
    for (std::size_t i = 1; i < pools_.size(); ++i) {
      torch_device* unused = nullptr;
      if (pools_[i].device.compare_exchange_strong(unused, &device)) return static_cast<number>(i);
    }
    return none;
  }
  void enter(number n, torch_pool& pool) noexcept { pools_[n].pool.store(&pool, std::memory_order_release); }
  /// The pool can't be found any more. Its number is given out again only after `forget`, when its addresses are gone.
  void leave(number n) noexcept { pools_[n].pool.store(nullptr, std::memory_order_release); }
  void forget(number n) noexcept { pools_[n].device.store(nullptr, std::memory_order_release); }

  /// The pool whose addresses `at` is among, and its device; null for no pool's.
  struct owner {
    torch_pool* pool = nullptr;
    torch_device* device = nullptr;
  };
  [[nodiscard]] owner find(address at) const noexcept {
    entry const& e = pools_[owners_.of(at) % most_pools];
    return {e.pool.load(std::memory_order_acquire), e.device.load(std::memory_order_relaxed)};
  }

 private:
  static constexpr std::size_t most_pools = 4096;

  address_owners owners_;
  std::array<entry, most_pools> pools_;
  std::mutex mutex_;
};

}  // namespace gmlake
