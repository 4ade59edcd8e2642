#pragma once
/// A page that shows how full pools were: charts over time, maps at the peak, a table; and what steps swap to the host,
/// where that was planned. One HTML file without outside
/// resources, from plain values, so that whoever has a time series and a snapshot can draw one.
///
/// Charts and maps are static SVG in units of their data, stretched to the page's width; script only adds the values
/// under the pointer, which it reads back from the paths. The size of the page grows with samples, not with events.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmlake/observe/snapshot.hpp"
#include "gmlake/trace/time_series.hpp"

namespace gmlake::tools {

/// One pool over one trace. Sizes in bytes.
struct report_run {
  std::string name;     ///< the preset's
  std::string failure;  ///< empty: it completed
  bytes requested_peak = 0;
  bytes reserved_peak = 0;
  std::uint64_t driver_calls = 0;
  double driver_ms = 0;
  std::uint64_t stitches = 0;
  std::uint64_t stitch_hits = 0;
  double ns_per_op = 0;
  bytes min_limit = 0;  ///< 0: not searched for
  trace::time_series series;
  std::optional<pool_snapshot> peak;  ///< at the section's `peak_event`

  [[nodiscard]] double lost() const noexcept {
    return reserved_peak == 0 ? 0 : 1 - static_cast<double>(requested_peak) / static_cast<double>(reserved_peak);
  }
};

/// One trace.
struct report_section {
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t allocations = 0;
  std::uint64_t steps = 0;
  bytes requested_peak = 0;
  std::uint64_t peak_event = 0;  ///< index
  std::vector<report_run> runs;
};

/// A schedule of what leaves for the host over one step. Times in ms, from the step's beginning; what ends before it
/// begins does so in the step after.
struct report_swap {
  /// Evenly spread over the step, each the most since the one before.
  struct sample {
    bytes resident = 0;
    bytes load = 0;  ///< what would be resident if nothing had left
  };
  struct transfer {
    double begin = 0, end = 0;
  };
  struct move {
    std::uint32_t block = 0;  ///< its id in the trace
    bytes size = 0;
    bool copied = true;  ///< on its way out; else the host has its contents already
    transfer out, back;
  };
  struct stall {
    double at = 0, length = 0;
  };

  std::string name;  ///< the scheduler's
  bytes limit = 0;   ///< 0: none, but no stall
  bytes peak = 0;
  double step = 0;
  bytes moved = 0;          ///< each way
  bytes reserved_peak = 0;  ///< by the pool that went through it; 0: it failed
  std::vector<sample> samples;
  std::vector<move> moves;
  std::vector<stall> stalls;
};

/// One trace's typical step.
struct report_swap_section {
  std::string name;
  std::string machine;   ///< which the step is planned for: a clause
  bytes peak = 0;        ///< while nothing leaves
  double step = 0;       ///< likewise, in ms
  bytes least_peak = 0;  ///< of any schedule without stalls
  bytes limit = 0;
  bytes least_limit = 0;  ///< that some schedule meets: what can't be away
  double least_step = 0;  ///< of any schedule under the limit; 0: none meets it
  std::vector<report_swap> schedules;
};

struct report {
  bool live = false;  ///< what a program took, not replays
  std::string backend;
  double scale = 1;
  std::vector<report_section> sections;
  std::vector<report_swap_section> swaps;
};

/// The page. Its first run of each section is the one that the others are compared with.
[[nodiscard]] std::string render(report const& r);

/// `text` with what HTML would take for markup replaced.
[[nodiscard]] std::string escaped(std::string const& text);

/// The pieces, each a `<figure>`: how full a pool was over a trace, on an axis up to `top` bytes; and where everything
/// was at the peak, on a scale on which the page's width is `width` bytes.
/// @{
[[nodiscard]] std::string render_chart(report_section const& s, report_run const& r, bytes top);
[[nodiscard]] std::string render_map(report_run const& r, bytes width);
/// @}

/// A trace's schedules: memory over the step, and the transfers in two lanes beneath. And all of them as a table.
/// @{
[[nodiscard]] std::string render_swaps(report_swap_section const& s);
[[nodiscard]] std::string render_swap_table(std::vector<report_swap_section> const& all);
/// @}

/// Bytes that a snapshot holds: how long its map is.
[[nodiscard]] bytes mapped_length(pool_snapshot const& s) noexcept;

}  // namespace gmlake::tools
