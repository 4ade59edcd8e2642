#include "swap_tool.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "drive.hpp"
#include "exit_status.hpp"
#include "gmlake/trace/summary.hpp"
#include "load.hpp"
#include "page_file.hpp"
#include "progress.hpp"
#include "swap_drawing.hpp"
#include "swap_output.hpp"

namespace gmlake::tools {
namespace {

/// What a rehearsal failed at; empty: it didn't.
std::string failure_of(swap_record const& r) {
  for (auto const* s : {&r.without_stall, &r.under_limit}) {
    if (!*s || !(*s)->pool.failed) continue;
    return "the pool failed after " + fixed(milliseconds((*s)->pool.at.at), 2) + " ms of step " +
           std::to_string((*s)->pool.steps + 1) + ": " + drive_detail::describe(*(*s)->pool.failed);
  }
  return {};
}

}  // namespace

int swap_all(command_line const& c) {
  std::vector<swap_record> records;
  report page{.live = false, .backend = {}, .scale = c.scale, .sections = {}, .swaps = {}};
  progress shown;
  bool ok = true;
  for (std::string const& path : c.traces) {
    loaded l = load_trace(path);
    if (!l.wrong.empty()) return say(l.wrong), bad_input;
    trace::scale(l.value, c.scale);
    swap_subject_found const found = subject_of(trace_name(path), l.value, c.swap);
    if (!found.wrong.empty()) return say(path + ": " + found.wrong), bad_input;
    swap_subject const& of = *found.value;
    page.swaps.push_back(swap_section_of(of));
    bool limited = false;
    for (scheduler const& by : c.swap.schedulers) {
      shown.begin(of.trace + " by " + std::string(by.name));
      swap_record r = run_scheduler(by, found.value, c.pool.chunk);
      shown.end();
      limited = limited || by.keeps_limit();
      if (std::string const why = failure_of(r); !why.empty()) {
        say(std::string(path).append(": ").append(by.name).append(": ").append(why));
        ok = false;
      }
      if (c.json) (void)std::puts(to_json(r).c_str());
      if (!c.report.empty()) add_schedules(r, page.swaps.back());
      records.push_back(std::move(r));
    }
    if (limited && of.limit < of.least_limit) {
      say(path + ": no schedule meets the limit of " + readable(of.limit) + ": " + readable(of.least_limit) +
          " can't be away");
      ok = false;
    }
  }
  if (!c.json) (void)std::fputs(to_swap_table(records).c_str(), stdout);
  if (!c.report.empty() && !write_page(c.report, page)) return bad_input;
  return ok ? succeeded : replay_failed;
}

}  // namespace gmlake::tools
