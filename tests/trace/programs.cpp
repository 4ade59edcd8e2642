#include "gmlake/trace/programs.hpp"

#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/trace/reader.hpp"
#include "gmlake/trace/writer.hpp"

namespace {
using namespace gmlake;
using swap::program;
using swap::variable;
using uses = std::vector<swap::access>;

trace::step_programs programs_of(std::string const& text) {
  auto const read = trace::read(text);
  REQUIRE_MESSAGE(read, "line " << read.error.line << ": " << read.error.message);
  auto made = trace::programs_of(read.value);
  for (auto const& s : made.steps) {
    CHECK(swap::find_fault(s.program) == nullptr);
    CHECK(s.allocations.size() == s.program.variables.size());
  }
  return made;
}

/// A variable's line: its allocation's id, birth-death, what it is, and its accesses.
std::string text(trace::step_program const& s) {
  std::string out;
  for (std::size_t i = 0; i < s.program.variables.size(); ++i) {
    variable const& v = s.program.variables[i];
    out += std::to_string(s.allocations[i]) + ": " + std::to_string(v.birth) + "-" + std::to_string(v.death);
    out += std::string(v.carried ? " carried" : "") + (v.has_copy ? " copied" : "");
    for (swap::access const& a : v.accesses) {
      out += " " + std::string(a.reads ? "r" : "") + (a.writes ? "w" : "") + std::to_string(a.operation);
    }
    out += "\n";
  }
  return out;
}

TEST_CASE("a step's operations, lives and accesses are its program's") {
  auto const made = programs_of(
      "a,0,1000,0\n"  // weights
      "m,step\n"
      "a,1,0,0\n"
      "r,0\nw,1\no,10\n"
      "r,1\no,20\n"
      "f,1\n"
      "r,0\nw,0\no,30\n");
  REQUIRE(made);
  REQUIRE(made.steps.size() == 1);
  program const& p = made.steps[0].program;
  using namespace std::chrono_literals;
  CHECK(p.operations == std::vector<swap::time>{10ns, 20ns, 30ns});
  CHECK(text(made.steps[0]) == "0: 0-3 carried r0 rw2\n1: 0-2 w0 r1\n");
  CHECK(p.variables[0].size == 1024);
  CHECK(p.variables[1].size == 512);
}

TEST_CASE("what crosses a step's ends is carried only if it crosses both") {
  auto const made = programs_of(
      "a,0,1,0\n"
      "m,step\no,1\n"
      "a,1,1,0\no,1\n"                 // stays beyond its step
      "m,step\nr,1\no,1\n"             // 1 was there before, and goes
      "f,1\na,2,1,0\nr,2\no,1\nf,2\n"  // 2 goes behind the last operation
      "a,3,1,0\n"                      // 3 comes there
      "m,step\no,1\no,1\n");
  REQUIRE(made.steps.size() == 3);
  CHECK(text(made.steps[0]) == "0: 0-2 carried\n1: 1-2\n");
  CHECK(made.steps[0].program.variables[1].handed_on);
  CHECK(text(made.steps[1]) == "0: 0-2 carried\n1: 0-1 r0\n2: 1-2 r1\n");
  for (auto const& v : made.steps[1].program.variables) CHECK_FALSE(v.handed_on);
  CHECK(text(made.steps[2]) == "0: 0-2 carried\n3: 0-2 carried\n");
}

TEST_CASE("what goes before the next step's first operation ends with its step") {
  auto const made = programs_of("a,0,1,0\nm,step\nr,0\no,1\nm,step\nf,0\no,1\n");
  REQUIRE(made.steps.size() == 2);
  CHECK(text(made.steps[0]) == "0: 0-1 r0\n");
  CHECK(text(made.steps[1]).empty());
}

TEST_CASE("a block that is freed between its access and the operation's end lives to that end") {
  auto const made = programs_of("m,step\na,0,1,0\nw,0\no,1\nr,0\nf,0\na,1,1,0\nw,1\no,1\nr,1\no,1\n");
  CHECK(text(made.steps.at(0)) == "0: 0-2 w0 r1\n1: 1-3 w1 r2\n");
}

TEST_CASE("what an operation takes for itself lives for it") {
  auto const made =
      programs_of("m,step\no,1\na,0,1,0\nf,0\no,1\na,1,1,0\nf,1\nm,step\na,2,1,0\nf,2\no,1\na,3,1,0\nf,3\n");
  REQUIRE(made.steps.size() == 2);
  CHECK(text(made.steps[0]) == "0: 1-2\n");
  CHECK(text(made.steps[1]) == "2: 0-1\n");
}

TEST_CASE("a block that comes behind a step's last operation and goes before the next one's first is in neither") {
  auto const made = programs_of("m,step\no,1\na,0,1,0\nm,step\nf,0\no,1\n");
  REQUIRE(made.steps.size() == 2);
  CHECK(text(made.steps[0]).empty());
  CHECK(text(made.steps[1]).empty());
}

TEST_CASE("an operation belongs to the step in which it ends") {
  auto const made = programs_of("a,0,1,0\nm,step\no,1\nr,0\nm,step\nf,0\no,1\no,1\n");
  REQUIRE(made.steps.size() == 2);
  CHECK(text(made.steps[0]) == "0: 0-1 carried\n");
  CHECK(text(made.steps[1]) == "0: 0-1 r0\n");
}

TEST_CASE("an operation's accesses to a block are one") {
  auto const made = programs_of("a,0,1,0\nm,step\nr,0\nr,0\nw,0\no,1\nw,0\nw,0\no,1\nr,0\no,1\n");
  CHECK(text(made.steps.at(0)) == "0: 0-3 carried rw0 w1 r2\n");
}

TEST_CASE("accesses that no operation's end follows are left out") {
  auto const made = programs_of("a,0,1,0\nm,step\nr,0\no,1\nw,0\nf,0\n");
  CHECK(text(made.steps.at(0)) == "0: 0-1 carried r0\n");
}

TEST_CASE("the host's copy counts from the step before whose first access it was made") {
  auto const made = programs_of(
      "a,0,1,0\na,1,1,0\na,2,1,0\nh,0\n"
      "m,step\nr,0\nr,1\no,1\nh,1\nh,2\nr,1\nr,2\no,1\n"
      "m,step\nr,1\no,1\n");
  REQUIRE(made.steps.size() == 2);
  CHECK(text(made.steps[0]) == "0: 0-2 carried copied r0\n1: 0-2 carried r0 r1\n2: 0-2 carried copied r1\n");
  CHECK(text(made.steps[1]) == "0: 0-1 carried copied\n1: 0-1 carried copied r0\n2: 0-1 carried copied\n");
}

TEST_CASE("what a step writes before the host has its copy has none in that step") {
  auto const made = programs_of("m,step\na,0,1,0\nw,0\nh,0\no,1\nr,0\no,1\nm,step\nr,0\no,1\n");
  REQUIRE(made.steps.size() == 2);
  CHECK(text(made.steps[0]) == "0: 0-2 w0 r1\n");
  CHECK(text(made.steps[1]) == "0: 0-1 carried copied r0\n");
}

TEST_CASE("marks behind the last operation begin no step, and other marks none at all") {
  auto const made = programs_of("m,step\no,1\nm,backward\no,1\nm,step\nm,step\no,1\nm,step\nm,step\n");
  REQUIRE(made.steps.size() == 3);
  CHECK(made.steps[0].program.operations.size() == 2);
  CHECK(made.steps[1].program.operations.empty());
  CHECK(made.steps[2].program.operations.size() == 1);
}

TEST_CASE("a trace that says too little is an error") {
  CHECK(programs_of("m,step\na,0,1,0\nf,0\n").error == "the trace has no operations: it was recorded without accesses");
  CHECK(programs_of("a,0,1,0\nr,0\no,1\n").error == "the trace has no marks \"step\"");
  CHECK(programs_of("a,0,1,0\nr,0\no,1\nm,step\n").error == "no operation follows the first mark \"step\"");
  CHECK_FALSE(programs_of("m,step\n"));
}

TEST_CASE("steps are alike whatever time they take, and whichever blocks they have") {
  std::string all = "a,0,4096,0\n";
  for (int k = 0; k < 4; ++k) {
    std::string const id = std::to_string(k + 1);
    std::string const size = k == 3 ? "1025" : std::to_string(600 + k);
    all += "m,step\na," + id + "," + size + ",0\nr,0\nw," + id + "\no," + std::to_string(7 * k) + "\n";
    all += "r," + id + "\nf," + id + "\no,5\n";
  }
  auto const made = programs_of(all);
  REQUIRE(made.steps.size() == 4);
  auto const of = [&](std::size_t k) -> program const& { return made.steps[k].program; };
  CHECK(trace::alike(of(0), of(1)));
  CHECK(trace::alike(of(1), of(2)));
  CHECK_FALSE(trace::alike(of(2), of(3)));
  CHECK(trace::fingerprint(of(0)) == trace::fingerprint(of(2)));
  CHECK(trace::fingerprint(of(2)) != trace::fingerprint(of(3)));
}

TEST_CASE("any difference but a time's tells two steps apart") {
  program const base{.operations = {swap::time{1}, swap::time{2}},
                     .variables = {{.size = 512, .birth = 0, .death = 2, .accesses = {{.operation = 1}}}}};
  std::vector<program> others(8, base);
  others[0].operations.emplace_back(3);
  others[1].variables[0].size = 1024;
  others[2].variables[0].birth = 1;
  others[3].variables[0].death = 1;
  others[4].variables[0].carried = true;
  others[5].variables[0].has_copy = true;
  others[6].variables[0].accesses[0].writes = true;
  others[7].variables.push_back(base.variables[0]);
  std::set<std::uint64_t> fingerprints{trace::fingerprint(base)};
  for (program const& other : others) {
    CHECK_FALSE(trace::alike(base, other));
    fingerprints.insert(trace::fingerprint(other));
  }
  CHECK(fingerprints.size() == 9);
}

TEST_CASE("the lives in all steps together are those of the trace") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::string text;
    trace::writer w(text);
    struct block {
      std::uint32_t id;
      std::uint64_t birth, step;
      std::uint64_t used = 0;
    };
    std::vector<block> live;
    std::uint32_t born = 0;
    std::uint64_t operations = 0, accessed = 0, pending = 0, in_steps = 0;
    std::uint64_t lived = 0;  // operations times blocks, as the rules at the file's beginning have it
    std::uint64_t transient = 0, steps = 1;
    w.mark("step");
    for (int i = 0; i < 300; ++i) {
      std::uint64_t const what = random() % 12;
      if (what < 3) {
        w.allocate(born, 1 + random() % 2000, 0);
        live.push_back({born++, operations, steps});
      } else if (what < 5 && !live.empty()) {
        std::size_t const at = random() % live.size();
        w.deallocate(live[at].id);
        std::uint64_t const death = std::max(operations, live[at].used);
        lived += death - live[at].birth;
        transient += death == live[at].birth && live[at].step == steps;
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (what < 9 && !live.empty()) {
        block& b = live[random() % live.size()];
        if (b.used <= operations) ++pending;
        b.used = operations + 1;
        if (random() % 2 == 0) w.read(b.id);
        else w.wrote(b.id);
      } else if (what < 11) {
        w.operation(std::chrono::nanoseconds(random() % 1000));
        ++operations;
        lived += std::exchange(transient, 0);
        accessed += std::exchange(pending, 0);
      } else {
        w.mark("step");
        ++steps;
        transient = 0;
      }
    }
    w.operation({});
    lived += transient;
    accessed += pending;
    for (block const& b : live) lived += operations + 1 - b.birth;
    auto const made = programs_of(text);
    REQUIRE(made);
    std::uint64_t lived_in_steps = 0, accessed_in_steps = 0;
    for (auto const& s : made.steps) {
      in_steps += s.program.operations.size();
      for (variable const& v : s.program.variables) {
        lived_in_steps += v.death - v.birth;
        accessed_in_steps += v.accesses.size();
      }
    }
    CHECK(in_steps == operations + 1);
    CHECK(accessed_in_steps == accessed);
    CHECK(lived_in_steps == lived);
  }
}

}  // namespace
