#pragma once
/// Memory from the allocator that a `MemPool` was given (NCCL's, say), for a pool of the adapter's to cut up.

#include <memory>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>

#include "gmlake/backend/placed_memory.hpp"

namespace gmlake {

class torch_foreign_memory {
 public:
  using allocator = std::shared_ptr<c10::cuda::CUDACachingAllocator::CUDAAllocator>;

  torch_foreign_memory(allocator from, c10::DeviceIndex device) noexcept : from_(std::move(from)), device_(device) {}

  /// Errors: `out_of_memory` where it gives none, `driver_failure` where it throws anything but that.
  [[nodiscard]] result<address> allocate(bytes n) noexcept {
    try {
      c10::cuda::CUDAGuard const guard(device_);
      // What it calls may be forbidden during a capture, and is none of it.
      c10::cuda::CUDAStreamCaptureModeGuard const aside(cudaStreamCaptureModeRelaxed);
      void* const p = from_->raw_alloc(n);
      return p != nullptr ? result<address>(to_address(p)) : failure(errc::out_of_memory, "MemPool's allocator");
    } catch (c10::OutOfMemoryError const&) {
      return failure(errc::out_of_memory, "MemPool's allocator");
    } catch (...) {
      return failure(errc::driver_failure, "MemPool's allocator");
    }
  }
  [[nodiscard]] result<void> deallocate(address at, bytes) noexcept {
    try {
      c10::cuda::CUDAGuard const guard(device_);
      c10::cuda::CUDAStreamCaptureModeGuard const aside(cudaStreamCaptureModeRelaxed);
      from_->raw_delete(to_pointer(at));
      return {};
    } catch (...) {
      return failure(errc::driver_failure, "MemPool's allocator");
    }
  }

 private:
  allocator from_;
  c10::DeviceIndex device_;
};
static_assert(MemorySource<torch_foreign_memory>);

}  // namespace gmlake
