#pragma once
/// Sees to it that a gate is not closed for long: a thread that opens one which is stuck. A gate may have several.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "gmlake/backend/copy_gate.hpp"

namespace gmlake {

class gate_keeper {
 public:
  /// So long a gate may stay closed at least, and twice as long at most. Access to hundreds of handles takes less.
  static constexpr std::chrono::milliseconds usual_interval{25};

  /// The gate outlives it. Throws `std::system_error` where no thread can be had.
  explicit gate_keeper(copy_gate& gate, std::chrono::milliseconds interval = usual_interval)
      : gate_(&gate), interval_(interval), thread_([this] { keep(); }) {}
  gate_keeper(gate_keeper const&) = delete;
  gate_keeper& operator=(gate_keeper const&) = delete;
  ~gate_keeper() {
    {
      std::scoped_lock const lock(mutex_);
      ends_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }

 private:
  void keep() {
    std::unique_lock lock(mutex_);
    for (std::uint64_t seen = gate_->changes(); !ended_.wait_for(lock, interval_, [this] { return ends_; });) {
      gate_->open_if_closed_since(seen);
      seen = gate_->changes();
    }
  }

  copy_gate* gate_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace gmlake
