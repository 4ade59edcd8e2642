/// gmlake-plan as its users run it: what it prints, what it writes, and how it ends.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmlake/plan/plan_file.hpp"
#include "tests/tools/tool.hpp"

namespace {
using namespace gmlake::tests;
namespace plan = gmlake::plan;

std::string const problem =
    "id,lower,upper,size\n"
    "a,0,4,40\n"
    "b,2,8,30\n"
    "c,4,10,50\n"
    "d,6,9,20\n";  // at most b + c + d = 100 at once

/// A trace in the making.
class recording {
 public:
  std::uint32_t allocate(std::uint64_t size, std::uint32_t stream = 0) {
    text_ += "a," + std::to_string(next_) + "," + std::to_string(size) + "," + std::to_string(stream) + "\n";
    return next_++;
  }
  void free(std::uint32_t id) { text_ += "f," + std::to_string(id) + "\n"; }
  void mark(std::string const& label) { text_ += "m," + label + "\n"; }
  [[nodiscard]] std::string const& text() const { return text_; }

 private:
  std::string text_;
  std::uint32_t next_ = 0;
};

/// A forward pass of so many layers, and a backward pass; in all it takes layers · n + n / 2 at once.
void step(recording& r, int layers, std::uint64_t n) {
  r.mark("step");
  std::vector<std::uint32_t> kept;
  for (int i = 0; i < layers; ++i) {
    std::uint32_t const scratch_memory = r.allocate(n / 2);
    kept.push_back(r.allocate(n));
    r.free(scratch_memory);
  }
  r.mark("backward");
  for (; !kept.empty(); kept.pop_back()) {
    std::uint32_t const gradient = r.allocate(n / 2);
    r.free(kept.back());
    r.free(gradient);
  }
}

std::string training() {
  recording r;
  for (int i = 0; i < 4; ++i) (void)r.allocate(5000);  // weights
  for (int i = 0; i < 5; ++i) step(r, 8, 4096);
  return r.text();
}

/// A step leaves a block to the next, which frees it.
std::string leaving(int steps) {
  recording r;
  std::uint32_t left = r.allocate(1024);
  for (int i = 0; i < steps; ++i) {
    r.mark("step");
    std::uint32_t const first = r.allocate(2048);
    r.free(left);
    left = r.allocate(1024);
    r.free(first);
  }
  return r.text();
}

std::vector<plan::plan> plans_in(std::string const& path) {
  plan::plans_read read = plan::read_plans(contents(path));
  CAPTURE(read.error);
  REQUIRE(read);
  return std::move(read.value);
}

/// Where a test's tool writes; nothing is there yet.
std::string fresh(std::string const& name) {
  std::string path = scratch + "/" + name;
  std::filesystem::create_directories(scratch);
  std::filesystem::remove(path);
  return path;
}

TEST_CASE("a line of JSON has the keys promised, and numbers that agree") {
  ended const e = run("--json " + file("training.csv", training()));
  CHECK(e.status == 0);
  auto const all = lines(e.out);
  REQUIRE(all.size() == 1);
  json const& r = all[0];
  CHECK(keys(r) == std::set<std::string>{"input", "plan", "step", "laps", "times", "ok", "requests", "placed",
                                         "kept_bytes", "bound", "height", "ratio", "proven", "packer", "stream_gap",
                                         "ms"});
  CHECK(r["input"] == "training");
  CHECK(r["plan"] == "step");
  CHECK(r["step"] == 1);
  CHECK(r["laps"] == 1);
  CHECK(r["times"] == 5);
  CHECK(r["ok"] == true);
  CHECK(r["requests"] == 24);
  CHECK(r["placed"] == 24);
  CHECK(r["kept_bytes"] == 0);
  CHECK(r["bound"] == 8 * 4096 + 2048);
  CHECK(r["height"].get<double>() / r["bound"].get<double>() == doctest::Approx(r["ratio"].get<double>()));
  CHECK(r["proven"] == (r["height"] == r["bound"]));
  CHECK(r["ms"].get<double>() >= 0);
}

TEST_CASE("the table names what was planned, and how well") {
  ended const e = run(small + " " + file("problem.csv", problem));
  CHECK(e.status == 0);
  for (char const* part : {"height / bound", "resnet50-fixed", "step 2", "11,407,814,144", "problem", "1.00000"}) {
    CAPTURE(std::string(part));
    CHECK(contains(e.out, part));
  }
  CHECK_FALSE(contains(e.err, "\x1b"));
}

TEST_CASE("a steady step of a real run is packed within 0.3% of what lives at once") {
  json const r = lines(run("--json " + small).out).at(0);
  CHECK(r["times"] == 15);
  CHECK(r["ratio"].get<double>() <= 1.003);
}

TEST_CASE("each shape of step that comes again has a plan") {
  recording r;
  for (int i = 0; i < 3; ++i) {
    step(r, 8, 4096);
    step(r, 5, 8192);
  }
  step(r, 3, 512);  // comes once
  auto const all = lines(run("--json " + file("two.csv", r.text())).out);
  REQUIRE(all.size() == 2);
  CHECK(all[0]["step"] == 1);
  CHECK(all[0]["times"] == 3);
  CHECK(all[0]["requests"] == 24);
  CHECK(all[1]["step"] == 2);
  CHECK(all[1]["times"] == 3);
  CHECK(all[1]["requests"] == 15);
}

TEST_CASE("a step is chosen by its number") {
  std::string const path = file("training.csv", training());
  CHECK(lines(run("--json --step 3 " + path).out).at(0)["step"] == 3);
  ended const beyond = run("--step 6 " + path);
  CHECK(beyond.status == 2);
  CHECK(contains(beyond.err, "--step 6: training has 5 steps"));
}

TEST_CASE("what outlives a step by more than its length is told, and not placed") {
  recording r;
  for (int i = 0; i < 3; ++i) {
    step(r, 4, 4096);
    (void)r.allocate(700);
  }
  json const j = lines(run("--json " + file("growing.csv", r.text())).out).at(0);
  CHECK(j["requests"] == j["placed"].get<int>() + 1);
  CHECK(j["kept_bytes"] == 1024);
}

TEST_CASE("where no step comes again the hungriest is planned, and nothing is written unless it was asked for") {
  recording r;
  step(r, 3, 4096);
  step(r, 9, 4096);
  step(r, 5, 4096);
  std::string const path = file("once.csv", r.text());
  std::string const out = fresh("once.plan");
  ended const e = run("--json --out " + out + " " + path);
  CHECK(e.status == 1);
  CHECK(contains(e.err, path + ": no step comes again: planned step 2"));
  CHECK(contains(e.err, "nothing is written"));
  CHECK(lines(e.out).back()["step"] == 2);
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(run(path).status == 0);
  CHECK(run("--step 3 --out " + out + " " + path).status == 0);
  CHECK(plans_in(out).size() == 2);
}

TEST_CASE("steps are found without marks") {
  auto const all = lines(run("--json --no-marks " + small).out);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["requests"] == 1092);
  CHECK(all[0]["times"].get<int>() >= 10);
  std::string unmarked;
  recording r;
  for (int i = 0; i < 12; ++i) step(r, 20, 4096);
  for (std::size_t at = 0, end = 0; at < r.text().size(); at = end + 1) {
    end = r.text().find('\n', at);
    if (r.text()[at] != 'm') unmarked += r.text().substr(at, end + 1 - at);
  }
  CHECK(lines(run("--json " + file("unmarked.csv", unmarked)).out).at(0)["requests"] == 60);
}

