#pragma once
/// A lower bound where streams are kept apart: bytes of one stream at one instant and bytes of another at an instant no
/// more than the gap later can't be shared either. Never below what each instant alone tells, given enough room.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// How many bytes live from an instant on.
struct live_level {
  instant from;
  std::ptrdiff_t live;
};

/// A stream's levels, from its first birth on. O(n log n).
[[nodiscard]] inline std::vector<live_level> levels_of(problem const& p, std::vector<buffer const*> const& stream) {
  std::vector<live_level> changes;
  for (buffer const* b : stream) {
    auto const size = static_cast<std::ptrdiff_t>(b->size);
    bool const wraps = p.period != 0 && b->upper > p.period;
    changes.insert(changes.end(), {{b->lower, size}, {wraps ? b->upper - p.period : b->upper, -size}});
    if (wraps) changes.push_back({0, size});
  }
  std::ranges::sort(changes, {}, &live_level::from);
  std::vector<live_level> levels;
  std::ptrdiff_t live = 0;
  for (live_level const& c : changes) {
    live += c.live;
    if (levels.empty() || levels.back().from != c.from) levels.push_back({c.from, live});
    levels.back().live = live;
  }
  return levels;
}

/// The most, over all stretches of time as long as the gap, of the sum of the streams' peaks within the stretch: those
/// buffers conflict pairwise. 0 where streams don't matter. O(streams · n + n log n).
///
///     stream 0   ____/~~~\________
///     stream 1   ___________/~\___        both peaks within the gap: their sum
///                   [--gap--]
[[nodiscard]] inline bytes stream_bound(problem const& p) {
  if (p.stream_gap == 0) return 0;
  std::map<std::uint32_t, std::vector<buffer const*>> streams;
  std::vector<instant> ends{0};  // of stretches: a peak is reached at a birth
  for (buffer const& b : p.buffers) {
    streams[b.stream].push_back(&b);
    ends.push_back(b.lower);
  }
  if (streams.size() < 2) return 0;
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());

  std::vector<std::ptrdiff_t> sums(ends.size());
  for (auto const& [stream, buffers] : streams) {
    std::vector<live_level> const levels = levels_of(p, buffers);
    std::deque<std::size_t> highest;  // of the levels within the stretch, falling
    std::size_t next = 0;
    for (std::size_t k = 0; k < ends.size(); ++k) {
      for (; next < levels.size() && levels[next].from <= ends[k]; ++next) {
        while (!highest.empty() && levels[highest.back()].live <= levels[next].live) highest.pop_back();
        highest.push_back(next);
      }
      instant const begin = ends[k] > p.stream_gap ? ends[k] - p.stream_gap : 0;
      while (!highest.empty() && highest.front() + 1 < levels.size() && levels[highest.front() + 1].from <= begin) {
        highest.pop_front();
      }
      if (!highest.empty()) sums[k] += levels[highest.front()].live;
    }
  }
  return static_cast<bytes>(*std::ranges::max_element(sums));
}

}  // namespace gmlake::plan
