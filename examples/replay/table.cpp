#include "table.hpp"

#include <algorithm>
#include <cstddef>

#include "format.hpp"

namespace gmlake::tools {
namespace {

using row = std::vector<std::string>;
constexpr std::size_t names = 2;  // columns that stand left-aligned, before the numbers

row header(bool min_limit) {
  row r = {"trace",     "preset",   "requested MiB", "reserved MiB", "fragmentation", "driver calls",
           "driver ms", "stitches", "hits",          "waits",        "ns/op"};
  if (min_limit) r.insert(r.end(), {"min limit MiB", "x requested", "driver ms there"});
  return r;
}

row cells(run_record const& r, bool min_limit) {
  pool_stats const& s = r.replay.stats;
  auto const driver = s.driver.total();
  row out = {r.trace,
             r.preset + (r.ok ? "" : " (failed)"),
             mebibytes(s.requested.peak),
             mebibytes(s.reserved.peak),
             percent(r.fragmentation()),
             grouped(driver.calls),
             fixed(milliseconds(driver.time), 1),
             grouped(s.stitches_made),
             grouped(s.stitch_hits),
             grouped(r.waits()),
             fixed(r.replay.ns_per_op(), 0)};
  if (min_limit && r.min_limit && r.min_limit->found) {
    double const requested = static_cast<double>(r.min_limit->at_limit.stats.requested.peak);
    out.push_back(mebibytes(r.min_limit->limit));
    out.push_back(requested == 0 ? "-" : fixed(static_cast<double>(r.min_limit->limit) / requested, 4));
    out.push_back(fixed(milliseconds(r.min_limit->at_limit.stats.driver.total().time), 1));
  } else if (min_limit) {
    out.insert(out.end(), 3, "-");
  }
  return out;
}

std::vector<row> call_rows(run_record const& r) {
  std::vector<row> out;
  for (std::size_t i = 0; i < driver_call_names.size(); ++i) {
    driver_usage::line const& l = r.replay.stats.driver.lines[i];
    if (l.calls == 0) continue;
    double const ms = milliseconds(l.time);
    out.push_back({out.empty() ? r.trace : "", out.empty() ? r.preset : "", std::string(driver_call_names[i]),
                   grouped(l.calls), fixed(ms, 2), fixed(1000 * ms / static_cast<double>(l.calls), 2)});
  }
  return out;
}

void append(std::string& out, row const& r, std::vector<std::size_t> const& widths) {
  std::string line;
  for (std::size_t i = 0; i < r.size(); ++i) {
    std::string const space(widths[i] - r[i].size(), ' ');
    line += i < names ? r[i] + space : space + r[i];
    line += "  ";
  }
  out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

/// Columns as wide as they need, under a line.
std::string laid_out(std::vector<row> const& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (row const& r : rows) {
    for (std::size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], r[i].size());
  }
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    append(out, rows[i], widths);
    if (i != 0) continue;
    for (std::size_t w : widths) out += std::string(w, '-') + "  ";
    out.resize(out.size() - 2);
    out += "\n";
  }
  return out;
}

}  // namespace

std::string to_table(std::vector<run_record> const& records) {
  bool const min_limit =
      std::any_of(records.begin(), records.end(), [](auto const& r) { return r.min_limit.has_value(); });
  std::vector<row> rows = {header(min_limit)};
  for (std::size_t i = 0; i < records.size(); ++i) {
    rows.push_back(cells(records[i], min_limit));
    if (i != 0 && records[i].trace == records[i - 1].trace) rows.back()[0].clear();
  }
  return laid_out(rows);
}

std::string to_call_table(std::vector<run_record> const& records) {
  std::vector<row> rows = {{"trace", "preset", "call", "calls", "ms", "us a call"}};
  for (run_record const& r : records) {
    for (row& one : call_rows(r)) rows.push_back(std::move(one));
  }
  return laid_out(rows);
}

}  // namespace gmlake::tools