TEST_CASE("a run without steps is planned as one") {
  std::string const log = file("log.txt",
                               "Thread,Time,Action,Pointer,Size,Stream\n"
                               "1,10:00:00:000001,allocate,0x7f0000000000,1048576,0x0\n"
                               "1,10:00:00:000002,allocate,0x7f0000200000,1048576,0x7\n"
                               "1,10:00:00:000003,free,0x7f0000000000,1048576,0x0\n");
  std::string const out = fresh("log.plan");
  ended const e = run("--json --out " + out + " " + log);
  CHECK(e.status == 0);
  CHECK(contains(e.err, "no step with requests is marked, and none was found"));
  json const r = lines(e.out).at(0);
  CHECK(r["plan"] == "run");
  CHECK(r["placed"] == 1);
  auto const plans = plans_in(out);
  REQUIRE(plans.size() == 1);
  CHECK_FALSE(plans[0].repeats);
  CHECK(plans[0].requests.at(1).stream == 1);
}

TEST_CASE("gzip is unpacked") {
  CHECK(lines(run("--json " + file("packed.csv.gz", gzip(training()))).out).at(0)["input"] == "packed");
  CHECK(lines(run("--json " + file("problem.csv.gz", gzip(problem))).out).at(0)["bound"] == 100);
}

