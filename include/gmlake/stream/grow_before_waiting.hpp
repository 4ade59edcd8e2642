#pragma once
/// Never tie streams together while the device has memory left, as PyTorch's own allocator does.

#include "gmlake/stream/wait_policy.hpp"

namespace gmlake {

struct grow_before_waiting {
  [[nodiscard]] bool before_stitching() const noexcept { return false; }
  [[nodiscard]] bool before_growing() const noexcept { return false; }
};
static_assert(WaitPolicy<grow_before_waiting>);

}  // namespace gmlake
