#pragma once
/// Where everything in a pool is at one moment, as plain values: a copy, which the pool's later life does not change.
///
/// Ranges, chunks and blocks are in order of address. The blocks tile the pool's home ranges: what no block covers is
/// not the pool's. Every extent of a stitch lies in `taken` blocks; every live stitch serves one block, of the same
/// address, that is not among the tiles.
///
///     chunks     |  c0 |  c1 |  c2 |     |  c4 |
///     blocks     |live |taken|free | hole|taken|         taken: extents of
///     stitch                 address ->  | c1  |  c4 |   one contiguous view

#include <concepts>
#include <cstdint>
#include <vector>

#include "gmlake/core/types.hpp"
#include "gmlake/lake/block.hpp"

namespace gmlake {

/// A physical chunk at its home.
struct chunk_snapshot {
  address home{};  ///< where it is mapped besides stitches; none where it has been moved out
  bytes size = 0;
};

struct block_snapshot {
  address begin{};
  bytes size = 0;       ///< as placed
  bytes requested = 0;  ///< as asked for; 0 unless live
  stream owner{};       ///< of a live block: whom it was handed out to; of a pending one: whose work must pass first
  block_state state = block_state::free;
  bool pending = false;  ///< free, but work queued before its free may still use it
  bool parked = false;   ///< pending, and kept from its own stream too, because of uses recorded on others
};

/// Whole chunks in a row, as a stitch took them.
struct extent_snapshot {
  address home{};  ///< in the lake
  bytes size = 0;
};

struct stitch_snapshot {
  address begin{};  ///< of the contiguous view
  bytes size = 0;
  bytes requested = 0;  ///< by the block that it serves; 0 while idle
  stream owner{};
  address block{};       ///< that it serves, within the view; none while idle
  bytes served = 0;      ///< that block's size as placed
  bool parked = false;   ///< its block was freed, and is kept because of uses recorded on other streams
  bool planned = false;  ///< plans' blocks lie in it: see `pool_snapshot::planned`; parts may be in other use
  bool vacated = false;  ///< its block has no memory: what is mapped there is in other use
  bool live = false;     ///< idle ones are kept for the next request of their size; their extents may be in other use
  std::vector<extent_snapshot> extents;  ///< in the view's order; their sizes add up to `size`
};

/// Addresses that a plan holds: taken memory at home, or a stitch's view of it.
struct planned_run {
  address begin{};
  bytes size = 0;
  bool held = true;  ///< all of it; else the plan is being left, and parts have gone back
};

/// A live block in such addresses.
struct planned_block {
  address begin{};
  bytes size = 0;
  bytes requested = 0;
  stream owner{};
};

struct pool_snapshot {
  std::vector<address> ranges;  ///< where reservations of homes begin; no block lies in two
  std::vector<chunk_snapshot> chunks;
  std::vector<block_snapshot> blocks;
  std::vector<stitch_snapshot> stitches;
  std::vector<planned_run> planned;         ///< none, or where a plan is followed or being left; no two overlap
  std::vector<planned_block> planned_live;  ///< in order of address; each lies in one of `planned`
};

/// Pools that can tell. Linear in what they hold; throws only for want of host memory.
template <class P>
concept SnapshotPool = requires(P const& c) {
  { c.snapshot() } -> std::same_as<pool_snapshot>;
};

}  // namespace gmlake
