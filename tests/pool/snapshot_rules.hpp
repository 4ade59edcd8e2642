#pragma once
/// What a snapshot must show, seen from outside: blocks tile what they cover, memory lies beneath all but holes, live
/// stitches are what the `taken` blocks serve, and the sums are those of the statistics.

#include <algorithm>
#include <string>

#include "gmlake/observe/snapshot.hpp"
#include "gmlake/observe/stats.hpp"

namespace gmlake::test {

/// The chunk that holds [begin, begin + n), or null.
[[nodiscard]] inline chunk_snapshot const* chunk_of(pool_snapshot const& shot, address begin, bytes n) {
  auto const after = std::ranges::upper_bound(shot.chunks, begin, {}, &chunk_snapshot::home);
  if (after == shot.chunks.begin()) return nullptr;
  chunk_snapshot const& c = *std::prev(after);
  return begin + n <= c.home + c.size ? &c : nullptr;
}

/// The bytes of [begin, begin + n) that lie on chunks.
[[nodiscard]] inline bytes backed(pool_snapshot const& shot, address begin, bytes n) {
  bytes sum = 0;
  for (chunk_snapshot const& c : shot.chunks) {
    address const low = std::max(c.home, begin);
    address const high = std::min(c.home + c.size, begin + n);
    if (low < high) sum += high - low;
  }
  return sum;
}

/// The first rule that the snapshot breaks; empty where there is none.
[[nodiscard]] inline std::string broken_rule(pool_snapshot const& shot, pool_stats const& stats) {
  bytes reserved = 0;
  for (std::size_t i = 0; i < shot.chunks.size(); ++i) {
    reserved += shot.chunks[i].size;
    if (i > 0 && shot.chunks[i - 1].home + shot.chunks[i - 1].size > shot.chunks[i].home) return "chunks don't overlap";
  }
  if (reserved != stats.reserved.now) return "what is reserved are the chunks";

  bytes covered = 0;
  bytes live = 0;
  bytes taken = 0;
  bytes requested = 0;
  std::uint64_t blocks = 0;
  address end{};
  for (block_snapshot const& b : shot.blocks) {
    if (b.begin < end) return "blocks don't overlap";
    end = b.begin + b.size;
    bytes const memory = backed(shot, b.begin, b.size);
    if (memory != (b.state == block_state::hole ? 0 : b.size)) return "memory lies beneath all blocks but holes";
    covered += memory;
    if (b.state == block_state::taken) taken += b.size;
    if (b.state != block_state::live && b.requested != 0) return "only live blocks were requested";
    if (b.state != block_state::live) continue;
    live += b.size;
    requested += b.requested;
    ++blocks;
  }
  if (covered != reserved) return "blocks cover all memory";

  bytes mapped = reserved;
  std::uint64_t serving = 0;
  bytes vacated = 0;
  for (stitch_snapshot const& s : shot.stitches) {
    bytes size = 0;
    for (extent_snapshot const& e : s.extents) {
      size += e.size;
      chunk_snapshot const* const c = chunk_of(shot, e.home, e.size);
      if (c == nullptr || c->home != e.home || c->size != e.size) return "extents are chunks";
    }
    if (size != s.size) return "a stitch is as large as its extents";
    mapped += size;
    if (!s.live) continue;
    ++serving;
    requested += s.requested;
    if (s.vacated) vacated += s.served;
    else if (s.extents.empty()) return "blocks that have memory lie on extents";
  }
  address planned_end{};
  for (planned_run const& p : shot.planned) {
    if (p.held && p.begin < planned_end) return "what plans hold doesn't overlap";
    if (p.held) planned_end = p.begin + p.size;
  }
  planned_end = {};
  for (planned_block const& b : shot.planned_live) {
    if (b.begin < planned_end || b.requested > b.size) return "plans' blocks don't overlap";
    planned_end = b.begin + b.size;
    bool const inside = std::ranges::any_of(
        shot.planned, [&](planned_run const& p) { return b.begin >= p.begin && planned_end <= p.begin + p.size; });
    if (!inside) return "plans' blocks lie in their memory";
    requested += b.requested;
    ++blocks;
  }

  if (serving != stats.stitches_live) return "live stitches are counted";
  if (shot.stitches.size() - serving != stats.stitches_cached) return "idle stitches are counted";
  if (mapped != stats.mapped.now) return "mapped are homes and stitches";
  if (requested != stats.requested.now) return "what was requested is what the live blocks are for";
  if (stats.live.now > live + taken + vacated) return "live bytes are live, taken or vacated blocks'";
  if (blocks > stats.allocations - stats.deallocations) return "live blocks are counted";
  if (stats.live.peak < stats.live.now || stats.reserved.peak < stats.reserved.now ||
      stats.requested.peak < stats.requested.now || stats.mapped.peak < stats.mapped.now) {
    return "no peak lies below what is there";
  }
  return {};
}

}  // namespace gmlake::test
