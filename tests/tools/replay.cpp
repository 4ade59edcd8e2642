/// gmlake-replay as its users run it: what it prints, what it writes, and how it ends.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <zlib.h>

namespace {
using nlohmann::json;

std::string const scratch = GMLAKE_SCRATCH;
std::string const traces = GMLAKE_TRACES;
std::string const small = traces + "/resnet50-fixed.csv.gz";

std::string contents(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file of that name with that text; its path.
std::string file(std::string const& name, std::string const& text) {
  std::filesystem::create_directories(scratch);
  std::string const path = scratch + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string gzip(std::string const& text) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  REQUIRE(deflateEnd(&z) == Z_OK);
  return out;
}

struct ended {
  int status;
  std::string out, err;
};

ended run(std::string const& arguments) {
  std::filesystem::create_directories(scratch);
  std::string const out = scratch + "/out", err = scratch + "/err";
  std::string const command = std::string(GMLAKE_REPLAY) + " " + arguments + " >" + out + " 2>" + err;
  int const status = std::system(command.c_str());
  CAPTURE(command);
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), contents(out), contents(err)};
}

std::vector<json> lines(std::string const& text) {
  std::vector<json> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = text.find('\n', at);
    out.push_back(json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

std::set<std::string> keys(json const& object) {
  std::set<std::string> out;
  for (auto const& [key, value] : object.items()) out.insert(key);
  return out;
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }

TEST_CASE("a line of JSON has the keys promised, and numbers that agree") {
  ended const e = run("--json --preset pytorch " + small);
  CHECK(e.status == 0);
  auto const all = lines(e.out);
  REQUIRE(all.size() == 1);
  json const& r = all[0];
  CHECK(keys(r) == std::set<std::string>{"trace", "preset", "backend", "ok", "requested_peak", "reserved_peak",
                                         "fragmentation", "driver_ms", "driver_calls", "stitches", "stitch_hits",
                                         "waits", "ops", "ns_per_op"});
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
  for (char const* part : {"--preset", "--min-limit", "--fence-lag", "pytorch", "Exit status"})
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
  ended const e = run("--preset all --report " + path + " " + small + " " + traces + "/maskrcnn.csv.gz");
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
