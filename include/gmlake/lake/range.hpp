#pragma once
/// A range: one reservation of addresses that holds chunks at their homes, filled from its beginning. Blocks never
/// reach across ranges, so what must not mix (small blocks and large ones, or one block's own chunks and the rest)
/// gets ranges of its own.

#include <cstdint>

#include "gmlake/core/intrusive.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

struct block;
struct chunk;

/// What a range is for.
enum class area : std::uint8_t {
  large,  ///< blocks of any size above the small ones; their chunks can be stitched
  small,  ///< small blocks, which would spoil large chunks by outliving their neighbours
  own,    ///< one block that asked for chunks of its own
};

struct range {
  address begin{};
  bytes size = 0;
  bytes grown = 0;  ///< blocks tile [begin, begin + grown)
  area kind = area::large;
  block* first = nullptr;
  block* last = nullptr;
  chunk* first_chunk = nullptr;
  chunk* last_chunk = nullptr;
  list_hook in_all;

  [[nodiscard]] address end() const noexcept { return begin + size; }
  [[nodiscard]] address grown_end() const noexcept { return begin + grown; }
};

}  // namespace gmlake
