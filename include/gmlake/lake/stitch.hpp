#pragma once
/// A stitch: a reservation that maps chunks a second time, side by side, so that memory from anywhere in the lake reads
/// as one block. It serves one block at a time; idle, it keeps its mapping, and the lake does what it likes with the
/// memory beneath.
///
///     stitch   base ..|  A  |  B  |  C  |          one contiguous view
///                        |     |      \ .
///     lake       ..|live,A|..|##B##|##C,free|..    A: a chunk's free end, C: a chunk's free beginning

#include <cstddef>
#include <memory>
#include <span>

#include "gmlake/core/intrusive.hpp"
#include "gmlake/lake/block.hpp"
#include "gmlake/lake/foresight.hpp"
#include "gmlake/lake/mapped_chunk.hpp"

namespace gmlake {

struct stitch {
  address begin{};  ///< of the reservation: where the first chunk is mapped
  bytes size = 0;   ///< mapped: the chunks' sizes, added up
  bytes room = 0;   ///< of the reservation; more than `size` where other chunks may have to find room
  bytes base = 0;   ///< where blocks begin: the first extent's offset in its chunk
  std::unique_ptr<mapped_chunk[]> chunks;
  std::size_t count = 0;    ///< of chunks
  block* serves = nullptr;  ///< none while idle
  tick last_use = 0;        ///< idle: the stamp of its last free; what was freed up to then may still be in use
  set_hook by_size;         ///< idle: in the cache
  set_hook by_number;       ///< idle and foreseen: in the cache
  list_hook by_use;         ///< idle: for eviction policies
  list_hook in_all;
  bytes lent = 0;        ///< vacated: mapped there of memory that is not the lake's
  bool movable = false;  ///< its chunks can be replaced; it begins on a chunk's beginning then
  foresight foreseen;    ///< movable: of the block that it serves or has served last
  bool vacated = false;  ///< its block has addresses and no memory; what chunks are still mapped are others' by now
  stream_index behind = nobody;  ///< vacated: whose work, up to the stamp, may still read that memory at its addresses
  tick behind_stamp = 0;

  [[nodiscard]] std::span<mapped_chunk> mapped() const noexcept { return {chunks.get(), count}; }

  /// What it can serve from `base` on. A chunk that was taken by its free end and its free beginning, with something
  /// live between, is mapped first and last: then only what lies before `base` in it can be used a second time.
  [[nodiscard]] bytes capacity() const noexcept {
    bool const bites_its_tail = count > 1 && chunks[0].of == chunks[count - 1].of;
    return size - (bites_its_tail ? chunks[0]->size : base);
  }
};

}  // namespace gmlake
