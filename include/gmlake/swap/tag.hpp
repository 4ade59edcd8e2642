#pragma once
/// Names a group of blocks.

#include <cstdint>

namespace gmlake::swap {

/// Which blocks are paused and resumed together.
enum class tag : std::uint32_t {};

}  // namespace gmlake::swap
