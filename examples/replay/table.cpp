#include "table.hpp"

#include <algorithm>
#include <cstddef>

#include "format.hpp"
#include "text_table.hpp"

namespace gmlake::tools {
namespace {

using row = text_row;
constexpr std::size_t names = 2;  // columns that stand left-aligned, before the numbers

constexpr std::size_t fragmentation_column = 4;
constexpr std::size_t driver_column = 6;

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

/// Over several traces: each preset's mean fragmentation and driver time, of those that completed all.
std::vector<row> mean_rows(std::vector<run_record> const& records, std::size_t columns) {
  std::vector<row> out;
  for (auto first = records.begin(); first != records.end() && first->trace == records.front().trace; ++first) {
    double fragmentation = 0, driver = 0;
    std::size_t traces = 0;
    bool completed = true;
    for (run_record const& r : records) {
      if (r.preset != first->preset) continue;
      ++traces;
      completed = completed && r.ok;
      fragmentation += r.fragmentation();
      driver += milliseconds(r.replay.stats.driver.total().time);
    }
    if (traces < 2) break;
    row one(columns, "-");
    one[0] = out.empty() ? "mean of " + std::to_string(traces) : "";
    one[1] = first->preset;
    if (completed) {
      one[fragmentation_column] = percent(fragmentation / static_cast<double>(traces));
      one[driver_column] = fixed(driver / static_cast<double>(traces), 1);
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> steady_cells(run_record const& r) {
  if (!r.steady) return std::vector<std::string>(7, "-");
  steady_part const& s = *r.steady;
  return {fixed(s.ns_per_op(), 0),
          grouped(s.driver_calls),
          fixed(milliseconds(s.driver_time), 1),
          grouped(s.stitches),
          grouped(s.stitch_hits),
          mebibytes(s.reserved),
          s.planned_share ? percent(*s.planned_share) : "-"};
}

std::vector<std::string> plan_cells(run_record const& r) {
  if (!r.plans) return std::vector<std::string>(6, "-");
  plan_figures const& p = *r.plans;
  return {grouped(p.made),      grouped(p.placed), grouped(p.squeezed),
          grouped(p.displaced), grouped(p.astray), fixed(milliseconds(p.planning), 0)};
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

}  // namespace

std::string to_table(std::vector<run_record> const& records) {
  bool const min_limit =
      std::any_of(records.begin(), records.end(), [](auto const& r) { return r.min_limit.has_value(); });
  std::vector<row> rows = {header(min_limit)};
  for (std::size_t i = 0; i < records.size(); ++i) {
    rows.push_back(cells(records[i], min_limit));
    if (i != 0 && records[i].trace == records[i - 1].trace) rows.back()[0].clear();
  }
  for (row& one : mean_rows(records, rows.front().size())) rows.push_back(std::move(one));
  return text_table(rows, names);
}

std::string to_steady_table(std::vector<run_record> const& records) {
  auto const plans = std::any_of(records.begin(), records.end(), [](auto const& r) { return r.plans.has_value(); });
  auto const steady = std::any_of(records.begin(), records.end(), [](auto const& r) { return r.steady.has_value(); });
  if (!plans && !steady) return {};
  std::string const step = "step " + std::to_string(steady_step) + " on: ";
  std::vector<row> rows = {
      {"trace", "preset", step + "ns/op", "driver calls", "driver ms", "stitches", "hits", "MiB at end", "by plan"}};
  if (plans) rows[0].insert(rows[0].end(), {"plans", "placed", "squeezed", "displaced", "astray", "planning ms"});
  for (std::size_t i = 0; i < records.size(); ++i) {
    bool const another = i == 0 || records[i].trace != records[i - 1].trace;
    row one = {another ? records[i].trace : "", records[i].preset};
    for (std::string& cell : steady_cells(records[i])) one.push_back(std::move(cell));
    if (plans) {
      for (std::string& cell : plan_cells(records[i])) one.push_back(std::move(cell));
    }
    rows.push_back(std::move(one));
  }
  return text_table(rows, names);
}

std::string to_call_table(std::vector<run_record> const& records) {
  std::vector<row> rows = {{"trace", "preset", "call", "calls", "ms", "us a call"}};
  for (run_record const& r : records) {
    for (row& one : call_rows(r)) rows.push_back(std::move(one));
  }
  return text_table(rows, names);
}

}  // namespace gmlake::tools
