/// gmlake-replay: replays allocation traces through pools and prints, tabulates or draws what each takes.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "cli.hpp"
#include "drive.hpp"
#include "exit_status.hpp"
#include "file.hpp"
#include "gmlake/plan/plan_file.hpp"
#include "json.hpp"
#include "load.hpp"
#include "page_file.hpp"
#include "presets.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "swap_tool.hpp"
#include "table.hpp"

namespace gmlake::tools {
namespace {

run_record run_one(preset const& p, std::string const& name, run_request& request, progress& shown) {
  run_record record;
  record.trace = name;
  record.preset = p.name;
  record.backend = request.backend;
  shown.begin(name + " through " + record.preset);
  p.run(request, record);
  shown.end();
  return record;
}

report_section section_of(std::string const& name, trace::trace const& t, trace::trace_summary const& s) {
  return {.name = name,
          .events = t.events.size(),
          .allocations = t.allocations,
          .steps = s.steps,
          .requested_peak = s.peak_requested,
          .peak_event = s.peak_event,
          .runs = {}};
}

report_run report_of(run_record const& r) {
  pool_stats const& s = r.replay.stats;
  auto const driver = s.driver.total();
  report_run out{.name = r.preset,
                 .failure = r.failure,
                 .requested_peak = s.requested.peak,
                 .reserved_peak = s.reserved.peak,
                 .driver_calls = driver.calls,
                 .driver_ms = milliseconds(driver.time),
                 .stitches = s.stitches_made,
                 .stitch_hits = s.stitch_hits,
                 .ns_per_op = r.replay.ns_per_op(),
                 .min_limit = 0,
                 .series = r.series,
                 .peak = r.peak};
  if (r.min_limit && r.min_limit->found) out.min_limit = r.min_limit->limit;
  return out;
}

/// Reads plans into `to`. Returns what is wrong with the file; empty: nothing.
std::string load_plans(std::string const& path, std::vector<plan::plan>& to) {
  std::string text;
  // What begins otherwise is read no further: it may have no end.
  std::string const wrong = read_file(path, [&text](std::string_view piece) {
    text += piece;
    return text.size() < plan::plan_file_magic.size() || text.starts_with(plan::plan_file_magic);
  });
  if (!wrong.empty()) return path + ": " + wrong;
  plan::plans_read read = plan::read_plans(text);
  if (!read) return path + ": " + read.error;
  to = std::move(read.value);
  return {};
}

/// Why the backend can't be opened; empty where it can.
std::string why_closed(backend_kind kind) {
  return with_backend(kind, [](auto open) {
    auto const opened = open();
    return opened ? std::string() : drive_detail::describe(opened.error());
  });
}

/// Replays every trace through every preset. Returns the exit status.
int replay_all(command_line c) {
  std::vector<run_record> records;
  report page{
      .live = false, .backend = std::string(to_string(c.backend)), .scale = c.scale, .sections = {}, .swaps = {}};
  progress shown;
  if (!c.plan.empty() && !std::filesystem::exists(c.plan)) return say(c.plan + ": no such file"), bad_input;
  if (!c.plan.empty()) {
    if (std::string const wrong = load_plans(c.plan, c.pool.plans); !wrong.empty()) return say(wrong), bad_input;
  }
  if (std::string const why = why_closed(c.backend); !why.empty()) {
    return say("--backend " + std::string(to_string(c.backend)) + ": " + why), replay_failed;
  }
  for (std::string const& path : c.traces) {
    loaded l = load_trace(path);
    if (!l.wrong.empty()) return say(l.wrong), bad_input;
    trace::scale(l.value, c.scale);
    run_request request{.events = &l.value,
                        .summary = trace::summarize(l.value),
                        .backend = c.backend,
                        .pool = c.pool,
                        .min_limit = c.min_limit,
                        .sample = !c.report.empty(),
                        .verify = c.verify,
                        .marks = c.marks,
                        .progress = [&shown](std::string_view what, double done) { shown.update(what, done); }};
    page.sections.push_back(section_of(trace_name(path), l.value, request.summary));
    for (std::string const& name : c.presets) {
      auto const p =
          std::find_if(presets().begin(), presets().end(), [&](preset const& known) { return known.name == name; });
      run_record r = run_one(*p, page.sections.back().name, request, shown);
      if (!r.ok) say(path + ": " + r.preset + ": " + r.failure);
      if (c.json) (void)std::puts(to_json(r, c.calls).c_str());
      if (!c.report.empty()) page.sections.back().runs.push_back(report_of(r));
      // Only the report needs these, and they are large.
      r.series = {};
      r.peak.reset();
      records.push_back(std::move(r));
    }
  }
  if (!c.json) (void)std::fputs(to_table(records).c_str(), stdout);
  if (std::string const steady = c.json ? "" : to_steady_table(records); !steady.empty())
    (void)std::printf("\n%s", steady.c_str());
  if (!c.json && c.calls) (void)std::printf("\n%s", to_call_table(records).c_str());
  if (!c.report.empty() && !write_page(c.report, page)) return bad_input;
  return std::all_of(records.begin(), records.end(), [](run_record const& r) { return r.ok; }) ? succeeded
                                                                                               : replay_failed;
}

}  // namespace
}  // namespace gmlake::tools

int main(int argc, char** argv) {
  using namespace gmlake::tools;
  try {
    auto const parsed = parse(argc, argv);
    if (auto const* const now = std::get_if<exit_now>(&parsed)) return now->status;
    auto const& asked = std::get<command_line>(parsed);
    for (std::string const& path : asked.traces) {  // at once, not after minutes of replaying others
      if (!std::filesystem::exists(path)) return say(path + ": no such file"), bad_input;
    }
    return asked.swap.schedulers.empty() ? replay_all(asked) : swap_all(asked);
  } catch (std::exception const& e) {
    say(e.what());
    return replay_failed;
  }
}
