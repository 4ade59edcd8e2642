#pragma once
/// A block: a run of addresses in one range of the lake, all of it in one state. The blocks of a range tile it from its
/// beginning to where it has grown; free neighbours on the same shelf are never apart.
///
/// The block that stands for a live stitch is the one exception: it lies at the stitch's address, in no range, and the
/// memory beneath it is `taken` from the lake.

#include <cstdint>

#include "gmlake/core/intrusive.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/stream/tick.hpp"

namespace gmlake {

struct chunk;
struct range;
struct stitch;
struct use;

enum class block_state : std::uint8_t {
  free,   ///< memory that may be given out, once its stamp allows it
  live,   ///< handed out at this very address
  taken,  ///< on no shelf: its memory serves a stitch or a plan, or has just been created
  hole,   ///< addresses without memory: the home was vacated
};

struct block {
  address begin{};
  bytes size = 0;
  bytes requested = 0;        ///< live: as asked for; taken by an arena: its offset in the segment
  block* previous = nullptr;  ///< its neighbours in the range, by address
  block* next = nullptr;
  chunk* first_chunk = nullptr;  ///< the chunk that holds `begin`; none for a hole
  range* in = nullptr;           ///< none for the block of a live stitch
  tick stamp = 0;                ///< free: usable elsewhere once the shelf's stream has passed this point
  stream_index on = 0;           ///< live: the stream it was handed out to; free: the stream whose shelf it is on
  block_state state = block_state::free;
  bool waiting = false;  ///< free: among those whose stamp is not known to be reached
  bool parked = false;   ///< free in name: other streams' recorded uses keep it off every shelf

  stitch* view = nullptr;  ///< the block of a live stitch: which
  block* next_taken =
      nullptr;               ///< the blocks that one stitch took, in its order; the stitch's own block heads the list
  use* recorded = nullptr;   ///< live: other streams' uses, by `record_stream`
  std::uint64_t number = 0;  ///< live: its request's place in the log of steps + 1; 0: none

  set_hook by_size;   ///< free: for split policies that keep trees; taken by an arena: among its pieces
  list_hook in_list;  ///< for split policies that keep lists
  list_hook by_age;   ///< free and waiting: in order of stamps

  [[nodiscard]] address end() const noexcept { return begin + size; }
};

/// One stream's recorded use of a block that another stream was given.
struct use {
  use* next = nullptr;
  stream_index on = 0;
  tick stamp = 0;  ///< set when the block is freed
};

}  // namespace gmlake
