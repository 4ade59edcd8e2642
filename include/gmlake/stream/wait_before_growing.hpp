#pragma once
/// Wait on the device rather than grow, but rather stitch than wait: the default. Memory is what the user is short of;
/// streams stay apart as long as that costs none.

#include "gmlake/stream/wait_policy.hpp"

namespace gmlake {

struct wait_before_growing {
  [[nodiscard]] bool before_stitching() const noexcept { return false; }
  [[nodiscard]] bool before_growing() const noexcept { return true; }
};
static_assert(WaitPolicy<wait_before_growing>);

}  // namespace gmlake
