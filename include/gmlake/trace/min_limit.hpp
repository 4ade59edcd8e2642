#pragma once
/// The smallest byte limit under which a trace completes.
///
/// Completing is not monotone in the limit: a roomier pool may place blocks less luckily. So bisection alone could name
/// a limit just above which the trace fails. What is searched for is the smallest limit of a grid under which, and
/// under every larger one that was tried, the trace completes:
///
///  1. Grow a limit known to suffice: from the highest reservation seen without a limit, doubling until one completes.
///  2. Bisect between the highest limit that failed and the smallest above it that completed, until they are neighbours
///     on the grid.
///  3. Try limits above it: the next few on the grid, then ever wider apart, up to the one known to suffice. Where one
///     fails it becomes the highest that failed, and step 2 follows again.
///
/// The highest limit that failed only rises, so that the search ends. Where every limit down to the peak requested,
/// rounded up to the grid, completes, that is the answer.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>

#include "gmlake/core/types.hpp"
#include "gmlake/trace/parse_result.hpp"
#include "gmlake/trace/replay.hpp"

namespace gmlake::trace {

struct min_limit_options {
  bytes grid = bytes{2} << 20;  ///< limits tried are its multiples; the driver's granule, below which limits are alike
  unsigned close_probes = 4;    ///< limits tried directly above the one found
  unsigned wide_probes = 12;    ///< and up to the one known to suffice
};

struct min_limit_result {
  bool found = false;  ///< false: not even the widest limit tried sufficed
  bytes limit = 0;
  unsigned tried = 0;      ///< replays
  replay_result at_limit;  ///< the replay under `limit`
};

/// `attempt(limit)` replays the trace through a fresh pool of that limit. `at_least` is the trace's peak requested,
/// below which no limit is tried; `sufficing` the highest reservation of a replay without a limit.
template <std::invocable<bytes> Attempt>
  requires std::same_as<std::invoke_result_t<Attempt&, bytes>, replay_result>
[[nodiscard]] min_limit_result find_min_limit(bytes at_least, bytes sufficing, Attempt&& attempt,
                                              min_limit_options const& options = {}) {
  bytes const grid = options.grid;
  auto const up = [grid](bytes n) { return (n + grid - 1) / grid; };  // limits below count in grid steps

  std::map<bytes, replay_result> tried;
  auto const completes = [&](bytes steps) {
    auto known = tried.find(steps);
    if (known == tried.end()) known = tried.emplace(steps, attempt(steps * grid)).first;
    return known->second.ok();
  };
  auto const done = [&tried](bool found, bytes limit, bytes steps) {
    return min_limit_result{found, limit, static_cast<unsigned>(tried.size()), std::move(tried.at(steps))};
  };

  bytes const floor = std::max<bytes>(1, up(at_least));
  bytes widest = std::max(floor, up(sufficing));
  while (!completes(widest)) {
    if (widest > max_size / grid) return done(false, 0, widest);
    widest *= 2;
  }

  for (;;) {
    bytes low = floor - 1;  // the highest that failed; `floor` may not have been tried
    for (auto const& [steps, attempted] : tried) {
      if (!attempted.ok()) low = std::max(low, steps);
    }
    bytes high = tried.upper_bound(low)->first;
    while (high - low > 1) {
      bytes const middle = low + (high - low) / 2;
      (completes(middle) ? high : low) = middle;
    }
    bytes const room = widest - high;
    bytes const wide = options.wide_probes;
    bool holds = true;
    for (bytes i = 1; i <= options.close_probes && i < room && holds; ++i) holds = completes(high + i);
    for (bytes i = 1; i <= wide && holds; ++i) holds = completes(high + room * i * i / (wide * wide));
    if (holds) return done(true, high * grid, high);
  }
}

}  // namespace gmlake::trace
