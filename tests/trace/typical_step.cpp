#include "gmlake/trace/typical_step.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/trace/reader.hpp"
#include "tests/swap/programs.hpp"
#include "tests/swap/written.hpp"

namespace {
using namespace gmlake;

/// Whole steps: the mark that ends the text begins none.
std::vector<trace::step_program> steps_of(std::string const& text) {
  auto const read = trace::read(text);
  REQUIRE(read);
  auto made = trace::programs_of(read.value);
  REQUIRE(made);
  return std::move(made.steps);
}

/// A step of two operations that take so long, with a block of `size` bytes.
std::string step(int id, int size, int first, int second) {
  std::string const block = std::to_string(id);
  return "m,step\na," + block + "," + std::to_string(size) + ",0\nw," + block + "\no," + std::to_string(first) +
         "\nr," + block + "\no," + std::to_string(second) + "\nf," + block + "\n";
}

TEST_CASE("the step that comes most often stands for all, with each operation's median time") {
  auto const steps = steps_of(step(0, 9000, 1, 1) + step(1, 5000, 10, 500) + step(2, 5000, 30, 200) +
                              step(3, 5000, 20, 300) + step(4, 9000, 1, 1));
  auto const typical = trace::typical_step_of(steps);
  REQUIRE(typical);
  CHECK(typical->first == 1);
  CHECK(typical->alike == 3);
  CHECK(typical->others == 2);
  CHECK(typical->program.operations == std::vector<swap::time>{swap::time(20), swap::time(300)});
  CHECK(typical->program.variables.at(0).size == 5120);
}

TEST_CASE("of steps that come equally often the one with the highest peak does, and of two times the lower one") {
  auto const steps = steps_of(step(0, 5000, 1, 1) + step(1, 9000, 7, 40) + step(2, 5000, 2, 2) + step(3, 9000, 9, 30));
  auto const typical = trace::typical_step_of(steps);
  REQUIRE(typical);
  CHECK(typical->first == 1);
  CHECK(typical->alike == 2);
  CHECK(typical->program.operations == std::vector<swap::time>{swap::time(7), swap::time(30)});
}

TEST_CASE("steps without operations stand for nothing") {
  CHECK_FALSE(trace::typical_step_of({}));
  auto const typical = trace::typical_step_of(steps_of("m,step\nm,step\nm,step\n" + step(0, 512, 4, 5)));
  REQUIRE(typical);
  CHECK(typical->alike == 1);
  CHECK(typical->others == 0);
}

TEST_CASE("all steps that come again stand for a program that changes, in the order in which they come") {
  auto const steps = steps_of(step(0, 4096, 1, 1) + step(1, 5000, 10, 20) + step(2, 9000, 7, 40) +
                              step(3, 5000, 30, 20) + step(4, 9000, 5, 50));
  auto const all = trace::recurring_steps_of(steps);
  REQUIRE(all.size() == 2);
  CHECK(all[0].first == 1);
  CHECK(all[0].alike == 2);
  CHECK(all[0].others == 3);
  CHECK(all[0].program.operations == std::vector<swap::time>{swap::time(10), swap::time(20)});
  CHECK(all[1].first == 2);
  CHECK(all[1].program.operations == std::vector<swap::time>{swap::time(5), swap::time(40)});
}

TEST_CASE("the typical step stands alone where none comes again, or others carry something else") {
  auto const once = trace::recurring_steps_of(steps_of(step(0, 4096, 1, 1) + step(1, 5000, 10, 20)));
  REQUIRE(once.size() == 1);
  CHECK(once[0].first == 1);
  CHECK(trace::recurring_steps_of({}).empty());
  std::string const stays = "a,2,600,0\n";
  auto const changed =
      trace::recurring_steps_of(steps_of(step(0, 5000, 1, 2) + step(1, 5000, 1, 2) + stays + step(3, 5000, 1, 2) +
                                         step(4, 5000, 1, 2) + "m,step\nr,2\no,1\nf,2\n"));
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].first == 2);
  CHECK(changed[0].program.variables.size() == 2);
}

TEST_CASE("a program that is written as a trace is read as its typical step") {
  auto const p = swap::programs::transformer(3, {.layers = 2, .frozen = true});
  auto const typical = trace::typical_step_of(steps_of(swap::written(p, 4)));
  REQUIRE(typical);
  CHECK(typical->alike == 4);
  CHECK(typical->program.operations == p.operations);
  CHECK(typical->program.variables.size() == p.variables.size());
  CHECK(swap::peak_of(swap::loads_of(typical->program)) == swap::peak_of(swap::loads_of(p)));
}

}  // namespace
