#pragma once
/// Copier over two CUDA streams of its own, which the default stream does not order.
///
/// Host memory is pinned, by whichever of the driver's ways, or the host waits for its copies. A range may be made of
/// many mappings. Another stream's capture is not disturbed, in whatever mode.

#include <utility>

#include <cuda.h>

#include "gmlake/backend/cuda_context.hpp"
#include "gmlake/swap/carried.hpp"
#include "gmlake/swap/copier.hpp"
#include "gmlake/swap/cuda_lane_timer.hpp"

namespace gmlake::swap {

struct cuda_copier_options {
  int device = 0;  ///< ordinal
};

class cuda_copier {
 public:
  /// Returns `result<cuda_copier>`. Errors: `no_driver`, `invalid_argument` (no such device), `driver_failure`.
  [[nodiscard]] static auto open(cuda_copier_options const& options = {}) noexcept {
    using opened = result<cuda_copier>;  // named where the class is complete
    auto context = cuda_context::retain(options.device);
    if (!context) return opened(failure(context.error()));
    cuda_copier copier(*std::move(context));
    CUresult const r = copier.context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      CUresult const first = d.stream_create(&copier.out_, CU_STREAM_NON_BLOCKING);
      return first != CUDA_SUCCESS ? first : d.stream_create(&copier.in_, CU_STREAM_NON_BLOCKING);
    });
    if (r != CUDA_SUCCESS) return opened(cuda_failure(r, "cuStreamCreate"));
    return opened(std::move(copier));
  }

  cuda_copier(cuda_copier&& o) noexcept
      : context_(std::move(o.context_)),
        out_(std::exchange(o.out_, nullptr)),
        in_(std::exchange(o.in_, nullptr)),
        out_timer_(std::exchange(o.out_timer_, {})),
        in_timer_(std::exchange(o.in_timer_, {})) {}
  cuda_copier& operator=(cuda_copier&& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(out_, o.out_);
    std::swap(in_, o.in_);
    std::swap(out_timer_, o.out_timer_);
    std::swap(in_timer_, o.in_timer_);
    return *this;
  }
  /// What is queued is still done.
  ~cuda_copier() {
    if (out_ == nullptr && in_ == nullptr) return;
    static_cast<void>(context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      out_timer_.close(d);
      in_timer_.close(d);
      for (CUstream s : {out_, in_}) {
        if (s != nullptr) static_cast<void>(d.stream_destroy(s));
      }
      return CUDA_SUCCESS;
    }));
  }

  [[nodiscard]] stream stream_out() const noexcept { return name(out_); }
  [[nodiscard]] stream stream_in() const noexcept { return name(in_); }
  [[nodiscard]] result<void> copy_out(address host, address device, bytes n) noexcept {
    return copy(host, device, n, out_, out_timer_);
  }
  [[nodiscard]] result<void> copy_in(address device, address host, bytes n) noexcept {
    return copy(device, host, n, in_, in_timer_);
  }

  /// What the copies came to that were timed and are over, each once.
  [[nodiscard]] carried take_carried() noexcept {
    carried all;
    static_cast<void>(context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      all = {.out = out_timer_.take(d), .in = in_timer_.take(d)};
      return CUDA_SUCCESS;
    }));
    return all;
  }

 private:
  explicit cuda_copier(cuda_context&& context) noexcept : context_(std::move(context)) {}

  [[nodiscard]] static stream name(CUstream s) noexcept {
    return static_cast<stream>(reinterpret_cast<std::uintptr_t>(s));
  }

  /// The driver tells by the addresses which way it goes.
  [[nodiscard]] result<void> copy(address to, address from, bytes n, CUstream on, cuda_lane_timer& timer) noexcept {
    CUresult const r = context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      bool const timed = timer.begin(d, n, on);
      CUresult const queued = d.copy_async(to_integer(to), to_integer(from), n, on);
      if (timed && queued == CUDA_SUCCESS) timer.end(d, on);
      return queued;
    });
    return to_result(r, "cuMemcpyAsync");
  }

  cuda_context context_;
  CUstream out_ = nullptr;
  CUstream in_ = nullptr;
  cuda_lane_timer out_timer_, in_timer_;
};
static_assert(TimingCopier<cuda_copier>);

}  // namespace gmlake::swap
