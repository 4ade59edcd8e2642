#pragma once
/// Never stitch: the lake alone, as PyTorch's expandable segments have it.

#include "gmlake/stitch/stitch_policy.hpp"

namespace gmlake {

struct no_stitch {
  [[nodiscard]] bool stitches(bytes, bool) const noexcept { return false; }
  [[nodiscard]] bool reuses(bytes, bytes) const noexcept { return false; }
  [[nodiscard]] stitch_choice choose(stitch_candidates, bytes n, std::span<extent>) const noexcept { return {0, n}; }
};
static_assert(StitchPolicy<no_stitch>);

}  // namespace gmlake
