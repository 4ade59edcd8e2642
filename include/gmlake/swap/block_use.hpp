#pragma once
/// What an operation does with a block, as a program announces it.

#include "gmlake/core/types.hpp"

namespace gmlake::swap {

struct block_use {
  address at{};  ///< where the block begins
  bool reads = false;
  bool writes = false;
};

}  // namespace gmlake::swap
