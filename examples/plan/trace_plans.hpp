#pragma once
/// From a trace to plans: its prologue, and one for each shape of step that comes again.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmlake/trace/event.hpp"
#include "packers.hpp"
#include "record.hpp"

namespace gmlake::tools {

struct trace_request {
  packing_request packing;
  std::optional<std::uint64_t> step;  ///< from 1; none: those that come again
  bool marks = true;                  ///< false: the steps are found without them
  bool prologue = false;              ///< plan that too
  /// Events between two streams' uses of the same bytes. None: as a pool plans, many where that costs next to nothing.
  std::optional<plan::instant> stream_gap;
  std::function<void(std::string const& title)> begin = [](std::string const&) {};  ///< a plan is being made
  std::function<void()> end = [] {};
};

struct trace_plans {
  std::vector<plan_record> records;  ///< the prologue first
  std::string note;                  ///< what a user should know who expected more; empty: nothing
  std::string wrong;                 ///< the request can't be met; empty: it was
  bool repeats = false;              ///< steps that come again were planned, or the one that was asked for
};

[[nodiscard]] trace_plans plan_trace(std::string const& name, trace::trace t, trace_request const& r);

}  // namespace gmlake::tools
