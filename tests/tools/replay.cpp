/// gmlake-replay as its users run it: what it prints, what it writes, and how it ends.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>
#include <cstdint>
#include <string>

#include "tests/tools/tool.hpp"

namespace {
using namespace gmlake::tests;

TEST_CASE("a line of JSON has the keys promised, and numbers that agree") {
  ended const e = run("--json --preset pytorch " + small);
  CHECK(e.status == 0);
  auto const all = lines(e.out);
  REQUIRE(all.size() == 1);
  json const& r = all[0];
  CHECK(keys(r) == std::set<std::string>{"trace", "preset", "backend", "ok", "requested_peak", "reserved_peak",
                                         "fragmentation", "driver_ms", "driver_calls", "stitches", "stitch_hits",
                                         "waits", "ops", "ns_per_op", "plans", "steady"});
  CHECK(keys(r["driver_calls"]) ==
        std::set<std::string>{"create", "map", "set_access", "unmap", "release", "reserve", "unreserve"});
  CHECK(r["trace"] == "resnet50-fixed");
  CHECK(r["preset"] == "pytorch");
  CHECK(r["backend"] == "sim");
  CHECK(r["ok"] == true);
  CHECK(r["requested_peak"].is_number_unsigned());
  CHECK(r["reserved_peak"].is_number_unsigned());
  CHECK(r["requested_peak"].get<double>() / (1 << 20) == doctest::Approx(11140).epsilon(0.001));
  double const requested = r["requested_peak"], reserved = r["reserved_peak"];
  CHECK(r["fragmentation"].get<double>() == doctest::Approx(1 - requested / reserved));
  CHECK(r["ops"].get<std::uint64_t>() >= 36000);
  CHECK(r["ns_per_op"].get<double>() > 0);
  CHECK(r["driver_calls"]["create"].get<std::uint64_t>() > 0);
}

/// One line of JSON for a preset over a trace.
json replayed(std::string const& preset, std::string const& arguments) {
  ended const e = run("--json --preset " + preset + " " + arguments);
  CAPTURE(e.err);
  CHECK(e.status == 0);
  return lines(e.out).at(0);
}

/// A trace of pairs of blocks in steps of 60 requests, in which weights stay.
std::string steps(int n) {
  std::string text = "a,0,1000000,0\n";
  int id = 0;
  for (int step = 0; step < n; ++step) {
    text += "m,step\n";
    for (int i = 0; i < 30; ++i) {
      std::string const a = std::to_string(++id), b = std::to_string(++id);
      text += "a," + a + "," + std::to_string(3'000'000 + 100'000 * i) + ",0\na," + b + ",500000,0\nf," + a + "\nf," +
              b + "\n";
    }
  }
  return file("steps" + std::to_string(n) + ".csv", text);
}

TEST_CASE("what happens from the fifth step on is told apart") {
  json const r = replayed("pytorch", small);
  json const& s = r.at("steady");
  CHECK(keys(s) == std::set<std::string>{"from_step", "operations", "ns_per_op", "driver_calls", "driver_ms",
                                         "stitches", "stitch_hits", "reserved_at_end", "planned_share"});
  CHECK(s["from_step"] == 5);
  CHECK(s["operations"].get<std::uint64_t>() > 0);
  CHECK(s["operations"].get<std::uint64_t>() < r["ops"].get<std::uint64_t>());
  CHECK(s["ns_per_op"].get<double>() > 0);
  CHECK(s["driver_calls"] == 0);
  CHECK(s["planned_share"].is_null());
  CHECK(r["plans"].is_null());
  CHECK(replayed("pytorch", steps(5)).at("steady").at("operations") == 120);
}

TEST_CASE("a trace with fewer than five marked steps has no steady part") {
  CHECK(replayed("pytorch", steps(4)).at("steady").is_null());
  CHECK(replayed("pytorch", file("plain.csv", "a,0,512,0\nf,0\n")).at("steady").is_null());
  CHECK(replayed("planned", file("plain.csv", "a,0,512,0\nf,0\n")).at("steady").is_null());
}

TEST_CASE("pools that plan tell what their plans did, and what planning took beside the replay") {
  for (char const* preset : {"planned", "smartpool", "stweaver"}) {
    CAPTURE(std::string(preset));
    json const r = replayed(preset, steps(12));
    json const& p = r.at("plans");
    CHECK(keys(p) == std::set<std::string>{"made", "placed", "squeezed", "displaced", "astray", "planning_ms"});
    CHECK(p["made"].get<std::uint64_t>() >= 1);
    CHECK(p["placed"].get<std::uint64_t>() > 400);
    CHECK(p["planning_ms"].get<double>() > 0);
    json const& s = r.at("steady");
    CHECK(s["planned_share"].get<double>() > 0.9);
    CHECK(s["driver_calls"] == 0);
  }
}

TEST_CASE("without marks, pools find the steps themselves") {
  json const r = replayed("planned", "--no-marks " + small);
  CHECK(r.at("plans").at("made").get<std::uint64_t>() >= 1);
  CHECK(r.at("steady").at("from_step") == 5);
  CHECK(replayed("stweaver", "--no-marks " + small).at("plans").at("astray") == 0);
}

/// A plan file of one plan without requests: its layout is that of gmlake/plan/plan_file.hpp.
std::string plan_file(unsigned version = 2) {
  std::string text = "gmlkplan";
  auto const put = [&text](std::uint64_t n, int count) {
    for (int i = 0; i < count; ++i) text += static_cast<char>(n >> (8 * i) & 0xff);
  };
  put(version, 4);
  put(0, 4);
  std::uint64_t sum = 0xcbf29ce484222325;
  for (char const c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  put(sum, 8);
  return text;
}

TEST_CASE("plans come from a file, and one that is none is told with its name") {
  CHECK(replayed("planned", "--plan " + file("none.plan", plan_file()) + " " + small).at("ok") == true);

  struct bad {
    std::string path;
    char const* message;
  };
  bad const cases[] = {
      {file("text.plan", "hello"), "not a plan file"},
      {"/dev/zero", "not a plan file"},
      {file("short.plan", plan_file().substr(0, 12)), "truncated"},
      {file("new.plan", plan_file(9)), "version 9"},
      {file("flipped.plan", plan_file().substr(0, 23) + "x"), "checksum"},
      {scratch + "/missing.plan", "no such file"},
  };
  for (bad const& b : cases) {
    CAPTURE(b.path);
    ended const e = run("--json --preset planned --plan " + b.path + " " + small);
    CHECK(e.status == 2);
    CAPTURE(e.err);
    CHECK(contains(e.err, "gmlake-replay: " + b.path + ": "));
    CHECK(contains(e.err, b.message));
    CHECK(e.out.empty());
  }
}

TEST_CASE("over several traces the table ends with each preset's mean") {
  std::string const both = run("--preset pytorch --preset lake " + small + " " + steps(3)).out;
  CHECK(contains(both, "mean of 2"));
  CHECK_FALSE(contains(run("--preset pytorch " + small).out, "mean of"));
}

TEST_CASE("the table is followed by one of the steady part, and of plans where there are any") {
  std::string const plain = run("--preset pytorch " + small).out;
  for (char const* part : {"step 5 on: ns/op", "by plan"}) CHECK(contains(plain, part));
  CHECK_FALSE(contains(plain, "planning ms"));
  CHECK(contains(run("--preset pytorch --preset planned " + small).out, "planning ms"));
  CHECK_FALSE(contains(run("--preset pytorch " + steps(2)).out, "step 5 on"));
}

TEST_CASE("the smallest limit adds its keys, and does what it says") {
  ended const e = run("--json --min-limit --preset pytorch " + small);
  CHECK(e.status == 0);
  json const r = lines(e.out).at(0);
  std::uint64_t const limit = r.at("min_limit");
  CHECK(limit % (2 << 20) == 0);
  CHECK(limit >= r.at("requested_peak").get<std::uint64_t>());
  CHECK(limit <= r.at("reserved_peak").get<std::uint64_t>());
  CHECK(r.at("min_limit_driver_ms").get<double>() > 0);
  CHECK(run("--json --preset pytorch --limit " + std::to_string(limit) + " " + small).status == 0);
  CHECK(run("--json --preset pytorch --limit " + std::to_string(limit - (2 << 20)) + " " + small).status == 1);
}

TEST_CASE("every preset replays every trace, in the order named") {
  ended const e = run("--json --preset all " + small + " " + traces + "/opt1.3b-ro.csv.gz");
  CHECK(e.status == 0);
  auto const all = lines(e.out);
  REQUIRE(all.size() >= 4);
  CHECK(all.size() % 2 == 0);
  CHECK(all.front()["trace"] == "resnet50-fixed");
  CHECK(all.back()["trace"] == "opt1.3b-ro");
  CHECK(lines(run("--json --preset expandable --preset pytorch " + small).out).at(1)["preset"] == "pytorch");
  CHECK(lines(run("--json --preset pytorch --preset pytorch " + small).out).size() == 1);
}

TEST_CASE("the table names what was replayed") {
  ended const e = run("--preset pytorch --preset expandable " + small);
  CHECK(e.status == 0);
  for (char const* part : {"trace", "requested MiB", "driver ms", "resnet50-fixed", "expandable", "11,140", "12,382"}) {
    CAPTURE(std::string(part));
    CHECK(contains(e.out, part));
  }
  CHECK_FALSE(contains(e.err, "\x1b"));
}

TEST_CASE("sizes may be divided") {
  json const whole = lines(run("--json --preset pytorch " + small).out).at(0);
  json const part = lines(run("--json --preset pytorch --scale 16 " + small).out).at(0);
  CHECK(part["requested_peak"].get<double>() ==
        doctest::Approx(whole["requested_peak"].get<double>() / 16).epsilon(0.01));
}

TEST_CASE("running out of memory is told with the event, and ends with status 1") {
  ended const e = run("--json --preset pytorch --limit 5GiB " + small);
  CHECK(e.status == 1);
  CHECK(lines(e.out).at(0)["ok"] == false);
  CHECK(contains(e.err, small + ": pytorch: event "));
  CHECK(contains(e.err, "out of memory"));
}

TEST_CASE("an RMM log is replayed like a trace") {
  std::string const log = file("log.txt",
                               "Thread,Time,Action,Pointer,Size,Stream\n"
                               "1,10:00:00:000001,allocate,0x7f0000000000,1048576,0x0\n"
                               "1,10:00:00:000002,free,0x7f0000000000,1048576,0x0\n");
  ended const e = run("--json --preset pytorch " + log);
  CHECK(e.status == 0);
  CHECK(lines(e.out).at(0)["ops"] == 2);
}

TEST_CASE("gzip is unpacked, also of several members") {
  std::string const path = file("members.csv.gz", gzip("a,0,512,0\na,1,5") + gzip("12,0\nf,0\n"));
  ended const e = run("--json --preset pytorch " + path);
  CHECK(e.status == 0);
  CHECK(lines(e.out).at(0)["trace"] == "members");
  CHECK(lines(e.out).at(0)["ops"] == 3);
}

TEST_CASE("a bad trace is told with its file and line, and ends with status 2") {
  struct bad {
    char const* name;
    std::string text;
    char const* message;
  };
  std::string const packed = contents(small);
  std::string flipped = packed;
  for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 64; ++i) flipped[i] = static_cast<char>(~flipped[i]);
  bad const cases[] = {
      {"double.csv", "a,0,1,0\nf,0\nf,0\n", ":3: double free of id 0"},
      {"unknown.csv", "a,0,1,0\nf,5\n", ":2: free of the unknown id 5"},
      {"negative.csv", "a,0,-1,0\n", ":1: size \"-1\" is negative"},
      {"overflow.csv", "a,0,99999999999999999999999,0\n", ":1: size \"99999999999999999999999\" is too large"},
      {"cut.csv", "a,0,1,0\na,1", ":2: truncated: the last line \"a,1\" has no line end"},
      {"empty.csv", "", ":1: the trace has no events"},
      {"cut.csv.gz", packed.substr(0, packed.size() / 2), ": truncated gzip data"},
      {"cut-trailer.csv.gz", packed.substr(0, packed.size() - 4), ": truncated gzip data"},
      {"flipped.csv.gz", flipped, ": "},
      {"garbage.csv.gz", packed + "garbage", ": corrupt gzip data"},
      {"packed-bad.csv.gz", gzip("a,0,1,0\nx\n"), ":2: unknown kind \"x\""},
      {"log.csv", "Thread,Time,Action,Pointer,Size,Stream\n1,1:0:0.1,free,0x10,8,0x0\n",
       ":2: free of 0x10, which is not live"},
  };
  for (bad const& b : cases) {
    CAPTURE(std::string(b.name));
    std::string const path = file(b.name, b.text);
    ended const e = run("--json --preset pytorch " + path);
    CHECK(e.status == 2);
    CAPTURE(e.err);
    CHECK(contains(e.err, "gmlake-replay: " + path + b.message));
    CHECK(e.out.empty());
  }
}

TEST_CASE("a file that is not there ends with status 2 before anything is replayed") {
  ended const e = run("--json --preset pytorch " + small + " " + scratch + "/missing.csv");
  CHECK(e.status == 2);
  CHECK(contains(e.err, "missing.csv: no such file"));
  CHECK(e.out.empty());
  CHECK(run("--preset pytorch " + traces).status == 2);
}

TEST_CASE("a wrong command line ends with status 2 and says what is known") {
  struct wrong {
    char const* arguments;
    char const* message;
  };
  wrong const cases[] = {
      {"", "trace"},
      {"--frobnicate", "unknown option"},
      {"--preset nothing", "unknown preset 'nothing'; known: all, "},
      {"--preset", "--preset"},
      {"--backend disk", "--backend"},
      {"--limit much", "not a size"},
      {"--limit 0", "not a size"},
      {"--limit -5", "not a size"},
      {"--limit 99999999999999999999", "not a size"},
      {"--limit 5GiB --min-limit", "excludes"},
      {"--chunk 2XiB", "not a size"},
      {"--fence-lag -1", "fence-lag"},
      {"--fence-lag soon", "fence-lag"},
      {"--scale 0", "at least 1"},
      {"--scale nan", "at least 1"},
      {"--scale x", "at least 1"},
      {"--verify", "--verify"},
      {"--preset pytorch --plan x", "only the preset planned"},
      {"--report /nowhere/at/all.html --preset pytorch", "can't be written"},
  };
  for (wrong const& w : cases) {
    CAPTURE(std::string(w.arguments));
    ended const e = run(std::string(w.arguments) + (*w.arguments != '\0' ? " " + small : ""));
    CHECK(e.status == 2);
    CAPTURE(e.err);
    CHECK(contains(e.err, w.message));
  }
  CHECK(contains(run("--frobnicate " + small).err, "--fence-lag"));
  CHECK(contains(run("--preset nothing " + small).err, "pytorch"));
}

TEST_CASE("help is help") {
  ended const e = run("--help");
  CHECK(e.status == 0);
  for (char const* part : {"--preset", "--min-limit", "--fence-lag", "--plan", "--no-marks", "pytorch", "Exit status"})
    CHECK(contains(e.out, part));
}

TEST_CASE("the driver's calls are told by kind when asked for") {
  json const r = lines(run("--json --calls --preset pytorch " + small).out).at(0);
  double sum = 0;
  for (auto const& [kind, ms] : r.at("driver_call_ms").items()) {
    CHECK(r.at("driver_calls").contains(kind));
    sum += ms.get<double>();
  }
  CHECK(sum == doctest::Approx(r.at("driver_ms").get<double>()));
  std::string const table = run("--calls --preset pytorch " + small).out;
  for (char const* part : {"us a call", "create", "set_access"}) CHECK(contains(table, part));
}

TEST_CASE("a backend that this machine lacks is named once, with what is missing") {
  ended const e = run("--json --backend cuda --verify --preset lake --preset gmlake " + small);
  if (e.status == 0) return;  // there is a GPU
  CHECK(e.out.empty());
  CHECK(contains(e.err, "--backend cuda: "));
  CHECK((contains(e.err, "no driver") || contains(e.err, "built without CUDA")));
  CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
}

TEST_CASE("contents are checked on the host backend") {
  ended const e = run("--json --preset pytorch --backend host --scale 64 --verify " + small);
  CHECK(e.status == 0);
  CHECK(lines(e.out).at(0)["ok"] == true);
  CHECK(lines(e.out).at(0)["backend"] == "host");
}

TEST_CASE("the report is one page that needs nothing else") {
  std::string const path = scratch + "/report.html";
  ended const e =
      run("--preset expandable --preset lake --report " + path + " " + small + " " + traces + "/maskrcnn.csv.gz");
  CHECK(e.status == 0);
  std::string const page = contents(path);
  CHECK(page.size() < 2'000'000);
  for (char const* part : {"<!doctype html>", "<svg", "resnet50-fixed", "maskrcnn", "expandable", "</html>"}) {
    CAPTURE(std::string(part));
    CHECK(contains(page, part));
  }
  for (char const* part : {"http:", "https:", "src=", "@import", "url(", "<link"}) {
    CAPTURE(std::string(part));
    CHECK_FALSE(contains(page, part));
  }
}

TEST_CASE("names are text in the report, whatever they hold") {
  std::string const path = file("<b>&quot;.csv", "a,0,512,0\n");
  CHECK(run("--preset pytorch --report " + scratch + "/names.html '" + path + "'").status == 0);
  CHECK(contains(contents(scratch + "/names.html"), "&lt;b&gt;&amp;quot;"));
}

}  // namespace
