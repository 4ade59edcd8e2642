#pragma once
/// A page that shows how full pools were: charts over time, maps at the peak, a table. One HTML file without outside
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

struct report {
  std::string backend;
  double scale = 1;
  std::vector<report_section> sections;
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

/// Bytes that a snapshot holds: how long its map is.
[[nodiscard]] bytes mapped_length(pool_snapshot const& s) noexcept;

}  // namespace gmlake::tools
