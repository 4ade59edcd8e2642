#pragma once
/// What a pool's user chooses beside its policies.

#include <limits>

#include "gmlake/core/types.hpp"
#include "gmlake/lake/foresight.hpp"
#include "gmlake/pool/shared_limit.hpp"

namespace gmlake {

struct pool_options {
  bytes limit = std::numeric_limits<bytes>::max();  ///< physical memory that the pool may hold at any time
  /// Requests of up to this size get chunks apart from the others, of `small_chunk` each, so that a small block that
  /// stays does not keep a large chunk from being stitched. 0: all share.
  bytes small_limit = 256_KiB;
  bytes small_chunk = 2_MiB;       ///< rounded up to the granule
  bytes movable_chunk = 0;         ///< size of chunks for movable blocks; 0: the growth policy's
  bytes home_addresses = 256_GiB;  ///< reserved at a time for the chunks' homes; addresses, not memory
  /// A limit that this pool shares with others, beside its own; it outlives the pool. Null: none.
  shared_limit* shared = nullptr;
  /// Whatever was mapped once stays mapped, at the same addresses, until the pool is destroyed: no stitch is evicted
  /// and no chunk released. For memory whose addresses others have noted, such as a captured CUDA graph.
  bool pinned = false;
};

/// How a block's memory is to be made.
enum class placement : std::uint8_t {
  anywhere,    ///< split from the lake, or stitched
  own_chunks,  ///< whole chunks, which no other block shares while this one lives
  one_handle,  ///< a single chunk, for memory that will be registered (NCCL, RDMA) or exported
  movable,     ///< a view of its own, whose memory can be taken away and replaced (`vacate`, `refill`)
};

/// What becomes of a movable block's mapping when its memory is taken away.
enum class vacating : std::uint8_t {
  unmap,  ///< whatever touches the block is at fault
  leave,  ///< it stays until the block has memory again, which takes few driver calls or none where that is mostly what
          ///< it had; what touches the block meanwhile touches other blocks' memory
};

struct request {
  bytes size = 0;
  stream on{};
  bytes alignment = 512;  ///< a power of two; at least 512 is always given
  placement where = placement::anywhere;
  /// False: it fails rather than come to the last resorts, which may wait for all device work, and asks nobody for
  /// help.
  bool insist = true;
  foresight foreseen = {};  ///< of a movable block
};

}  // namespace gmlake
