#include "cli.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "backends.hpp"
#include "byte_count.hpp"
#include "presets.hpp"

namespace gmlake::tools {
namespace {

constexpr int bad_command_line = 2;

std::string known_presets() {
  std::string names = "all";
  for (preset const& p : presets()) (names += ", ") += p.name;
  return names;
}

std::string preset_help() {
  std::string text =
      "Replay through this preset; may be repeated. Default: " + std::string(presets().front().name) + ". Known:";
  for (preset const& p : presets()) text += "\n  " + std::string(p.name) + ": " + std::string(p.what);
  return text + "\n  all: each of them";
}

std::string check_preset(std::string const& name) {
  bool const known =
      name == "all" || std::any_of(presets().begin(), presets().end(), [&](preset const& p) { return p.name == name; });
  return known ? "" : "unknown preset '" + name + "'; known: " + known_presets();
}

std::string check_count(std::string const& text) {
  std::uint64_t n = 0;
  auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  return code == std::errc{} && end == text.data() + text.size() ? "" : "'" + text + "' is not a number of events";
}

std::string check_scale(std::string const& text) {
  double f = 0;
  bool const number = CLI::detail::lexical_cast(text, f);
  return number && std::isfinite(f) && f >= 1 ? "" : "'" + text + "' is not a number of at least 1";
}

/// The named presets in order, each once.
std::vector<std::string> chosen(std::vector<std::string> const& named) {
  std::vector<std::string> names;
  auto const add = [&names](std::string const& n) {
    if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
  };
  for (std::string const& n : named) {
    if (n != "all") add(n);
    else {
      for (preset const& p : presets()) add(std::string(p.name));
    }
  }
  if (names.empty()) add(std::string(presets().front().name));
  return names;
}

std::string known_options(CLI::App const& app) {
  std::string names;
  for (CLI::Option const* o : app.get_options()) {
    if (!o->get_lnames().empty()) names += " --" + o->get_lnames().front();
  }
  return names;
}

std::string scheduler_help() {
  std::string text =
      "Instead of replaying, plan what the trace's typical step swaps to the host and when, and go through it on a "
      "pool; "
      "may be repeated. Known:";
  for (scheduler const& s : schedulers) text += "\n  " + std::string(s.name) + ": " + std::string(s.what);
  return text + "\n  all: each of them";
}

std::string check_scheduler(std::string const& name) {
  if (!schedulers_named(name).empty()) return "";
  std::string known = "all";
  for (scheduler const& s : schedulers) (known += ", ") += s.name;
  return "unknown scheduler '" + name + "'; known: " + known;
}

std::string check_swap_limit(std::string const& text) {
  return parse_swap_limit(text) ? "" : "'" + text + "' is neither a share of the peak, as 0.65 or 65%, nor a size";
}

std::string check_rate(std::string const& text) {
  return parse_rate(text) ? "" : "'" + text + "' is not a rate: a number with MB/s, GB/s, MiB/s or the like";
}

std::string check_latency(std::string const& text) {
  return parse_latency(text) ? "" : "'" + text + "' is not a latency: up to a second, with ns, us, ms or s";
}

std::string check_factor(std::string const& text) {
  double f = 0;
  bool const number = CLI::detail::lexical_cast(text, f);
  return number && f >= 1e-6 && f <= 1e6 ? "" : "'" + text + "' is not a number from 0.000001 to 1000000";
}

/// The texts of what goes with `--swap`.
struct swap_texts {
  std::vector<std::string> named;
  std::string limit, channel, latency, slow;
};

void add_swap_options(CLI::App& app, swap_texts& given) {
  auto* const swap = app.add_option("--swap", given.named, scheduler_help())
                         ->type_name("NAME")
                         ->take_all()
                         ->allow_extra_args(false)
                         ->check(CLI::Validator(check_scheduler, ""));
  for (char const* other : {"--preset", "--backend", "--limit", "--min-limit", "--plan", "--no-marks", "--verify",
                            "--calls", "--fence-lag"}) {
    swap->excludes(app.get_option(other));
  }
  auto const add = [&](char const* name, std::string& to, char const* what, char const* type,
                       std::string (*check)(std::string const&)) {
    app.add_option(name, to, what)->type_name(type)->check(CLI::Validator(check, ""))->needs(swap);
  };
  add("--swap-limit", given.limit, "How much memory a step may take: a share of its peak, or bytes. Default: 0.65",
      "LIMIT", check_swap_limit);
  add("--channel", given.channel, "What the link to the host carries each way. Default: 55GB/s, an H200's", "RATE",
      check_rate);
  add("--latency", given.latency, "What a transfer takes beside its bytes. Default: 10us", "TIME", check_latency);
  add("--slow", given.slow, "Operations take F times as long as recorded", "F", check_factor);
}

swap_options swap_options_of(swap_texts const& given) {
  swap_options o;
  for (std::string const& name : given.named) {
    for (scheduler const& s : schedulers_named(name)) {
      bool const known = std::any_of(o.schedulers.begin(), o.schedulers.end(),
                                     [&](scheduler const& other) { return other.name == s.name; });
      if (!known) o.schedulers.push_back(s);
    }
  }
  if (!given.limit.empty()) o.limit = *parse_swap_limit(given.limit);
  for (swap::lane* const lane : {&o.on.channel.out, &o.on.channel.in}) {
    if (!given.channel.empty()) lane->bytes_per_second = *parse_rate(given.channel);
    if (!given.latency.empty()) lane->latency = *parse_latency(given.latency);
  }
  if (!given.slow.empty()) o.on.operation_time = std::stod(given.slow);
  return o;
}

exit_now complain(std::string const& message) {
  (void)std::fprintf(stderr, "gmlake-replay: %s\n", message.c_str());
  return {bad_command_line};
}

}  // namespace

std::variant<command_line, exit_now> parse(int argc, char const* const* argv) {
  command_line c;
  std::vector<std::string> named;
  std::string backend = "sim", limit, chunk, scale;

  CLI::App app{
      "Replays allocation traces through gmlake's pools and models of its peers, and tells what each takes.\n"
      "Reads gmlake's traces and RMM's logs, plain or gzip.",
      "gmlake-replay"};
  app.add_option("trace", c.traces, "Traces to replay")->required()->type_name("FILE");
  app.add_option("--preset", named, preset_help())
      ->type_name("NAME")
      ->take_all()
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_preset, ""));
  app.add_option(
         "--backend", backend,
         "Where memory comes from. sim: nowhere, at an H200's modelled cost; host: this machine's memory; cuda: "
         "the first CUDA device")
      ->type_name("KIND")
      ->check(CLI::IsMember({"sim", "host", "cuda"}));
  auto* const with_limit =
      app.add_option("--limit", limit, "Physical memory that a pool may hold; also 30GiB and the like")
          ->type_name("BYTES")
          ->check(CLI::Validator(check_bytes, ""));
  app.add_flag("--min-limit", c.min_limit,
               "Also find the smallest limit under which, and under every larger one tried, the trace completes")
      ->excludes(with_limit);
  app.add_option("--fence-lag", c.pool.fence_lag,
                 "Simulated fences are reached N events after their recording, and all at a step mark. Default: 1000")
      ->type_name("N")
      ->check(CLI::Validator(check_count, ""));
  app.add_option("--chunk", chunk, "Size of the chunks that gmlake's pools create, instead of what they would choose")
      ->type_name("BYTES")
      ->check(CLI::Validator(check_bytes, ""));
  app.add_option("--scale", scale, "Divide every size by F, at least 1, to fit a smaller machine")
      ->type_name("F")
      ->check(CLI::Validator(check_scale, ""));
  app.add_option("--plan", c.plan, "Plans that the preset planned goes by from the first request on")
      ->type_name("FILE");
  bool no_marks = false;
  app.add_flag("--no-marks", no_marks, "Don't tell pools where steps begin: those that plan then find out themselves");
  app.add_flag("--json", c.json, "Print one JSON object a line instead of the table");
  app.add_flag("--calls", c.calls, "Also print the driver's calls and their time by kind");
  app.add_option("--report", c.report, "Write charts, maps and the table as one web page")->type_name("FILE.html");
  app.add_flag("--verify", c.verify,
               "Fill each block with a pattern of its own, or pages of it where it is large, and "
               "check them before it is freed; on host and cuda");
  swap_texts swap;
  add_swap_options(app, swap);
  app.footer(
      "Exit status: 0; 1 if a replay ran out of memory, failed or found wrong contents, or no schedule can meet the "
      "limit; 2 if the command line or a trace is wrong.");

  try {
    app.parse(argc, argv);
  } catch (CLI::ExtrasError const& e) {
    return complain("unknown option: " + std::string(e.what()) + "\nKnown options:" + known_options(app));
  } catch (CLI::ParseError const& e) {
    if (e.get_exit_code() == 0) return exit_now{app.exit(e)};
    return complain(e.what());
  }

  c.backend = backend == "host" ? backend_kind::host : backend == "cuda" ? backend_kind::cuda : backend_kind::sim;
  if (c.backend == backend_kind::cuda && !built_with_cuda)
    return complain("--backend cuda: built without CUDA's headers");
  if (c.verify && c.backend == backend_kind::sim) return complain("--verify: the sim backend has no memory to check");
  c.presets = chosen(named);
  c.marks = !no_marks;
  if (!c.plan.empty() && std::find(c.presets.begin(), c.presets.end(), "planned") == c.presets.end())
    return complain("--plan: only the preset planned takes plans");
  if (!limit.empty()) c.pool.limit = *parse_bytes(limit);
  if (!chunk.empty()) c.pool.chunk = parse_bytes(chunk);
  if (!scale.empty()) c.scale = std::stod(scale);
  c.swap = swap_options_of(swap);
  return c;
}

}  // namespace gmlake::tools
