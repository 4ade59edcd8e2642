#pragma once
/// How a job makes a block's contents again, so that the block can leave without being copied.

#include <functional>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// Queues on the stream what writes all of the block of that address and size. Called without any lock, on the thread
/// that wants the block; it announces what else it uses by `pager::access`, which stays for as long as the operation
/// runs, may allocate and free, and must not throw. What it uses must not need the block itself to be made again. An
/// error is that of the call that wanted the block.
using recompute_callback = std::function<result<void>(address, bytes, stream)>;

struct recomputation {
  recompute_callback how;
  time takes{};  ///< of the device
};

}  // namespace gmlake::swap
