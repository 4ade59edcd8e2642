/// gmlake-plan: plans the steps of allocation traces, and static allocation problems, and tells how good the plans are.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "check.hpp"
#include "cli.hpp"
#include "gmlake/plan/minimalloc_csv.hpp"
#include "gmlake/plan/plan_file.hpp"
#include "json.hpp"
#include "load.hpp"
#include "page.hpp"
#include "progress.hpp"
#include "status.hpp"
#include "table.hpp"
#include "trace_plans.hpp"

namespace gmlake::tools {
namespace {

bool write_file(std::string const& path, std::string const& text) {
  std::ofstream out(path, std::ios::binary);
  return static_cast<bool>((out << text).flush());
}

plan_record plan_problem(std::string const& name, plan::named_problem const& p, packing_request packing) {
  plan_record r;
  r.input = name;
  r.requests = p.ids.size();
  packing.search = true;
  packing_outcome found = pack(p.value, packing);
  r.problem = p.value;
  r.solution = std::move(found.solution);
  r.bound = found.bound;
  r.proven = found.proven;
  r.packer = std::move(found.packer);
  r.ms = found.ms;
  r.failure = std::move(found.failure);
  return r;
}

/// One input's plans. Returns the exit status where it can't be planned; what could be written goes to `written`.
int plan_input(command_line const& c, std::string const& path, std::vector<plan_record>& records,
               std::string& written) {
  std::string const name = trace_name(path);
  progress shown;
  input in = load_input(path, c.format);
  if (!in.wrong.empty()) return say(in.wrong), bad_input;
  if (auto const* const problem = std::get_if<plan::named_problem>(&in.value)) {
    if (!c.for_traces_only.empty()) return say(c.for_traces_only + ": " + path + " is a CSV, not a trace"), bad_input;
    shown.begin(name);
    records.push_back(plan_problem(name, *problem, c.packing));
    shown.end();
    if (records.back().ok()) written = plan::write_minimalloc_solution(*problem, records.back().solution);
    return succeeded;
  }
  trace_request const request{.packing = c.packing,
                              .step = c.step,
                              .marks = c.marks,
                              .prologue = !c.out.empty(),
                              .stream_gap = c.stream_gap,
                              .begin = [&](std::string const& title) { shown.begin(name + ", " + title); },
                              .end = [&] { shown.end(); }};
  trace_plans made = plan_trace(name, std::get<trace::trace>(std::move(in.value)), request);
  if (!made.wrong.empty()) return say(made.wrong), bad_input;
  if (!made.note.empty()) say(path + ": " + made.note);
  std::vector<plan::plan> plans;
  bool const once = made.records.front().kind == record_kind::run;
  for (plan_record& r : made.records) {
    plans.push_back(r.plan);
    records.push_back(std::move(r));
  }
  // Nobody who adopts a plan of what never comes again gains by it, unless he says so.
  if (made.repeats || once) written = plan::write_plans(plans);
  return succeeded;
}

int plan_all(command_line const& c) {
  std::vector<plan_record> records;
  std::string written;
  for (std::string const& path : c.inputs) {  // at once, not after minutes of planning others
    if (!std::filesystem::exists(path)) return say(path + ": no such file"), bad_input;
  }
  for (std::string const& path : c.inputs) {
    std::size_t const before = records.size();
    if (int const status = plan_input(c, path, records, written); status != succeeded) return status;
    for (std::size_t i = before; i < records.size(); ++i) {
      plan_record const& r = records[i];
      if (!r.ok()) say(path + ": " + r.title() + ": " + r.failure);
      if (c.json) (void)std::puts(to_json(r).c_str());
    }
  }
  if (!c.json) (void)std::fputs(to_table(records).c_str(), stdout);
  bool const ok = std::ranges::all_of(records, &plan_record::ok);
  if (!c.report.empty() && !write_file(c.report, render(records)))
    return say(c.report + ": can't be written"), bad_input;
  if (c.out.empty() || !ok) return ok ? succeeded : unfit;
  if (written.empty()) return say("--out: nothing is written, as no step comes again; --step N plans any"), unfit;
  if (!write_file(c.out, written)) return say(c.out + ": can't be written"), bad_input;
  return succeeded;
}

}  // namespace
}  // namespace gmlake::tools

int main(int argc, char** argv) {
  using namespace gmlake::tools;
  try {
    auto const parsed = parse(argc, argv);
    if (auto const* const now = std::get_if<exit_now>(&parsed)) return now->status;
    auto const& c = std::get<command_line>(parsed);
    return c.validate.empty() ? plan_all(c) : check(c);
  } catch (std::exception const& e) {
    say(e.what());
    return unfit;
  }
}
