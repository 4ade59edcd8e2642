#pragma once
/// Chunks of one size.

#include "gmlake/grow/growth_policy.hpp"

namespace gmlake {

class fixed_chunks {
 public:
  static constexpr bytes default_size = 32_MiB;

  explicit fixed_chunks(bytes size = default_size) noexcept : size_(size) {}

  [[nodiscard]] bytes chunk_size(growth const&) const noexcept { return size_; }
  [[nodiscard]] bool separate() const noexcept { return false; }

 private:
  bytes size_;
};
static_assert(GrowthPolicy<fixed_chunks>);

}  // namespace gmlake
