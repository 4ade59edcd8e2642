#pragma once
/// The lifetimes of a trace's buffers, with its marks as phases and scopes: from recorded runs to plans.

#include <cstdint>
#include <vector>

#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/lifetimes.hpp"
#include "gmlake/plan/plan_rules.hpp"
#include "gmlake/trace/event.hpp"

namespace gmlake::trace {

/// Sizes become sizes as placed: multiples of 512, and never none. The trace keeps the readers' rules. Linear.
[[nodiscard]] inline plan::lifetimes lifetimes_of(trace const& t) {
  plan::lifetimes all;
  std::vector<std::uint32_t> born(t.allocations);
  for (event const& e : t.events) {
    switch (e.kind) {
      case event_kind::allocate:
        born[e.id] = all.allocated(e.size == 0 ? plan::placed_unit : align_up(e.size, plan::placed_unit), e.stream);
        break;
      case event_kind::deallocate: all.freed(born[e.id]); break;
      case event_kind::mark: all.mark(t.labels[e.id]); break;
    }
  }
  return all;
}

}  // namespace gmlake::trace
