#pragma once
/// Every growth a range of its own, made of chunks of one size, if not told otherwise one granule: GMLake's primitive
/// blocks (§3.2 of its paper).

#include <algorithm>

#include "gmlake/grow/growth_policy.hpp"

namespace gmlake {

class granule_chunks {
 public:
  explicit granule_chunks(bytes size = 0) noexcept : size_(size) {}

  [[nodiscard]] bytes chunk_size(growth const& g) const noexcept { return std::max(size_, g.granule); }
  [[nodiscard]] bool separate() const noexcept { return true; }

 private:
  bytes size_;
};
static_assert(GrowthPolicy<granule_chunks>);

}  // namespace gmlake
