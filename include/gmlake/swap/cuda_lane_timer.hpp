#pragma once
/// Times copies on one CUDA stream by events beside them: as many as are under way at once, so that a long queue costs
/// no more than a short one. And tells by these about how long the queue is. For want of events nothing is timed, and
/// nothing fails.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda.h>

#include "gmlake/backend/cuda_driver.hpp"
#include "gmlake/swap/carried.hpp"

namespace gmlake::swap {

/// Its context is current in every call. The driver's events are its holder's to destroy, by `close`.
class cuda_lane_timer {
 public:
  /// Of smaller copies the events beside them would be a part of the time.
  static constexpr bytes smallest = 8_MiB;

  /// So many commands have been queued.
  void queued(unsigned commands) noexcept { queued_ += commands; }
  /// How many are under way, at the most.
  [[nodiscard]] std::uint64_t under_way(cuda_driver const& d) noexcept {
    take_over(d);
    return queued_ - over_of_queued_;
  }

  /// Before a copy of n bytes is queued on `on`: whether it is timed, or its end noted. Then `end` follows, or nothing
  /// if the copy could not be queued.
  [[nodiscard]] bool begin(cuda_driver const& d, bytes n, CUstream on) noexcept {
    bool const last_known = in_ring_ > 0 || queued_ - over_of_queued_ < unknown;
    if (n < smallest && last_known) return false;
    if (in_ring_ == most) take_oldest(d);
    if (in_ring_ == most) return false;
    timed& t = ring_[(first_ + in_ring_) % most];
    if (!made(d, t.begin) || !made(d, t.end) || d.event_record(t.begin, on) != CUDA_SUCCESS) return false;
    t.size = n;
    return true;
  }
  /// It has been queued, as have the commands that are its own.
  void end(cuda_driver const& d, CUstream on) noexcept {
    timed& t = ring_[(first_ + in_ring_) % most];
    t.queued = queued_;
    if (d.event_record(t.end, on) == CUDA_SUCCESS) ++in_ring_;
  }

  /// What those that are over came to, each once.
  [[nodiscard]] lane_load take(cuda_driver const& d) noexcept {
    take_over(d);
    return std::exchange(over_, {});
  }

  void close(cuda_driver const& d) noexcept {
    for (timed& t : ring_) {
      for (CUevent e : {t.begin, t.end}) {
        if (e != nullptr) static_cast<void>(d.event_destroy(e));
      }
    }
    *this = {};
  }

 private:
  static constexpr std::size_t most = 8;
  static constexpr std::uint64_t unknown = 64;  ///< commands of which none is noted: that one is
  struct timed {
    CUevent begin = nullptr, end = nullptr;
    bytes size = 0;
    std::uint64_t queued = 0;  ///< commands up to its end
  };

  [[nodiscard]] static bool made(cuda_driver const& d, CUevent& e) noexcept {
    return e != nullptr || d.event_create(&e, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
  }

  /// All that are over.
  void take_over(cuda_driver const& d) noexcept {
    while (in_ring_ > 0 && take_oldest(d)) {
    }
  }
  /// Whether it is over.
  bool take_oldest(cuda_driver const& d) noexcept {
    timed const& t = ring_[first_];
    if (d.event_query(t.end) == CUDA_ERROR_NOT_READY) return false;
    over_of_queued_ = t.queued;
    float ms = 0;
    if (t.size >= smallest && d.event_elapsed_time(&ms, t.begin, t.end) == CUDA_SUCCESS) {
      over_.add(t.size, time(static_cast<time::rep>(1e6 * static_cast<double>(ms))));
    }
    first_ = (first_ + 1) % most;
    --in_ring_;
    return true;
  }

  std::array<timed, most> ring_{};
  std::size_t first_ = 0, in_ring_ = 0;
  std::uint64_t queued_ = 0, over_of_queued_ = 0;
  lane_load over_;
};

}  // namespace gmlake::swap
