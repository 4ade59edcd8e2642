#pragma once
/// A chunk: one physical handle, mapped at its home in the lake from its creation until it is released.

#include <cstdint>

#include "gmlake/core/types.hpp"

namespace gmlake {

struct block;
struct range;

struct chunk {
  handle memory{};
  address home{};
  bytes size = 0;
  block* first = nullptr;     ///< the block that holds the home's first byte
  chunk* previous = nullptr;  ///< its neighbours in the same range, by address; holes may lie between
  chunk* next = nullptr;
  range* in = nullptr;
  std::uint32_t stitches = 0;  ///< how many stitches map it, live and idle
  std::uint32_t looked = 0;    ///< the look at what is foreseen for which `wanted` holds
  std::uint64_t wanted = 0;    ///< when a mapping that has no memory now wants it, at the earliest
  std::uint64_t ready = 0;     ///< when who has left it is foreseen to be through with it

  [[nodiscard]] address end() const noexcept { return home + size; }
};

}  // namespace gmlake