TEST_CASE("what an input is may be said") {
  std::string const path = file("format.csv", problem);
  CHECK(run("--format csv " + path).status == 0);
  ended const e = run("--format trace " + path);
  CHECK(e.status == 2);
  CHECK(contains(e.err, path + ":1: unknown kind \"id\""));
  CHECK(run("--format csv " + small).status == 2);
  // A mark may have a column's name.
  CHECK(run(file("mark.csv", "m,size\n" + training())).status == 0);
}

TEST_CASE("every packer packs") {
  std::string const path = file("problem.csv", problem) + " " + file("training.csv", training());
  for (char const* name : {"portfolio", "lifetime_sweep", "lowest_offset", "best_fit_decreasing", "grouped",
                           "large_first", "priority_search", "exact"}) {
    CAPTURE(std::string(name));
    ended const e = run(std::string("--json --packer ") + name + " " + path);
    CHECK(e.status == 0);
    for (json const& r : lines(e.out)) CHECK(r["ratio"].get<double>() >= 1);
  }
  CHECK(lines(run("--json --packer exact " + path).out).at(0)["packer"] == "exact_search");
  CHECK(lines(run("--json --packer exact " + path).out).at(0)["proven"] == true);
}

TEST_CASE("budgets are kept where a packer takes any") {
  std::string const path = file("problem.csv", problem);
  CHECK(run("--seconds 0.5 " + path).status == 0);
  CHECK(run("--work 1000 " + path).status == 0);
  CHECK(run("--packer exact --seconds 1 --work 100000 " + path).status == 0);
  ended const e = run("--packer lifetime_sweep --work 5 " + path);
  CHECK(e.status == 2);
  CHECK(contains(e.err, "--work: lifetime_sweep"));
  CHECK(contains(run("--packer grouped --seconds 5 " + path).err, "--seconds: grouped can't be limited in time"));
}

TEST_CASE("streams share bytes, keep a distance, or never share") {
  recording r;
  for (int i = 0; i < 3; ++i) {
    r.mark("step");
    r.free(r.allocate(4096, 7));
    r.free(r.allocate(4096, 2));
  }
  std::string const path = file("streams.csv", r.text());
  auto const height = [&](std::string const& gap) {
    json const j = lines(run("--json --stream-gap " + gap + " " + path).out).at(0);
    CHECK(j["proven"] == true);
    return j["height"].get<int>();
  };
  CHECK(height("0") == 4096);
  CHECK(height("1") == 4096);
  CHECK(height("2") == 8192);
  CHECK(height("never") == 8192);
  json const usual = lines(run("--json " + path).out).at(0);
  CHECK(usual["stream_gap"] == 0);  // a gap would double the height
  CHECK(usual["height"] == 4096);
}

TEST_CASE("what does not fit the capacity ends with status 1 and writes nothing") {
  std::string const path = file("training.csv", training());
  std::string const out = fresh("unfit.plan");
  ended const e = run("--json --capacity 20000 --out " + out + " " + path);
  CHECK(e.status == 1);
  CHECK(contains(e.err, path + ": step 1: nothing fits into 20,000 bytes: it takes 34,816 at least"));
  CHECK(lines(e.out).back()["ok"] == false);
  CHECK_FALSE(std::filesystem::exists(out));
  ended const higher = run("--packer lifetime_sweep --capacity 11407814144 " + small);  // the bound
  CHECK(higher.status == 1);
  CHECK(contains(higher.err, "more than the capacity"));
  CHECK(run("--capacity 1MiB --out " + out + " " + path).status == 0);
  CHECK(std::filesystem::exists(out));
}

TEST_CASE("a problem is solved within its capacity, or proven not to fit") {
  std::string const path = file("problem.csv", problem);
  CHECK(run("--capacity 100 " + path).status == 0);
  ended const e = run("--json --capacity 99 " + path);
  CHECK(e.status == 1);
  CHECK(contains(e.err, "nothing fits into 99 bytes: it takes 100 at least"));
  CHECK(lines(e.out).at(0).contains("failure"));
}

