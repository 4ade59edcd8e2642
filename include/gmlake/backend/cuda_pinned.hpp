#pragma once
/// Pinned host memory by `cuMemHostAlloc`, as a source for `placed_memory`: for copies where the driver has no host
/// memory that can be mapped (`cuda_vmm_options::lies_on`).
///
///     lake_pool<placed_memory<cuda_pinned>> host(placed_memory(*cuda_pinned::open()), {.limit = 40_GiB});
///
/// Giving memory back waits for the device.

#include <utility>

#include <cuda.h>

#include "gmlake/backend/cuda_context.hpp"
#include "gmlake/backend/placed_memory.hpp"

namespace gmlake {

struct cuda_pinned_options {
  int device = 0;  ///< ordinal; every device can use the memory all the same
};

class cuda_pinned {
 public:
  /// Returns `result<cuda_pinned>`. Errors: `no_driver`, `invalid_argument` (no such device), `driver_failure`.
  [[nodiscard]] static auto open(cuda_pinned_options const& options = {}) noexcept {
    using opened = result<cuda_pinned>;  // named where the class is complete
    auto context = cuda_context::retain(options.device);
    if (!context) return opened(failure(context.error()));
    return opened(cuda_pinned(*std::move(context)));
  }

  /// Errors: `out_of_memory`, `driver_failure`.
  [[nodiscard]] result<address> allocate(bytes n) noexcept {
    void* p = nullptr;
    CUresult const r = context_.with_current_beside_captures(
        [&](cuda_driver const& d) noexcept { return d.host_allocate(&p, n, CU_MEMHOSTALLOC_PORTABLE); });
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuMemHostAlloc");
    return to_address(p);
  }
  [[nodiscard]] result<void> deallocate(address at, bytes) noexcept {
    CUresult const r = context_.with_current_beside_captures(
        [&](cuda_driver const& d) noexcept { return d.host_free(to_pointer(at)); });
    return to_quiet_result(r, "cuMemFreeHost");
  }

 private:
  explicit cuda_pinned(cuda_context&& context) noexcept : context_(std::move(context)) {}

  cuda_context context_;
};
static_assert(MemorySource<cuda_pinned>);

}  // namespace gmlake
