#pragma once
/// A static allocation problem, and its solution, as values: buffers with a size and a time to live are to be given
/// offsets, such that no two share a byte at the same time, in as little height as possible. Nothing here knows of
/// pools, addresses or devices.
///
/// Time is counted in events from 0; a buffer lives over [lower, upper). Where the problem is one step of a repeated
/// program, `period` is the step's length, and a buffer with upper > period wraps: it lives over [lower, period) and
/// over [0, upper − period) of the next step, at one offset.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "gmlake/core/types.hpp"

namespace gmlake::plan {

/// A point in time: the number of events before it.
using instant = std::uint64_t;

struct buffer {
  instant lower = 0;
  instant upper = 0;  ///< after lower, and at most a period later
  bytes size = 0;     ///< positive
  /// Of the offset; a power of two. 1: none.
  bytes alignment = 1;
  std::uint32_t stream = 0;    ///< whose work uses it
  std::optional<bytes> fixed;  ///< the offset that it has already, which packers keep
};

struct problem {
  std::vector<buffer> buffers;
  instant period = 0;  ///< 0: not repeated, nothing wraps
  /// Buffers of different streams may share bytes only with so many events between the one's end and the other's
  /// beginning. 0: streams don't matter, since whoever carries out the plan makes them wait.
  instant stream_gap = 0;

  static constexpr instant never = std::numeric_limits<instant>::max();  ///< a gap: streams never share
};

struct solution {
  std::vector<bytes> offsets;  ///< by buffer
  bytes height = 0;            ///< the highest end of a buffer
};

}  // namespace gmlake::plan
