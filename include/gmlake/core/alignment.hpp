#pragma once
/// Rounding of sizes and addresses, mostly to powers of two, with overflow made visible.

#include <bit>
#include <limits>

#include "gmlake/core/types.hpp"

namespace gmlake {

[[nodiscard]] constexpr bool is_aligned(bytes n, bytes alignment) noexcept { return (n & (alignment - 1)) == 0; }
[[nodiscard]] constexpr bool is_aligned(address a, bytes alignment) noexcept {
  return is_aligned(to_integer(a), alignment);
}

/// Rounds down to a multiple of `alignment`, a power of two.
[[nodiscard]] constexpr bytes align_down(bytes n, bytes alignment) noexcept { return n & ~(alignment - 1); }
[[nodiscard]] constexpr address align_down(address a, bytes alignment) noexcept {
  return static_cast<address>(align_down(to_integer(a), alignment));
}

/// Rounds up to a multiple of `alignment`, a power of two. The caller has checked `fits_aligned`.
[[nodiscard]] constexpr bytes align_up(bytes n, bytes alignment) noexcept {
  return align_down(n + alignment - 1, alignment);
}
[[nodiscard]] constexpr address align_up(address a, bytes alignment) noexcept {
  return static_cast<address>(align_up(to_integer(a), alignment));
}

/// Rounds up to a multiple of `unit`, which need be no power of two. The sum of the two is representable.
[[nodiscard]] constexpr bytes round_up(bytes n, bytes unit) noexcept { return (n + unit - 1) / unit * unit; }

/// Whether `align_up(n, alignment)` is representable.
[[nodiscard]] constexpr bool fits_aligned(bytes n, bytes alignment) noexcept {
  return n <= std::numeric_limits<bytes>::max() - (alignment - 1);
}

}  // namespace gmlake
