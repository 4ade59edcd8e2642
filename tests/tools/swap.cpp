/// gmlake-replay --swap as its users run it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gmlake/trace/writer.hpp"
#include "tests/swap/programs.hpp"
#include "tests/swap/written.hpp"
#include "tests/tools/tool.hpp"

namespace {
using namespace gmlake::tests;
namespace programs = gmlake::swap::programs;

/// Traces of three steps that a small convolutional network and a small language model take.
std::string cnn() { return file("cnn.csv", written(programs::cnn(1, {.blocks = 2}), 3)); }
std::string language() {
  return file("language.csv", written(programs::transformer(1, {.layers = 6, .frozen = true}), 3));
}

json planned(std::string const& arguments) {
  ended const e = run("--json --swap " + arguments);
  CAPTURE(e.err);
  REQUIRE(e.status == 0);
  return lines(e.out).at(0);
}

TEST_CASE("a line of JSON tells what a schedule comes to, what none can beat, and what the pool reserved") {
  json const r = planned("lowest-peak " + cnn());
  CHECK(keys(r) == std::set<std::string>{"trace", "scheduler", "ok", "step", "steps_alike", "steps", "operations",
                                         "peak", "step_ms", "bytes_per_second", "slow", "latency_us", "least_peak",
                                         "limit", "least_limit", "least_ms", "without_stall", "under_limit"});
  CHECK(r["trace"] == "cnn");
  CHECK(r["scheduler"] == "lowest-peak");
  CHECK(r["step"] == 1);
  CHECK(r["steps_alike"] == 3);
  CHECK(r["steps"] == 3);
  CHECK(r["step_ms"].get<double>() == doctest::Approx(72).epsilon(0.01));
  CHECK(r["bytes_per_second"] == 55'000'000'000);
  CHECK(r["latency_us"] == 10);
  CHECK(r["slow"] == 1);
  CHECK(r["under_limit"].is_null());
  json const& s = r["without_stall"];
  CHECK(keys(s) == std::set<std::string>{"peak", "saved", "of_bound", "step_ms", "over_unlimited", "over_bound",
                                         "stalls", "stalled_ms", "moves", "moved_out", "moved_in", "weights",
                                         "packed_peak", "reserved_peak", "rehearsed_steps"});
  double const peak = r["peak"], found = s["peak"], least = r["least_peak"];
  CHECK(found >= least);
  CHECK(found < peak);
  CHECK(s["saved"].get<double>() == doctest::Approx(1 - found / peak));
  CHECK(s["of_bound"].get<double>() == doctest::Approx((peak - found) / (peak - least)));
  CHECK(s["of_bound"].get<double>() >= 0.9);
  CHECK(s["stalls"] == 0);
  CHECK(s["step_ms"] == r["step_ms"]);
  CHECK(s["moved_out"].get<std::uint64_t>() > 0);
  CHECK(s["weights"].is_null());
  CHECK(s["rehearsed_steps"] == 3);
  CHECK(s["packed_peak"].get<double>() >= found);
  CHECK(s["packed_peak"].get<double>() < peak);
  CHECK(s["reserved_peak"].get<double>() >= found);
  CHECK(s["reserved_peak"].get<double>() < peak);
}

TEST_CASE("under a limit a step takes no less than the bound, and the limit is kept") {
  json const r = planned("least-stall --swap-limit 0.7 " + cnn());
  CHECK(r["without_stall"].is_null());
  json const& s = r["under_limit"];
  double const limit = r["limit"];
  CHECK(limit == std::floor(0.7 * r["peak"].get<double>()));
  CHECK(s["peak"].get<double>() <= limit);
  CHECK(s["step_ms"].get<double>() >= r["least_ms"].get<double>());
  CHECK(s["over_bound"].get<double>() == doctest::Approx(s["step_ms"].get<double>() / r["least_ms"].get<double>()));
  CHECK(s["over_unlimited"].get<double>() == doctest::Approx(s["step_ms"].get<double>() / r["step_ms"].get<double>()));
  CHECK(s["stalls"].get<int>() > 0);
  CHECK(planned("least-stall --swap-limit 70% " + cnn())["limit"] == r["limit"]);
  CHECK(planned("least-stall --swap-limit 9GiB " + cnn())["limit"] == std::uint64_t{9} << 30);
}

TEST_CASE("a faster link and slower operations hide more") {
  auto const saved = [](std::string const& arguments) {
    return planned("lowest-peak " + arguments + cnn())["without_stall"]["saved"].get<double>();
  };
  double const plain = saved(""), slow_link = saved("--channel 12GB/s "),
               slow_both = saved("--channel 12GB/s --slow 10 ");
  CHECK(slow_link < plain);
  CHECK(plain < slow_both);
  CHECK(saved("--latency 1ms ") < plain);
  json const r = planned("lowest-peak --channel 12GB/s --slow 10 --latency 2.5us " + cnn());
  CHECK(r["bytes_per_second"] == 12'000'000'000);
  CHECK(r["slow"] == 10);
  CHECK(r["latency_us"] == 2.5);
  CHECK(r["step_ms"].get<double>() == doctest::Approx(720).epsilon(0.01));
}

TEST_CASE("every scheduler takes its turn over every trace, in the order named, and the mix tells its weights") {
  ended const e = run("--json --swap all " + cnn() + " " + language());
  CHECK(e.status == 0);
  auto const all = lines(e.out);
  REQUIRE(all.size() == 14);
  std::vector<std::string> names(all.size());
  std::ranges::transform(all, names.begin(), [](json const& r) { return r["scheduler"].get<std::string>(); });
  CHECK(std::vector(names.begin(), names.begin() + 7) ==
        std::vector<std::string>{"lowest-peak", "least-stall", "doa", "aoa", "wdoa", "swdoa", "mix"});
  CHECK(all.back()["trace"] == "language");
  for (json const& r : {all[6], all[13]}) {
    json const& w = r["without_stall"]["weights"];
    CHECK(w["doa"].get<double>() + w["aoa"].get<double>() + w["wdoa"].get<double>() + w["swdoa"].get<double>() > 0);
  }
  for (std::size_t trace : {0U, 7U}) {
    double const searched = all[trace]["without_stall"]["peak"];
    for (std::size_t k : {2U, 3U, 4U, 5U, 6U}) CHECK(searched <= all[trace + k]["without_stall"]["peak"].get<double>());
  }
  auto const twice = lines(run("--json --swap doa --swap lowest-peak --swap doa " + cnn()).out);
  REQUIRE(twice.size() == 2);
  CHECK(twice[0]["scheduler"] == "doa");
  CHECK(twice[1]["scheduler"] == "lowest-peak");
}

TEST_CASE("tables show schedules without stalls and under the limit apart") {
  ended const e = run("--swap lowest-peak --swap least-stall " + cnn());
  CHECK(e.status == 0);
  for (char const* part : {"without stalls", "lowest-peak", "under a limit", "least-stall", "3 of 3", "at most",
                           "x that", "packed MiB", "pool MiB", "over plan"}) {
    CAPTURE(std::string(part));
    CHECK(contains(e.out, part));
  }
  CHECK_FALSE(contains(run("--swap lowest-peak " + cnn()).out, "under a limit"));
  CHECK_FALSE(contains(run("--swap least-stall " + cnn()).out, "without stalls"));
}

TEST_CASE("a limit that nothing can meet is told with what can't be away, and ends with status 1") {
  ended const e = run("--json --swap least-stall --swap-limit 10MiB " + cnn());
  CHECK(e.status == 1);
  CHECK(contains(e.err, "no schedule meets the limit of 10.0 MiB: "));
  json const r = lines(e.out).at(0);
  CHECK(r["ok"] == false);
  CHECK(r["under_limit"].is_null());
  CHECK(r["least_ms"].is_null());
  CHECK(r["least_limit"].get<std::uint64_t>() > 10 << 20);
  CHECK(run("--json --swap lowest-peak --swap-limit 10MiB " + cnn()).status == 0);
  std::string const page = scratch + "/impossible.html";
  CHECK(run("--swap all --swap-limit 10MiB --report " + page + " " + cnn()).status == 1);
  CHECK(contains(contents(page), "none meets the limit of 10.0 MiB, as "));
}

TEST_CASE("a trace that can't be planned for is told with what it lacks, and ends with status 2") {
  struct bad {
    std::string path;
    char const* message;
  };
  bad const cases[] = {
      {small, "the trace has no operations: it was recorded without accesses"},
      {file("no-steps.csv", "a,0,512,0\nr,0\no,5\n"), "the trace has no marks \"step\""},
      {file("no-time.csv", "m,step\na,0,512,0\nr,0\no,0\n"), "its operations take no time"},
      {file("long.csv", "m,step\na,0,512,0\nr,0\no,9000000000000000000\n"), "its steps take too long to plan for"},
      {scratch + "/missing.csv", "no such file"},
  };
  for (bad const& b : cases) {
    CAPTURE(b.path);
    ended const e = run("--json --swap lowest-peak " + b.path);
    CHECK(e.status == 2);
    CAPTURE(e.err);
    CHECK(contains(e.err, "gmlake-replay: " + b.path + ": "));
    CHECK(contains(e.err, b.message));
    CHECK(e.out.empty());
  }
}

TEST_CASE("a wrong command line for swapping ends with status 2") {
  struct wrong {
    char const* arguments;
    char const* message;
  };
  wrong const cases[] = {
      {"--swap nothing", "unknown scheduler 'nothing'; known: all, lowest-peak, "},
      {"--swap", "--swap"},
      {"--swap doa --swap-limit 0", "neither a share"},
      {"--swap doa --swap-limit 0.5.5", "neither a share"},
      {"--swap doa --swap-limit 120%", "neither a share"},
      {"--swap doa --swap-limit 1.5", "neither a share"},
      {"--swap doa --swap-limit -1", "neither a share"},
      {"--swap doa --swap-limit much", "neither a share"},
      {"--swap doa --channel 12", "not a rate"},
      {"--swap doa --channel 0GB/s", "not a rate"},
      {"--swap doa --channel 12GB", "not a rate"},
      {"--swap doa --latency 5", "not a latency"},
      {"--swap doa --latency -5us", "not a latency"},
      {"--swap doa --latency 2s", "not a latency"},
      {"--swap doa --slow 0", "not a number from"},
      {"--swap doa --slow nan", "not a number from"},
      {"--swap-limit 0.5", "requires"},
      {"--channel 12GB/s", "requires"},
      {"--swap doa --preset lake", "excludes"},
      {"--swap doa --limit 5GiB", "excludes"},
      {"--swap doa --verify", "excludes"},
      {"--swap doa --report /nowhere/at/all.html", "can't be written"},
  };
  for (wrong const& w : cases) {
    CAPTURE(std::string(w.arguments));
    ended const e = run(std::string(w.arguments) + " " + cnn());
    CHECK(e.status == 2);
    CAPTURE(e.err);
    CHECK(contains(e.err, w.message));
  }
  std::string const help = run("--help").out;
  for (char const* part : {"--swap", "--swap-limit", "--channel", "--slow", "swdoa", "55GB/s"})
    CHECK(contains(help, part));
}

/// How often a part occurs.
std::size_t count(std::string const& text, std::string const& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("the report draws each schedule: memory with and without it, what crosses each way, and stalls") {
  std::string const path = scratch + "/swap.html";
  REQUIRE(run("--swap lowest-peak --swap least-stall --report " + path + " " + cnn() + " " + language()).status == 0);
  std::string const page = contents(path);
  CHECK(page.size() < 2'000'000);
  CHECK(count(page, "class=\"lanes\"") == 4);
  CHECK(count(page, "data-unit=\"ms\"") == 4);
  CHECK(count(page, "class=\"stall\"") >= 1);
  CHECK(count(page, "<g class=\"move\">") > 4);
  for (char const* part : {"<!doctype html>", "cnn", "language", "least-stall, limited", "What training steps swap",
                           "comes back from", "without a copy", "55.0 GB/s", "</html>"}) {
    CAPTURE(std::string(part));
    CHECK(contains(page, part));
  }
  for (char const* part : {"http:", "https:", "src=", "@import", "url(", "<link", "nan", "inf,", "No replay"}) {
    CAPTURE(std::string(part));
    CHECK_FALSE(contains(page, part));
  }
}

}  // namespace
