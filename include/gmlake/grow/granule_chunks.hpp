#pragma once
/// Every growth a range of its own, made of chunks of one granule: GMLake's primitive blocks (§3.2 of its paper).

#include "gmlake/grow/growth_policy.hpp"

namespace gmlake {

struct granule_chunks {
  [[nodiscard]] bytes chunk_size(growth const& g) noexcept { return g.granule; }
  [[nodiscard]] bool separate() const noexcept { return true; }
};
static_assert(GrowthPolicy<granule_chunks>);

}  // namespace gmlake
