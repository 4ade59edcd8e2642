#pragma once
/// What no solution of a problem can go below: the most bytes that live at once. Alignment and fixed offsets only ever
/// add to a height, so the bound holds with them; it is not always reached. It must not look at any solution.

#include <algorithm>
#include <map>
#include <vector>

#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

namespace bound_parts {

struct change {
  instant at;
  bool begins;
  bytes size;
};

/// The peak of the sum. Where both happen at one instant, ends come before beginnings.
[[nodiscard]] inline bytes peak(std::vector<change>& changes) {
  std::ranges::sort(
      changes, [](change const& a, change const& b) { return a.at != b.at ? a.at < b.at : !a.begins && b.begins; });
  bytes live = 0;
  bytes most = 0;
  for (change const& c : changes) {
    live = c.begins ? live + c.size : live - c.size;
    most = std::max(most, live);
  }
  return most;
}

}  // namespace bound_parts

/// The least height that any solution of a well-formed problem (validate.hpp) may have: the peak of live bytes, those
/// that wrap counted in both their pieces, or the end of the highest fixed buffer. Where streams never share
/// (`stream_gap` is `problem::never`), the sum of each stream's own peak. O(n log n).
[[nodiscard]] inline bytes lower_bound(problem const& p) {
  std::map<std::uint32_t, std::vector<bound_parts::change>> by_stream;
  bool const apart = p.stream_gap == problem::never;
  bytes highest_fixed = 0;
  for (buffer const& b : p.buffers) {
    auto& changes = by_stream[apart ? b.stream : 0];
    bool const wraps = p.period != 0 && b.upper > p.period;
    changes.push_back({b.lower, true, b.size});
    changes.push_back({wraps ? p.period : b.upper, false, b.size});
    if (wraps) {
      changes.push_back({0, true, b.size});
      changes.push_back({b.upper - p.period, false, b.size});
    }
    if (b.fixed) highest_fixed = std::max(highest_fixed, *b.fixed + b.size);
  }
  bytes sum = 0;
  for (auto& [stream, changes] : by_stream) sum += bound_parts::peak(changes);
  return std::max(sum, highest_fixed);
}

}  // namespace gmlake::plan
