#pragma once
/// Mutex policies: anything that a pool can make, `lock` and `unlock`, such as `std::mutex`. `atomic_mutex` by default;
/// this one where a single thread uses a pool, or its callers lock already.

#include <concepts>

namespace gmlake {

template <class M>
concept Mutex = std::default_initializable<M> && requires(M& m) {
  m.lock();
  m.unlock();
};

struct null_mutex {
  void lock() noexcept {}
  void unlock() noexcept {}
};
static_assert(Mutex<null_mutex>);

}  // namespace gmlake
