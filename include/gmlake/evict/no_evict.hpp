#pragma once
/// Idle stitches stay mapped until memory or addresses run out.

#include "gmlake/evict/lru.hpp"

namespace gmlake {

class no_evict : public lru {
 public:
  no_evict() noexcept = default;

  [[nodiscard]] stitch* victim(idle_stitches const&) const noexcept { return nullptr; }
};
static_assert(EvictionPolicy<no_evict>);

}  // namespace gmlake
