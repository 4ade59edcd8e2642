#pragma once
/// An extent: the part of one chunk that a stitch takes. All of it, or for a stitch's first extent a free end of the
/// chunk, for its last a free beginning: a handle can only be mapped whole, but what sticks out at either end of the
/// view stays free in the lake.

#include "gmlake/lake/chunk.hpp"

namespace gmlake {

struct extent {
  chunk* of = nullptr;
  bytes offset = 0;  ///< within the chunk
  bytes size = 0;

  [[nodiscard]] address begin() const noexcept { return of->home + offset; }
  [[nodiscard]] address end() const noexcept { return begin() + size; }
  [[nodiscard]] bool whole() const noexcept { return size == of->size; }
};

}  // namespace gmlake
