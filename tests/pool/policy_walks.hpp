#pragma once
/// Walks over pools of every policy, combined pairwise: each two values of split, growth, stitching, and of waiting and
/// eviction together, meet in a pool. A file a split policy, so that they compile side by side.

#include "gmlake/grow/granule_chunks.hpp"
#include "gmlake/split/tlsf.hpp"
#include "gmlake/split/whole_granules.hpp"
#include "gmlake/stitch/no_stitch.hpp"
#include "gmlake/stream/grow_before_waiting.hpp"
#include "tests/pool/walk_suite.hpp"

namespace gmlake::test {

/// Rather waits than stitches.
struct wait_before_stitching {
  [[nodiscard]] bool before_stitching() const noexcept { return true; }
  [[nodiscard]] bool before_growing() const noexcept { return true; }
};
static_assert(WaitPolicy<wait_before_stitching>);

template <SplitPolicy Split, GrowthPolicy Growth, StitchPolicy Stitch, WaitPolicy Wait, EvictionPolicy Evict>
using walked = pool_config<borrowed_device, simulated_streams, Wait, Split, Growth, Stitch, Evict>;

}  // namespace gmlake::test