TEST_CASE("a solution is written, and found right") {
  std::string const path = file("problem.csv", problem), out = fresh("solution.csv");
  CHECK(run("--out " + out + " " + path).status == 0);
  CHECK(contents(out).starts_with("id,lower,upper,size,offset\na,0,4,40,"));
  ended const e = run("--json --validate " + out + " " + path);
  CHECK(e.status == 0);
  CHECK(lines(e.out).at(0)["height"] == 100);
  CHECK(run("--capacity 99 --validate " + out + " " + path).status == 1);
}

TEST_CASE("a wrong solution is told with what it breaks") {
  std::string const path = file("problem.csv", problem);
  auto const check = [&](std::string const& text) { return run("--validate " + file("wrong.csv", text) + " " + path); };
  ended const shared = check("id,offset\na,0\nb,30\nc,50\nd,80\n");
  CHECK(shared.status == 1);
  CHECK(contains(shared.err, "wrong.csv: problem: two buffers share a byte while both live: a and b"));
  ended const missing = check("id,offset\na,0\nb,40\nc,70\n");
  CHECK(missing.status == 2);
  CHECK(contains(missing.err, "wrong.csv:"));
  CHECK(contains(missing.err, "\"d\" is missing"));
  CHECK(check("id,offset\na,x\n").status == 2);
  CHECK(check("nonsense\n").status == 2);
  CHECK(contains(run("--validate " + file("alone.csv", "id,offset\n")).err, "needs its problem as input"));
}

TEST_CASE("a trace's plans are what comes before its steps, then the steps") {
  std::string const out = fresh("training.plan");
  ended const e = run("--json --out " + out + " " + file("training.csv", training()));
  CHECK(e.status == 0);
  auto const told = lines(e.out);
  REQUIRE(told.size() == 2);
  CHECK(told[0]["plan"] == "prologue");
  CHECK(told[0]["placed"] == 0);
  CHECK(told[0]["kept_bytes"] == 4 * 5120);
  auto const plans = plans_in(out);
  REQUIRE(plans.size() == 2);
  CHECK_FALSE(plans[0].repeats);
  CHECK(plans[0].requests.size() == 4);
  for (plan::step_request const& r : plans[0].requests) {
    CHECK(r.size == 5120);
    CHECK(r.death == plan::step_request::stays);
    CHECK(r.offset == plan::step_request::nowhere);
  }
  CHECK(plans[1].repeats);
  CHECK(plans[1].requests.size() == 24);
  CHECK(plans[1].height == told[1]["height"]);
  CHECK(plans[1].bound == told[1]["bound"]);
}

TEST_CASE("what the prologue leaves to the first step lies where a step leaves it to the next") {
  std::string const out = fresh("leaving.plan");
  CHECK(run("--out " + out + " " + file("leaving.csv", leaving(6))).status == 0);
  auto const plans = plans_in(out);
  REQUIRE(plans.size() == 2);
  plan::step_request const& first = plans[0].requests.at(0);
  plan::step_request const& each = plans[1].requests.at(1);
  CHECK(each.death > plans[1].period);
  CHECK(first.death - plans[0].period == each.death - plans[1].period);
  CHECK(first.offset == each.offset);
}

TEST_CASE("a plan's requests are a trace's from the first on") {
  std::string const out = fresh("small.plan");
  CHECK(run("--out " + out + " " + small).status == 0);
  auto const plans = plans_in(out);
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].requests.size() == 537 + 1092);
  CHECK(plans[1].requests.size() == 1092);
  ended const e = run("--json --validate " + out);
  CHECK(e.status == 0);
  CHECK(lines(e.out).at(1)["height"] == plans[1].height);
}

