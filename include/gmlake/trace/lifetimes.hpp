#pragma once
/// The lifetimes of a trace's buffers, with its marks as phases and scopes: from recorded runs to plans.

#include <cstdint>
#include <vector>

#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/lifetimes.hpp"
#include "gmlake/plan/plan_rules.hpp"
#include "gmlake/trace/event.hpp"

namespace gmlake::trace {

/// An allocation's size as it is placed: a multiple of 512, and never none.
[[nodiscard]] inline bytes placed_size(event const& e) noexcept {
  return e.size == 0 ? plan::placed_unit : align_up(e.size, plan::placed_unit);
}

/// Sizes become sizes as placed. The trace keeps the readers' rules. Linear.
[[nodiscard]] inline plan::lifetimes lifetimes_of(trace const& t) {
  plan::lifetimes all;
  std::vector<std::uint32_t> born(t.allocations);
  for (event const& e : t.events) {
    switch (e.kind) {
      case event_kind::allocate: born[e.id] = all.allocated(placed_size(e), e.stream); break;
      case event_kind::deallocate: all.freed(born[e.id]); break;
      case event_kind::mark: all.mark(t.labels[e.id]); break;
      case event_kind::read:
      case event_kind::write:
      case event_kind::operation:
      case event_kind::host_copy: break;
    }
  }
  return all;
}

}  // namespace gmlake::trace
