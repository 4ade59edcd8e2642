#pragma once
/// A gate for each CUDA device, for all in the process that copy out of its memory or map it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include "gmlake/backend/copy_gate.hpp"
#include "gmlake/backend/cuda_context.hpp"

namespace gmlake {

namespace detail {

/// One page, since the driver pins pages. It outlives all that may close a gate, and all copies.
struct alignas(4096) cuda_copy_gates {
  static constexpr std::size_t most_devices = 64;
  std::array<copy_gate, most_devices> of;
};
static_assert(sizeof(cuda_copy_gates) == 4096 && sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

[[nodiscard]] inline cuda_copy_gates& all_cuda_copy_gates() noexcept {
  static cuda_copy_gates all;
  return all;
}

}  // namespace detail

/// The device's, by ordinal; null for those that have none.
[[nodiscard]] inline copy_gate* cuda_copy_gate(int device) noexcept {
  auto& all = detail::all_cuda_copy_gates().of;
  return device >= 0 && static_cast<std::size_t>(device) < all.size() ? &all[static_cast<std::size_t>(device)]
                                                                      : nullptr;
}

/// Lets the device see its gate, from then to the process's end; called again, it does nothing. Whether it can.
[[nodiscard]] inline bool pin_cuda_copy_gates(cuda_context const& context) noexcept {
  return context.with_current_beside_captures([](cuda_driver const& d) noexcept {
    auto& all = detail::all_cuda_copy_gates();
    CUresult const r = d.host_register(&all, sizeof all, CU_MEMHOSTREGISTER_PORTABLE);
    return r == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED ? CUDA_SUCCESS : r;
  }) == CUDA_SUCCESS;
}

}  // namespace gmlake
