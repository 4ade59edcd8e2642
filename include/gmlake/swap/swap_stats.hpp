#pragma once
/// What swapping has done so far.

#include <cstdint>

#include "gmlake/core/types.hpp"

namespace gmlake::swap {

struct swap_stats {
  bytes swappable = 0;            ///< in live swappable blocks
  bytes absent = 0;               ///< of those, without device memory now
  bytes in_place = 0;             ///< of those, served from their host copies
  bytes on_host = 0;              ///< host memory that holds copies now
  bytes on_file = 0;              ///< and what lies in the file below it
  std::uint64_t departures = 0;   ///< blocks that have left
  std::uint64_t arrivals = 0;     ///< and come back
  std::uint64_t called_back = 0;  ///< departures given up because the block was wanted
  std::uint64_t misses = 0;       ///< accesses that found a block absent
  std::uint64_t refusals = 0;     ///< departures that the host had no memory for
  std::uint64_t filed = 0;        ///< copies that were written to the file
  std::uint64_t failures = 0;     ///< moves that the driver failed, a watcher or the file
  bytes copied_out = 0;
  bytes copied_in = 0;
};

}  // namespace gmlake::swap
