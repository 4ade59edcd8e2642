#include "cli.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "byte_count.hpp"

namespace gmlake::tools {
namespace {

constexpr int bad_command_line = 2;

std::string packer_help() {
  std::string text = "Pack with this one. Default: portfolio, then exact for a CSV that it packs too high. Known:";
  for (packer_name const& p : packers) text += "\n  " + std::string(p.name) + ": " + std::string(p.what);
  return text;
}

packer_name const* find_packer(std::string_view name) {
  auto const p = std::ranges::find(packers, name, &packer_name::name);
  return p == packers.end() ? nullptr : &*p;
}

std::string check_packer(std::string const& name) {
  if (find_packer(name) != nullptr) return "";
  std::string known;
  for (packer_name const& p : packers) known += (known.empty() ? "" : ", ") + std::string(p.name);
  return "unknown packer '" + name + "'; known: " + known;
}

std::optional<std::uint64_t> parse_count(std::string const& text) {
  std::uint64_t n = 0;
  auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (code != std::errc{} || end != text.data() + text.size()) return {};
  return n;
}

std::string check_positive(std::string const& text) {
  return parse_count(text).value_or(0) > 0 ? "" : "'" + text + "' is not a number of at least 1";
}
std::string check_gap(std::string const& text) {
  return text == "never" || parse_count(text) ? "" : "'" + text + "' is not a number of events, nor never";
}
std::string check_seconds(std::string const& text) {
  double s = 0;
  bool const number = CLI::detail::lexical_cast(text, s);
  constexpr double a_day = 86'400;
  return number && s > 0 && s <= a_day ? "" : "'" + text + "' is not a number of seconds, of a day at most";
}

std::string known_options(CLI::App const& app) {
  std::string names;
  for (CLI::Option const* o : app.get_options()) {
    if (!o->get_lnames().empty()) names += " --" + o->get_lnames().front();
  }
  return names;
}

exit_now complain(std::string const& message) {
  (void)std::fprintf(stderr, "gmlake-plan: %s\n", message.c_str());
  return {bad_command_line};
}

/// What is wrong with a command line whose options are right one by one; empty: nothing.
std::string contradiction(command_line const& c) {
  if (c.inputs.empty() && c.validate.empty()) return "no input: a trace, or a problem as CSV";
  if (c.inputs.size() > 1 && !c.out.empty()) return "--out: takes one input";
  if (c.inputs.size() > 1 && !c.validate.empty()) return "--validate: takes one problem";
  packer_name const* const p = find_packer(c.packing.packer);
  if (p != nullptr && c.packing.seconds && !p->takes_seconds) {
    return "--seconds: " + c.packing.packer + " can't be limited in time" + (p->takes_work ? "; see --work" : "");
  }
  if (p != nullptr && c.packing.work && !p->takes_work) return "--work: " + c.packing.packer + " does what it does";
  return {};
}

}  // namespace

std::variant<command_line, exit_now> parse(int argc, char const* const* argv) {
  command_line c;
  std::string format, step, seconds, work, gap, capacity;
  bool no_marks = false;

  CLI::App app{
      "Plans where a program's buffers go, ahead of time: finds the step that a trace repeats, packs it into as little "
      "memory as it can, and tells how that compares with the most bytes that live at once.\n"
      "Reads gmlake's traces, RMM's logs and MiniMalloc's problems (CSV), plain or gzip.",
      "gmlake-plan"};
  auto const checked = [&app](char const* name, std::string& value, char const* what, char const* type, auto* check) {
    return app.add_option(name, value, what)->type_name(type)->check(CLI::Validator(check, ""));
  };
  app.add_option("input", c.inputs, "Traces and problems to plan")->type_name("FILE");
  app.add_option("--format", format, "What the inputs are. Default: by each one's first line")
      ->type_name("KIND")
      ->check(CLI::IsMember({"trace", "csv"}));
  auto* const with_step =
      checked("--step", step, "Plan the trace's N-th step, counted from 1. Default: each that comes again", "N",
              check_positive);
  auto* const without_marks =
      app.add_flag("--no-marks", no_marks, "Find the steps as a pool does that isn't told, without the trace's marks");
  app.add_option("--packer", c.packing.packer, packer_help())
      ->type_name("NAME")
      ->check(CLI::Validator(check_packer, ""));
  checked("--seconds", seconds,
          "Time that the search for a plan better than the first may take. Default: 60; exact: 30", "S", check_seconds);
  checked("--work", work, "Work a plan may take, in entries looked at (a few ns each); exact: in placements", "N",
          check_positive);
  auto* const with_gap =
      checked("--stream-gap", gap,
              "Streams share bytes only with so many events between, or never. Default: 1024 where that costs at most "
              "0.3% of height, else 0",
              "N", check_gap);
  checked("--capacity", capacity, "Height that a plan may have; also 30GiB and the like", "BYTES", check_bytes);
  app.add_option("--out", c.out,
                 "Write the plans. For a trace: what comes before its steps, then the steps, for a pool to adopt; for "
                 "a CSV: the CSV with offsets")
      ->type_name("FILE");
  app.add_option("--report", c.report, "Write pictures of the plans, in space and time, as one web page")
      ->type_name("FILE.html");
  app.add_option("--validate", c.validate, "Check a plan file, or a CSV with offsets for the input's problem")
      ->type_name("SOLUTION")
      ->excludes("--out", "--report", "--packer", "--seconds", "--work", "--step");
  app.add_flag("--json", c.json, "Print one JSON object a line instead of the table");
  app.footer("Exit status: 0; 1 if a plan is invalid or doesn't fit; 2 if the command line or an input is wrong.");

  try {
    app.parse(argc, argv);
  } catch (CLI::ExtrasError const& e) {
    return complain("unknown option: " + std::string(e.what()) + "\nKnown options:" + known_options(app));
  } catch (CLI::ParseError const& e) {
    if (e.get_exit_code() == 0) return exit_now{app.exit(e)};
    return complain(e.what());
  }

  if (!format.empty()) c.format = format == "csv" ? input_format::csv : input_format::trace;
  c.marks = !no_marks;
  if (!step.empty()) c.step = parse_count(step);
  if (!work.empty()) c.packing.work = parse_count(work);
  if (!seconds.empty()) c.packing.seconds = std::stod(seconds);
  if (!gap.empty()) c.stream_gap = parse_count(gap).value_or(plan::problem::never);
  if (!capacity.empty()) c.packing.capacity = parse_bytes(capacity);
  for (CLI::Option const* o : {with_step, without_marks, with_gap}) {
    if (o->count() != 0 && c.for_traces_only.empty()) c.for_traces_only = o->get_name();
  }
  if (std::string const wrong = contradiction(c); !wrong.empty()) return complain(wrong);
  return c;
}

}  // namespace gmlake::tools