TEST_CASE("a damaged plan file is told with what is wrong, and ends with status 1") {
  std::string const out = fresh("small.plan");
  CHECK(run("--out " + out + " " + small).status == 0);
  std::string const whole = contents(out);
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(~flipped[whole.size() / 2]);
  for (std::string const& text : {flipped, whole.substr(0, whole.size() - 100), whole.substr(0, 12)}) {
    ended const e = run("--validate " + file("damaged.plan", text));
    CHECK(e.status == 1);
    CHECK(contains(e.err, "damaged.plan: "));
    CHECK(e.out.empty());
  }
  auto plans = plans_in(out);
  auto const placed = [](plan::step_request const& r) { return r.offset != plan::step_request::nowhere; };
  auto& requests = plans[1].requests;
  auto const a = std::ranges::find_if(requests, placed);
  auto const b = std::ranges::find_if(a + 1, requests.end(), [&](auto const& r) { return r.birth < a->death; });
  REQUIRE(b != requests.end());
  b->offset = a->offset;
  ended const e = run("--validate " + file("shared.plan", plan::write_plans(plans)));
  CHECK(e.status == 1);
  CHECK(contains(e.err, "two requests that live at once share bytes"));
  CHECK(run(out).status == 2);
  CHECK(contains(run(out).err, "is a plan file: --validate checks it"));
  CHECK(run("--validate " + out + " " + small).status == 2);
}

TEST_CASE("a bad input is told with its file and line, and ends with status 2") {
  struct bad {
    char const* name;
    std::string text;
    char const* message;
  };
  std::string const packed = contents(small);
  bad const cases[] = {
      {"double.csv", "a,0,1,0\nf,0\nf,0\n", ":3: double free of id 0"},
      {"cut.csv", "a,0,1,0\na,1", ":2: truncated: the last line \"a,1\" has no line end"},
      {"empty.csv", "", ":1: the trace has no events"},
      {"garbage.csv", "\x01\x02\x03\n", ":1: unknown kind"},
      {"cut.csv.gz", packed.substr(0, packed.size() / 2), ": truncated gzip data"},
      {"log.csv", "Thread,Time,Action,Pointer,Size,Stream\n1,1:0:0.1,free,0x10,8,0x0\n",
       ":2: free of 0x10, which is not live"},
      {"columns.csv", "id,lower,size\na,0,1\n", ":1: column \"upper\" is missing"},
      {"column.csv", "id,lower,upper,size,colour\n", ":1: unknown column \"colour\""},
      {"number.csv", "id,lower,upper,size\na,0,x,1\n", ":2: upper \"x\" is not a number"},
      {"backwards.csv", "id,lower,upper,size\na,0,2,1\nb,5,5,1\n", ":3: upper is not above lower"},
      {"twice.csv", "id,lower,upper,size\na,0,2,1\na,0,2,1\n", ":3: id \"a\" stands there twice"},
      {"none.csv", "id,lower,upper,size\n", ": the problem has no buffers"},
  };
  for (bad const& b : cases) {
    CAPTURE(std::string(b.name));
    std::string const path = file(b.name, b.text);
    ended const e = run("--json " + path);
    CHECK(e.status == 2);
    CAPTURE(e.err);
    CHECK(contains(e.err, "gmlake-plan: " + path + b.message));
    CHECK(e.out.empty());
  }
}

TEST_CASE("a file that is not there ends with status 2 before anything is planned") {
  ended const e = run("--json " + small + " " + scratch + "/missing.csv");
  CHECK(e.status == 2);
  CHECK(contains(e.err, "missing.csv: no such file"));
  CHECK(e.out.empty());
  CHECK(run(traces).status == 2);
  CHECK(run("--validate " + scratch + "/missing.plan").status == 2);
}

