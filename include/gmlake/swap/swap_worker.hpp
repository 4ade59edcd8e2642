#pragma once
/// Ends moves in the background: a thread that calls `progress` while any is under way, so that the memory of what has
/// left is free without anybody asking. `wake` it after moves have begun. It outlives no pool that it works for.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "gmlake/core/result.hpp"

namespace gmlake::swap {

struct swap_worker_options {
  std::chrono::microseconds interval{50};  ///< between two looks while copies are under way
  /// Told of errors that moves met; on the worker's thread. Moves that failed are tried again at the next look.
  std::function<void(error const&)> failed = {};
};

class swap_worker {
 public:
  /// `pool.progress()` is a `swapping_pool`'s. Throws `std::system_error` where no thread can be had.
  template <class P>
  explicit swap_worker(P& pool, swap_worker_options options = {})
      : options_(std::move(options)), progress_([&pool] { return pool.progress(); }), thread_([this] { work(); }) {}
  swap_worker(swap_worker const&) = delete;
  swap_worker& operator=(swap_worker const&) = delete;
  ~swap_worker() {
    {
      std::scoped_lock const lock(mutex_);
      ends_ = true;
    }
    awake_.notify_one();
    thread_.join();
  }

  void wake() noexcept {
    {
      std::scoped_lock const lock(mutex_);
      busy_ = true;
    }
    awake_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      awake_.wait(lock, [this] { return busy_ || ends_; });
      if (ends_) return;
      busy_ = false;
      lock.unlock();
      result<bool> const more = progress_();
      if (!more && options_.failed) options_.failed(more.error());
      lock.lock();
      if (more && !*more) continue;
      busy_ = true;
      awake_.wait_for(lock, options_.interval, [this] { return ends_; });
    }
  }

  swap_worker_options options_;
  std::function<result<bool>()> progress_;
  std::mutex mutex_;
  std::condition_variable awake_;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace gmlake::swap
