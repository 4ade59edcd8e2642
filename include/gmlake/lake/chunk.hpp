#pragma once
/// A chunk: one physical handle, mapped at its home in the lake from its creation until it is released.

#include <cstdint>

#include "gmlake/core/types.hpp"

namespace gmlake {

struct block;
struct mapped_chunk;
struct range;

struct chunk {
  handle memory{};
  address home{};
  bytes size = 0;
  block* first = nullptr;     ///< the block that holds the home's first byte
  chunk* previous = nullptr;  ///< its neighbours in the same range, by address; holes may lie between
  chunk* next = nullptr;
  range* in = nullptr;
  mapped_chunk* mappings = nullptr;  ///< by stitches, live and idle
  std::uint32_t stitches = 0;        ///< how many those are
  bool looked_at = false;            ///< `wanted` holds, while that is to come
  std::uint64_t wanted = 0;          ///< when a mapping that has no memory now wants it, at the earliest
  std::uint64_t ready = 0;           ///< when who has left it is foreseen to be through with it

  [[nodiscard]] address end() const noexcept { return home + size; }
};

}  // namespace gmlake
