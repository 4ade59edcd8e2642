#pragma once
/// Mutex policies: anything with `lock` and `unlock`. `std::mutex` by default; this one where a single thread uses a
/// pool, or its callers lock already.

namespace gmlake {

template <class M>
concept Mutex = requires(M& m) {
  m.lock();
  m.unlock();
};

struct null_mutex {
  void lock() noexcept {}
  void unlock() noexcept {}
};
static_assert(Mutex<null_mutex>);

}  // namespace gmlake
