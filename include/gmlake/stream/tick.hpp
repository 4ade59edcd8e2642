#pragma once
/// How a free block says from when on it may be used: by a stream and a point in the order of frees.

#include <cstdint>

namespace gmlake {

/// A point in the order of frees; see `timeline`.
using tick = std::uint64_t;

/// A stream's place in the timeline's table.
using stream_index = std::uint32_t;

/// The place of no stream: what is free for all is on its shelf.
inline constexpr stream_index nobody = 0;

}  // namespace gmlake
