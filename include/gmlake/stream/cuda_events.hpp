#pragma once
/// StreamPolicy over CUDA's events. A `stream` is a `CUstream`; `stream{}` is the legacy default stream.
///
/// Events carry no timing, are created when first needed and recycled, and are all destroyed with the policy. Once the
/// driver has shut down, at the end of the process, all work is done: fences are reached, and nothing fails.
///
/// A stream that is being captured has no point in time to record or to wait at, and trying would break the capture:
/// `record` and `wait` on it are `not_supported`, and leave it whole. So do the other calls, whatever mode another
/// stream is captured in; only `synchronize_device` can't be had meanwhile.
///
/// CUDA does not check stream handles: a call with a stream that was destroyed may crash in the driver.

#include <new>
#include <utility>
#include <vector>

#include <cuda.h>

#include "gmlake/backend/cuda_context.hpp"
#include "gmlake/stream/stream_policy.hpp"

namespace gmlake {

struct cuda_events_options {
  int device = 0;  ///< ordinal; the streams are this device's
};

class cuda_events {
 public:
  /// Names an event of the policy's; empty where the driver was gone when it was recorded.
  struct fence {
    CUevent event = nullptr;
  };

  /// Returns `result<cuda_events>`. Errors: `no_driver`, `invalid_argument` (no such device), `driver_failure`.
  [[nodiscard]] static auto open(cuda_events_options const& options = {}) noexcept {
    using opened = result<cuda_events>;  // named where the class is complete
    auto context = cuda_context::retain(options.device);
    if (!context) return opened(failure(context.error()));
    return opened(cuda_events(*std::move(context)));
  }

  cuda_events(cuda_events&& o) noexcept
      : context_(std::move(o.context_)), all_(std::exchange(o.all_, {})), free_(std::exchange(o.free_, {})) {}
  cuda_events& operator=(cuda_events&& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(all_, o.all_);
    std::swap(free_, o.free_);
    return *this;
  }
  ~cuda_events() {
    if (all_.empty()) return;
    static_cast<void>(call([&](cuda_driver const& d) noexcept {
      for (CUevent e : all_) static_cast<void>(d.event_destroy(e));
      return CUDA_SUCCESS;
    }));
  }

  [[nodiscard]] bool concurrent() const noexcept { return true; }

  /// Errors: `not_supported` (a captured stream); `out_of_host_memory`; `driver_failure`.
  [[nodiscard]] result<fence> record(stream s) noexcept {
    if (free_.empty()) {
      if (auto ok = add_event(); !ok) return failure(ok.error());
      if (free_.empty()) return fence{};
    }
    CUevent const e = free_.back();
    bool captured = false;
    CUresult const r = call([&](cuda_driver const& d) noexcept {
      captured = is_captured(d, s);
      return captured ? CUDA_SUCCESS : d.event_record(e, to_cuda(s));
    });
    if (captured) return failure(errc::not_supported, "record: the stream is captured");
    if (driver_is_gone(r)) return fence{};
    if (r != CUDA_SUCCESS) return failure(errc::driver_failure, "cuEventRecord", r);
    free_.pop_back();
    return fence{e};
  }

  [[nodiscard]] result<bool> reached(fence& f) noexcept {
    if (f.event == nullptr) return true;
    CUresult const r = call([&](cuda_driver const& d) noexcept { return d.event_query(f.event); });
    if (r == CUDA_SUCCESS || driver_is_gone(r)) return true;
    if (r == CUDA_ERROR_NOT_READY) return false;
    return cuda_failure(r, "cuEventQuery");
  }

  /// Errors: `not_supported` (a captured stream); `driver_failure`.
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    if (f.event == nullptr) return {};
    bool captured = false;
    CUresult const r = call([&](cuda_driver const& d) noexcept {
      captured = is_captured(d, s);
      return captured ? CUDA_SUCCESS : d.stream_wait_event(to_cuda(s), f.event, CU_EVENT_WAIT_DEFAULT);
    });
    if (captured) return failure(errc::not_supported, "wait: the stream is captured");
    return to_quiet_result(r, "cuStreamWaitEvent");
  }

  [[nodiscard]] result<void> synchronize(fence& f) noexcept {
    if (f.event == nullptr) return {};
    return to_quiet_result(call([&](cuda_driver const& d) noexcept { return d.event_synchronize(f.event); }),
                           "cuEventSynchronize");
  }

  [[nodiscard]] result<void> synchronize_device() noexcept {
    return to_quiet_result(call([](cuda_driver const& d) noexcept { return d.context_synchronize(); }),
                           "cuCtxSynchronize");
  }

  void release(fence& f) noexcept {
    if (f.event == nullptr) return;
    free_.push_back(f.event);  // has room: see add_event
    f.event = nullptr;
  }

  /// Whether the stream is being captured into a graph. Its device's context must be current. False without a driver.
  [[nodiscard]] static bool captured(stream s) noexcept {
    auto const driver = cuda_driver::get();
    return driver && is_captured(**driver, s);
  }

  /// Events created so far: the most fences that were ever live at once.
  [[nodiscard]] std::size_t events() const noexcept { return all_.size(); }

 private:
  explicit cuda_events(cuda_context&& context) noexcept : context_(std::move(context)) {}

  [[nodiscard]] static CUstream to_cuda(stream s) noexcept { return reinterpret_cast<CUstream>(to_integer(s)); }

  /// Also where the default stream can't be asked because of another stream's capture.
  [[nodiscard]] static bool is_captured(cuda_driver const& d, stream s) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult const r = d.stream_is_capturing(to_cuda(s), &status);
    return r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || (r == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
  }

  template <class Call>
  [[nodiscard]] CUresult call(Call body) const noexcept {
    return context_.with_current_beside_captures(body);
  }

  /// Makes one event free, or none if the driver is gone. `free_` gets room for every event there is.
  [[nodiscard]] result<void> add_event() noexcept {
    try {
      if (all_.size() == all_.capacity()) all_.reserve(2 * all_.size() + first_events);
      free_.reserve(all_.capacity());
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "record");
    }
    CUevent e = nullptr;
    CUresult const r = call([&](cuda_driver const& d) noexcept { return d.event_create(&e, CU_EVENT_DISABLE_TIMING); });
    if (driver_is_gone(r)) return {};
    if (r != CUDA_SUCCESS) return failure(errc::driver_failure, "cuEventCreate", r);
    all_.push_back(e);
    free_.push_back(e);
    return {};
  }

  static constexpr std::size_t first_events = 64;  ///< room made at first; a step's fences are rarely more

  cuda_context context_;
  std::vector<CUevent> all_;
  std::vector<CUevent> free_;  ///< those of `all_` that no fence names; its capacity is no less than `all_`'s size
};
static_assert(StreamPolicy<cuda_events>);

}  // namespace gmlake
