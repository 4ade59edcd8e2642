#pragma once
/// A device's primary context, kept alive for as long as this is: the one that the CUDA runtime uses too.

#include <utility>

#include "gmlake/backend/cuda_driver.hpp"

namespace gmlake {

/// Gives its retain back when destroyed, and says nothing if the driver shut down before.
class cuda_context {
 public:
  /// Returns `result<cuda_context>`. Errors: `no_driver`, `invalid_argument` (no such device), `driver_failure`.
  [[nodiscard]] static auto retain(int ordinal) noexcept {
    using retained = result<cuda_context>;  // named where the class is complete
    auto const driver = cuda_driver::get();
    if (!driver) return retained(failure(driver.error()));
    CUdevice device = 0;
    if (CUresult const r = (*driver)->device_get(&device, ordinal); r != CUDA_SUCCESS) {
      return retained(failure(errc::invalid_argument, "cuDeviceGet", static_cast<int>(r)));
    }
    CUcontext context = nullptr;
    if (CUresult const r = (*driver)->primary_context_retain(&context, device); r != CUDA_SUCCESS) {
      return retained(cuda_failure(r, "cuDevicePrimaryCtxRetain"));
    }
    return retained(cuda_context(**driver, device, context));
  }

  cuda_context(cuda_context&& o) noexcept
      : driver_(o.driver_), device_(o.device_), context_(std::exchange(o.context_, nullptr)) {}
  cuda_context& operator=(cuda_context&& o) noexcept {
    std::swap(driver_, o.driver_);
    std::swap(device_, o.device_);
    std::swap(context_, o.context_);
    return *this;
  }
  ~cuda_context() {
    if (context_ != nullptr) static_cast<void>(driver_->primary_context_release(device_));
  }

  [[nodiscard]] cuda_driver const& driver() const noexcept { return *driver_; }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }

  /// Runs call(driver) with the context current on this thread, and leaves this thread's context as it was. The common
  /// case, in which it is current already, costs one query.
  template <class Call>
    requires std::is_nothrow_invocable_r_v<CUresult, Call, cuda_driver const&>
  [[nodiscard]] CUresult with_current(Call call) const noexcept {
    CUcontext current = nullptr;
    if (CUresult const r = driver_->context_get_current(&current); r != CUDA_SUCCESS) return r;
    if (current == context_) return call(*driver_);
    if (CUresult const r = driver_->context_push(context_); r != CUDA_SUCCESS) return r;
    CUresult const outcome = call(*driver_);
    CUcontext popped = nullptr;
    static_cast<void>(driver_->context_pop(&popped));
    return outcome;
  }

  /// The same with no capture in the way: much of what only asks, or works on other streams, is safe, but a capture in
  /// the strictest mode, on any thread, would take it for a mistake and be broken off.
  template <class Call>
    requires std::is_nothrow_invocable_r_v<CUresult, Call, cuda_driver const&>
  [[nodiscard]] CUresult with_current_beside_captures(Call call) const noexcept {
    return with_current([&](cuda_driver const& d) noexcept {
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      if (CUresult const r = d.exchange_capture_mode(&mode); r != CUDA_SUCCESS) return r;
      CUresult const outcome = call(d);
      static_cast<void>(d.exchange_capture_mode(&mode));
      return outcome;
    });
  }

 private:
  cuda_context(cuda_driver const& driver, CUdevice device, CUcontext context) noexcept
      : driver_(&driver), device_(device), context_(context) {}

  cuda_driver const* driver_;
  CUdevice device_;
  CUcontext context_;
};

}  // namespace gmlake