TEST_CASE("a wrong command line ends with status 2 and says what is known") {
  struct wrong {
    char const* arguments;
    char const* message;
  };
  std::string const csv = file("problem.csv", problem);
  wrong const cases[] = {
      {"--frobnicate", "unknown option"},
      {"--packer nothing", "unknown packer 'nothing'; known: portfolio, "},
      {"--step 0", "at least 1"},
      {"--step -1", "at least 1"},
      {"--step x", "at least 1"},
      {"--seconds 0", "number of seconds"},
      {"--seconds nan", "number of seconds"},
      {"--seconds 1e9", "number of seconds"},
      {"--work 0", "at least 1"},
      {"--stream-gap -1", "number of events"},
      {"--stream-gap soon", "number of events"},
      {"--capacity much", "not a size"},
      {"--capacity 0", "not a size"},
      {"--format xml", "--format"},
      {"--validate x --out y", "excludes"},
      {"--validate x --report y", "excludes"},
      {"--out /nowhere/at/all.plan", "can't be written"},
      {"--report /nowhere/at/all.html", "can't be written"},
  };
  for (wrong const& w : cases) {
    CAPTURE(std::string(w.arguments));
    ended const e = run(std::string(w.arguments) + " " + small);
    CHECK(e.status == 2);
    CAPTURE(e.err);
    CHECK(contains(e.err, w.message));
  }
  CHECK(contains(run("").err, "no input"));
  CHECK(run("").status == 2);
  CHECK(contains(run("--frobnicate " + small).err, "--stream-gap"));
  CHECK(contains(run("--out x " + small + " " + csv).err, "--out: takes one input"));
  for (char const* option : {"--step 2", "--no-marks", "--stream-gap 5"}) {
    ended const e = run(std::string(option) + " " + csv);
    CHECK(e.status == 2);
    CHECK(contains(e.err, csv + " is a CSV, not a trace"));
  }
}

TEST_CASE("help is help") {
  ended const e = run("--help");
  CHECK(e.status == 0);
  for (char const* part : {"--packer", "--no-marks", "--stream-gap", "lowest_offset", "Exit status"})
    CHECK(contains(e.out, part));
}

TEST_CASE("the report is one page that needs nothing else") {
  std::string const path = fresh("plan.html");
  ended const e =
      run("--report " + path + " " + small + " " + traces + "/moe-r.csv.gz " + file("problem.csv", problem));
  CHECK(e.status == 0);
  std::string const page = contents(path);
  CHECK(page.size() < 1'000'000);
  for (char const* part : {"<!doctype html>", "<canvas", "resnet50-fixed", "moe-r", "application/json", "</html>"}) {
    CAPTURE(std::string(part));
    CHECK(contains(page, part));
  }
  for (char const* part : {"http:", "https:", "src=", "@import", "url(", "<link"}) {
    CAPTURE(std::string(part));
    CHECK_FALSE(contains(page, part));
  }
}

TEST_CASE("the report of a plan that failed says why") {
  std::string const path = fresh("failed.html");
  CHECK(run("--capacity 99 --report " + path + " " + file("problem.csv", problem)).status == 1);
  CHECK(contains(contents(path), "nothing fits into 99 bytes"));
}

TEST_CASE("a page of more buffers than it can draw stays small") {
  std::string many = "id,lower,upper,size\n";
  for (int i = 0; i < 100'000; ++i) {
    many += std::to_string(i) + "," + std::to_string(i) + "," + std::to_string(i + 1 + i * 7 % 40) + "," +
            std::to_string(512 * (1 + i * 13 % 97)) + "\n";
  }
  std::string const path = fresh("many.html");
  CHECK(run("--packer lifetime_sweep --report " + path + " " + file("many.csv", many)).status == 0);
  CHECK(contents(path).size() < 5'000'000);
  CHECK(contains(contents(path), "the 40,000 largest drawn"));
}

TEST_CASE("numbers may be as large as they get") {
  std::string const path = fresh("large.html");
  ended const e = run("--json --report " + path + " " +
                      file("large.csv",
                           "id,lower,upper,size\n"
                           "a,0,18446744073709551615,9223372036854775807\n"
                           "b,9223372036854775807,18446744073709551614,4611686018427387904\n"
                           "c,18446744073709551614,18446744073709551615,4611686018427387904\n"));
  CHECK(e.status == 0);
  CHECK(lines(e.out).at(0)["bound"] == 13835058055282163711u);
  CHECK(contains(contents(path), "</html>"));
}

TEST_CASE("names are text in the report, whatever they hold") {
  recording r;
  for (int i = 0; i < 2; ++i) {
    r.mark("step");
    r.mark("</script><b>");
    r.free(r.allocate(512));
  }
  std::string const path = file("<b>&quot;.csv", r.text());
  CHECK(run("--report " + scratch + "/names.html '" + path + "'").status == 0);
  std::string const page = contents(scratch + "/names.html");
  CHECK(contains(page, "&lt;b&gt;&amp;quot;"));
  CHECK_FALSE(contains(page, "</script><b>"));
}

}  // namespace
