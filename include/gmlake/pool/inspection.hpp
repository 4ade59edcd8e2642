#pragma once
/// Looking into a pool: its figures, a copy of its state, and a walk over every invariant. Nothing here changes
/// anything.

#include <algorithm>

#include "gmlake/core/address_map.hpp"
#include "gmlake/observe/snapshot.hpp"
#include "gmlake/pool/pool_parts.hpp"

namespace gmlake {

template <PoolConfig Config>
[[nodiscard]] pool_stats stats_of(pool_parts<Config> const& p) noexcept {
  pool_stats s;
  if constexpr (CountingObserver<typename Config::observer>) {
    s = p.observer.seen();
  } else {
    s.reserved.now = s.reserved.peak = p.space.home().reserved();
  }
  s.stitches_live = p.stitches.live();
  s.stitches_cached = p.stitches.idle().count;
  s.device_waits = p.space.time().device_waits();
  s.host_waits = p.space.time().host_waits();
  s.retries = p.retries;
  s.driver = p.backend.usage();
  return s;
}

template <PoolConfig Config>
[[nodiscard]] bytes free_chunks_of(pool_parts<Config> const& p) noexcept {
  bytes sum = 0;
  for (range const& r : p.space.home().ranges()) {
    for (chunk const* c = r.first_chunk; c != nullptr; c = c->next) {
      block const* b = c->first;
      while (b != nullptr && b->state == block_state::free && b->end() < c->end()) b = b->next;
      if (b != nullptr && b->state == block_state::free) sum += c->size;
    }
  }
  return sum;
}

template <PoolConfig Config>
[[nodiscard]] pool_snapshot snapshot_of(pool_parts<Config> const& p) {
  auto const& time = p.space.time();
  pool_snapshot shot;
  for (range const& r : p.space.home().ranges()) {
    shot.ranges.push_back(r.begin);
    for (chunk const* c = r.first_chunk; c != nullptr; c = c->next) shot.chunks.push_back({c->home, c->size});
    for (block const* b = r.first; b != nullptr; b = b->next) {
      bool const owned = b->state == block_state::live || b->state == block_state::free;
      shot.blocks.push_back({.begin = b->begin,
                             .size = b->size,
                             .requested = b->state == block_state::live ? b->requested : 0,
                             .owner = owned ? time.name(b->on) : stream{},
                             .state = b->state,
                             .pending = b->state == block_state::free && (b->parked || !time.passed(b->on, b->stamp)),
                             .parked = b->parked});
    }
  }
  for (stitch const& s : p.stitches.all()) {
    stitch_snapshot t{
        .begin = s.begin, .size = s.size, .vacated = s.vacated, .live = s.serves != nullptr, .extents = {}};
    if (s.serves != nullptr) {
      t.block = s.serves->begin;
      t.served = s.serves->size;
      t.parked = s.serves->parked;
      t.requested = s.serves->requested;
      t.owner = time.name(s.serves->on);
      t.planned = s.serves->state == block_state::taken;
    }
    for (std::size_t i = 0; i < s.count; ++i) t.extents.push_back({s.chunks[i]->home, s.chunks[i]->size});
    shot.stitches.push_back(std::move(t));
  }
  std::ranges::sort(shot.ranges);
  std::ranges::sort(shot.chunks, {}, &chunk_snapshot::home);
  std::ranges::sort(shot.blocks, {}, &block_snapshot::begin);
  return shot;
}

/// The first broken invariant of one range, or null.
template <StreamPolicy Streams>
[[nodiscard]] char const* find_fault(timeline<Streams> const& time, range const& r, block const* fresh, bytes& reserved,
                                     bytes& free, std::size_t& live) noexcept {
  address at = r.begin;
  block const* before = nullptr;
  chunk const* beneath = r.first_chunk;
  for (block const* b = r.first; b != nullptr; before = b, b = b->next) {
    if (b->begin != at || b->size == 0 || b->previous != before || b->in != &r) return "blocks tile their range";
    if (!is_aligned(b->begin, 512) || !is_aligned(b->size, 512)) return "blocks are aligned";
    while (beneath != nullptr && beneath->end() <= b->begin) beneath = beneath->next;
    bool const hole = b->state == block_state::hole;
    if (hole != (b->first_chunk == nullptr)) return "holes and only holes have no chunk";
    if (hole && beneath != nullptr && beneath->home < b->end()) return "no chunk lies in a hole";
    if (!hole && b->first_chunk != beneath) return "a block points to the chunk beneath its beginning";
    if (hole && before != nullptr && before->state == block_state::hole) return "holes that touch are one";
    if (b->state == block_state::free && !b->parked) free += b->size;
    // Those of a stream that others waited for, which another one has taken the place of, have to be settled first.
    bool const unsettled = before != nullptr && before->waiting && time.passed(before->on, before->stamp);
    if (b->state == block_state::free && !b->parked && before != nullptr && before->state == block_state::free &&
        !before->parked && b != fresh && before != fresh && before->on == b->on && !unsettled &&
        (before->stamp == b->stamp || !time.apart(b->on))) {
      return "free neighbours on one shelf are one";
    }
    if (b->state == block_state::live) ++live;
    if (b->view != nullptr) return "a block in a range is no stitch's";
    if (b->waiting && (b->state != block_state::free || b->parked)) return "only shelved blocks wait";
    at = b->end();
  }
  if (r.last != before || at != r.grown_end()) return "blocks end where the range has grown to";
  chunk const* last = nullptr;
  for (chunk const* c = r.first_chunk; c != nullptr; last = c, c = c->next) {
    if (c->previous != last || c->in != &r) return "chunks are linked in their range";
    if (last != nullptr && c->home < last->end()) return "chunks don't overlap";
    if (c->first == nullptr || c->first->begin > c->home || c->first->end() <= c->home) {
      return "a chunk points to the block on its first byte";
    }
    reserved += c->size;
  }
  return r.last_chunk == last ? nullptr : "the last chunk is the last";
}

template <PoolConfig Config>
[[nodiscard]] char const* find_fault(pool_parts<Config> const& p, address_map<block> const& map) noexcept {
  bytes reserved = 0;
  bytes free = 0;
  std::size_t live = 0;
  for (range const& r : p.space.home().ranges()) {
    if (char const* fault = find_fault(p.space.time(), r, p.space.fresh(), reserved, free, live)) return fault;
  }
  if (reserved != p.space.home().reserved()) return "reserved bytes are the chunks'";
  if (free != p.space.total()) return "free bytes are the shelved blocks'";
  if (char const* fault = p.space.find_fault(free)) return fault;
  idle_stitches idle;
  std::size_t serving = 0;
  std::size_t mapped = 0;
  for (stitch const& s : p.stitches.all()) {
    bytes size = 0;
    for (std::size_t i = 0; i < s.count; ++i) size += s.chunks[i]->size;
    if (size != s.size || s.size > s.room) return "a stitch maps its chunks side by side";
    if (s.movable ? s.base != 0 : s.vacated) return "only movable stitches are vacated";
    if (s.vacated && s.serves == nullptr) return "only blocks are vacated";
    if (s.lent > (s.vacated && s.count == 0 ? s.room : 0)) return "only vacated stitches show other memory";
    if (!s.vacated && s.base >= s.chunks[0]->size) return "a stitch begins on its first chunk";
    mapped += s.count;
    if (s.serves == nullptr) {
      ++idle.count;
      idle.mappings += s.count;
      idle.addresses += s.size;
      continue;
    }
    ++serving;
    block const& b = *s.serves;
    if (b.view != &s || b.begin != s.begin + s.base || b.in != nullptr || (!s.vacated && b.size > s.capacity())) {
      return "a stitch and its block agree";
    }
    if (b.state == block_state::taken) continue;  // an arena's view: what it holds, the arena knows
    bytes taken = 0;
    for (block const* t = b.next_taken; t != nullptr; t = t->next_taken) {
      if (t->state != block_state::taken) return "a stitch's memory is taken";
      taken += t->size;
    }
    if (taken != (s.vacated ? 0 : b.size)) return "a stitch takes as much as it serves";
    if (b.state == block_state::live) ++live;
  }
  if (serving != p.stitches.live()) return "stitches that serve are counted";
  if (idle.count != p.stitches.idle().count || idle.mappings != p.stitches.idle().mappings ||
      idle.addresses != p.stitches.idle().addresses) {
    return "idle stitches are counted";
  }
  for (range const& r : p.space.home().ranges()) {
    for (chunk const* c = r.first_chunk; c != nullptr; c = c->next) {
      mapped -= c->stitches;
      std::size_t listed = 0;
      for (mapped_chunk const* m = c->mappings; m != nullptr; m = m->next) listed += m->of == c ? 1 : 0;
      if (listed != c->stitches) return "chunks list who maps them";
    }
  }
  if (mapped != 0) return "chunks count their stitches";
  if (live != map.size()) return "live blocks are in the map";
  bool known = true;
  map.for_each([&](block const& b) { known = known && map.find(b.begin) == &b && b.state == block_state::live; });
  return known ? nullptr : "the map knows live blocks by their address";
}

}  // namespace gmlake
