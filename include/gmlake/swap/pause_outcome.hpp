#pragma once
/// What came of pausing or resuming a group of blocks.

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake::swap {

/// In bytes.
struct pause_outcome {
  bytes moved = 0;
  bytes stayed = 0;  ///< in blocks that could not move
  error why;         ///< the first reason; meaningless if none stayed
};

}  // namespace gmlake::swap
