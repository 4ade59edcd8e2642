#pragma once
/// The sizes by which PyTorch's caching allocator rounds requests and cuts segments, shared by both models of it.
///
/// Source: PyTorch 2.11, c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h, with the default settings:
/// no splitting limit, no rounding to divisions of powers of two, no garbage collection. Pure arithmetic, nothing else.

#include <limits>

#include "gmlake/core/alignment.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake::pytorch_rules {

inline constexpr bytes block_rounding = 512;     ///< every block's size is a multiple; `kMinBlockSize`
inline constexpr bytes small_limit = 1_MiB;      ///< the largest block of the small pool; `kSmallSize`
inline constexpr bytes small_segment = 2_MiB;    ///< what the small pool grows by; `kSmallBuffer`
inline constexpr bytes medium_limit = 10_MiB;    ///< a larger request no longer shares a segment; `kMinLargeAlloc`
inline constexpr bytes medium_segment = 20_MiB;  ///< a shared segment of the large pool; `kLargeBuffer`
inline constexpr bytes large_rounding = 2_MiB;   ///< of a segment made for one large request; `kRoundLarge`

/// Larger requests overflow when they are rounded: they can't be honoured.
inline constexpr bytes largest_request = std::numeric_limits<bytes>::max() - medium_segment;

/// The size of the block that serves a request of n bytes; an empty request takes a block too (`round_size`).
[[nodiscard]] constexpr bytes block_size(bytes n) noexcept {
  return n < block_rounding ? block_rounding : align_up(n, block_rounding);
}

/// Which of its two pools serves a block of this size (`get_pool`).
[[nodiscard]] constexpr bool is_small(bytes block) noexcept { return block <= small_limit; }

/// The size of a new segment for a block of this size (`get_allocation_size`).
[[nodiscard]] constexpr bytes segment_size(bytes block) noexcept {
  if (is_small(block)) return small_segment;
  if (block < medium_limit) return medium_segment;
  return align_up(block, large_rounding);
}

}  // namespace gmlake::pytorch_rules
