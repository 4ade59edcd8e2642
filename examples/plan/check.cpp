#include "check.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "format.hpp"
#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/lifetimes.hpp"
#include "gmlake/plan/minimalloc_csv.hpp"
#include "gmlake/plan/plan_file.hpp"
#include "gmlake/plan/validate.hpp"
#include "json.hpp"
#include "load.hpp"
#include "status.hpp"
#include "table.hpp"

namespace gmlake::tools {
namespace {

int tell(command_line const& c, std::vector<plan_record> const& records) {
  for (plan_record const& r : records) {
    if (!r.ok()) say(c.validate + ": " + r.title() + ": " + r.failure);
    if (c.json) (void)std::puts(to_json(r).c_str());
  }
  if (!c.json) (void)std::fputs(to_table(records).c_str(), stdout);
  return std::ranges::all_of(records, &plan_record::ok) ? succeeded : unfit;
}

void check_capacity(command_line const& c, plan_record& r) {
  if (!r.ok() || !c.packing.capacity || r.solution.height <= *c.packing.capacity) return;
  r.failure = "takes " + grouped(r.solution.height) + " bytes, " + grouped(r.solution.height - *c.packing.capacity) +
              " more than the capacity";
}

/// A plan's own requests are its problem.
plan_record record_of(std::string const& name, plan::plan p, std::uint64_t number) {
  plan_record r;
  r.input = name;
  r.kind = p.repeats ? record_kind::step : record_kind::prologue;
  r.step = number;
  r.requests = p.requests.size();
  r.problem.period = p.repeats ? p.period : 0;
  for (plan::step_request const& q : p.requests) {
    if (q.offset == plan::step_request::nowhere) {
      r.kept += q.size;
      continue;
    }
    r.problem.buffers.push_back({.lower = q.birth,
                                 .upper = q.death,
                                 .size = q.size,
                                 .alignment = plan::placed_unit,
                                 .stream = q.stream,
                                 .fixed = {}});
    r.solution.offsets.push_back(q.offset);
    r.solution.height = std::max(r.solution.height, q.offset + q.size);
  }
  r.bound = plan::lower_bound(r.problem);
  r.proven = r.solution.height == r.bound;
  if (auto const wrong = plan::validate(r.problem, r.solution)) r.failure = plan::to_string(wrong->broken);
  r.plan = std::move(p);
  return r;
}

int check_plans(command_line const& c, std::string const& text) {
  if (!c.inputs.empty()) return say("--validate: a plan file is checked by itself, without an input"), bad_input;
  plan::plans_read read = plan::read_plans(text);
  if (!read) return say(c.validate + ": " + read.error), unfit;
  std::vector<plan_record> records;
  std::uint64_t steps = 0;
  for (plan::plan& p : read.value) {
    std::uint64_t const number = p.repeats ? ++steps : 0;
    records.push_back(record_of(trace_name(c.validate), std::move(p), number));
    check_capacity(c, records.back());
  }
  return tell(c, records);
}

int check_csv(command_line const& c, std::string const& text) {
  if (c.inputs.empty())
    return say("--validate: " + c.validate + " is a CSV, which needs its problem as input"), bad_input;
  input of = load_input(c.inputs.front(), input_format::csv);
  if (!of.wrong.empty()) return say(of.wrong), bad_input;
  auto const& named = std::get<plan::named_problem>(of.value);
  auto read = plan::read_minimalloc_solution(text, named);
  if (!read) return say(c.validate + ":" + std::to_string(read.line) + ": " + read.message), bad_input;
  plan_record r;
  r.input = trace_name(c.validate);
  r.requests = named.ids.size();
  r.problem = named.value;
  r.solution = std::move(read.value);
  r.bound = plan::lower_bound(r.problem);
  r.proven = r.solution.height == r.bound;
  if (auto const wrong = plan::validate(r.problem, r.solution)) {
    r.failure = plan::to_string(wrong->broken);
    if (wrong->first != plan::fault::nobody) r.failure += ": " + named.ids[wrong->first];
    if (wrong->second != plan::fault::nobody) r.failure += " and " + named.ids[wrong->second];
  }
  check_capacity(c, r);
  return tell(c, {std::move(r)});
}

}  // namespace

int check(command_line const& c) {
  std::string text;
  if (std::string const wrong = read_text(c.validate, text); !wrong.empty()) return say(wrong), bad_input;
  if (text.starts_with(plan::plan_file_magic)) return check_plans(c, text);
  if (names_columns(text)) return check_csv(c, text);
  return say(c.validate + ": is neither a plan file nor a CSV with the columns id and offset"), bad_input;
}

}  // namespace gmlake::tools
