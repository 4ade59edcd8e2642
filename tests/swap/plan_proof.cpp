#include "gmlake/swap/plan_proof.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::plan_proof_test {
namespace {

/// Of ten operations, with two blocks that are born in the step: of that number and the next.
[[nodiscard]] step_plan plan_of(std::vector<planned_out> outs, std::uint32_t first_born = 0) {
  step_program p;
  p.program.operations.assign(10, time(1000));
  p.program.variables = {{.size = 100, .birth = 0, .death = 10, .accesses = {{0}, {9}}},
                         {.size = 100, .birth = 0, .death = 10, .accesses = {{0}, {5}, {9}}}};
  p.prefixes.assign(10, 0);
  for (std::uint32_t v : {0U, 1U}) p.who.push_back({.is = identity::kind::born, .number = first_born + v});
  return {p, {.outs = std::move(outs), .returns = {}}, {}};
}
/// Of which so many steps are done.
[[nodiscard]] plan_proof after(std::uint32_t steps) {
  plan_proof made;
  for (std::uint32_t k = 0; k < steps; ++k) made.step_done();
  return made;
}
/// By number of the moves.
[[nodiscard]] std::vector<bool> held(plan_proof const& by, step_plan const& of) {
  std::vector<bool> made;
  for (std::size_t i = 0; i < of.moves().outs.size(); ++i) made.push_back(by.holds(i));
  return made;
}
using yes_or_no = std::vector<bool>;

TEST_CASE("two steps prove all moves of a plan") {
  CHECK_FALSE(after(0).holds(0));
  CHECK_FALSE(after(1).holds(0));
  CHECK(after(2).holds(0));
  CHECK(after(5).steps() == 5);
}

TEST_CASE("of another plan they prove what sends the same block away between the same accesses") {
  step_plan const before = plan_of(
      {{.variable = 0, .after = 0, .before = 9, .from = 7}, {.variable = 1, .after = 5, .before = 9, .from = 8}});
  step_plan const other = plan_of({{.variable = 1, .after = 0, .before = 5, .from = 2},
                                   {.variable = 1, .after = 5, .before = 9, .from = 6},
                                   {.variable = 0, .after = 0, .before = 9, .from = 7}});
  plan_proof const by = after(2).of_another(before, other);
  CHECK(by.steps() == 0);
  CHECK(held(by, other) == yes_or_no{false, true, true});
  CHECK(held(after(1).of_another(before, other), other) == yes_or_no{false, false, false});
  step_plan const longer = plan_of({{.variable = 1, .after = 0, .before = 9}});
  CHECK(held(after(2).of_another(before, longer), longer) == yes_or_no{false});
  step_plan const none = plan_of({});
  CHECK(held(after(2).of_another(none, before), before) == yes_or_no{false, false});

  SUBCASE("and so on, with what that proves itself") {
    step_plan const third =
        plan_of({{.variable = 1, .after = 5, .before = 9}, {.variable = 1, .after = 0, .before = 5}});
    CHECK(held(by.of_another(other, third), third) == yes_or_no{true, false});
    plan_proof all = by;
    all.step_done();
    CHECK(held(all.of_another(other, third), third) == yes_or_no{true, false});
    all.step_done();
    CHECK(held(all.of_another(other, third), third) == yes_or_no{true, true});
  }
}

TEST_CASE("what has only the number of another block is not proven") {
  std::vector<planned_out> const outs{{.variable = 0, .after = 0, .before = 9}};
  step_plan const before = plan_of(outs), other = plan_of(outs, 1);
  CHECK(held(after(2).of_another(before, other), other) == yes_or_no{false});
}

}  // namespace
}  // namespace gmlake::swap::plan_proof_test
