#pragma once
/// Times copies on one CUDA stream by events beside them: as many as are under way at once, so that a long queue costs
/// no more than a short one. For want of events nothing is timed, and nothing fails.

#include <array>
#include <cstddef>
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

  /// Before a copy of n bytes is queued on `on`: whether it is timed. Then `end` follows, or nothing if the copy could
  /// not be queued.
  [[nodiscard]] bool begin(cuda_driver const& d, bytes n, CUstream on) noexcept {
    if (n < smallest) return false;
    if (under_way_ == most) take_oldest(d);
    if (under_way_ == most) return false;
    timed& t = ring_[(first_ + under_way_) % most];
    if (!made(d, t.begin) || !made(d, t.end) || d.event_record(t.begin, on) != CUDA_SUCCESS) return false;
    t.size = n;
    return true;
  }
  /// It has been queued.
  void end(cuda_driver const& d, CUstream on) noexcept {
    if (d.event_record(ring_[(first_ + under_way_) % most].end, on) == CUDA_SUCCESS) ++under_way_;
  }

  /// What those that are over came to, each once.
  [[nodiscard]] lane_load take(cuda_driver const& d) noexcept {
    while (under_way_ > 0 && take_oldest(d)) {
    }
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
  struct timed {
    CUevent begin = nullptr, end = nullptr;
    bytes size = 0;
  };

  [[nodiscard]] static bool made(cuda_driver const& d, CUevent& e) noexcept {
    return e != nullptr || d.event_create(&e, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
  }

  /// Whether it is over.
  bool take_oldest(cuda_driver const& d) noexcept {
    timed const& t = ring_[first_];
    if (d.event_query(t.end) == CUDA_ERROR_NOT_READY) return false;
    float ms = 0;
    if (d.event_elapsed_time(&ms, t.begin, t.end) == CUDA_SUCCESS) {
      over_.add(t.size, time(static_cast<time::rep>(1e6 * static_cast<double>(ms))));
    }
    first_ = (first_ + 1) % most;
    --under_way_;
    return true;
  }

  std::array<timed, most> ring_{};
  std::size_t first_ = 0, under_way_ = 0;
  lane_load over_;
};

}  // namespace gmlake::swap
