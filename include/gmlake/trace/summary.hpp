#pragma once
/// What a trace says by itself, before any allocator has seen it; and the same trace with smaller sizes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gmlake/trace/event.hpp"

namespace gmlake::trace {

struct trace_summary {
  bytes peak_requested = 0;      ///< the highest sum of live sizes
  std::size_t peak_event = 0;    ///< index of the event that first reaches it
  std::uint64_t operations = 0;  ///< allocations and frees
  std::uint64_t steps = 0;       ///< marks named `step_label`
  std::uint64_t streams = 0;     ///< one more than the highest stream's number; 0 without allocations
};

/// Precondition: `t` is well-formed (see parse_result.hpp). Linear.
[[nodiscard]] inline trace_summary summarize(trace const& t) {
  trace_summary s;
  std::vector<bytes> sizes(t.allocations);
  bytes live = 0;
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    event const& e = t.events[i];
    switch (e.kind) {
      case event_kind::allocate:
        live += sizes[e.id] = e.size;
        s.streams = std::max(s.streams, std::uint64_t{e.stream} + 1);
        if (live > s.peak_requested) {
          s.peak_requested = live;
          s.peak_event = i;
        }
        break;
      case event_kind::deallocate: live -= sizes[e.id]; break;
      case event_kind::mark: s.steps += t.labels[e.id] == step_label; continue;
      case event_kind::read:
      case event_kind::write:
      case event_kind::operation:
      case event_kind::host_copy: continue;
    }
    ++s.operations;
  }
  return s;
}

/// Divides every size by `divisor`, at least 1, rounding up, so that a trace fits a smaller device. A size of 0 stays
/// 0.
inline void scale(trace& t, double divisor) noexcept {
  for (event& e : t.events) {
    if (e.kind == event_kind::allocate) e.size = static_cast<bytes>(std::ceil(static_cast<double>(e.size) / divisor));
  }
}

}  // namespace gmlake::trace
