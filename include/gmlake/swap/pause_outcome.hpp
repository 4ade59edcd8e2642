#pragma once
/// What came of pausing or resuming a group of blocks.

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake::swap {

/// In bytes.
struct pause_outcome {
  bytes moved = 0;
  bytes stayed = 0;  ///< in blocks that could not move
  /// The first reason; where none stayed, of memory that has left and could not be given back to the device. Without a
  /// call: there is none.
  error why;
};

}  // namespace gmlake::swap
