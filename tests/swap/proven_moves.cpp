#include "gmlake/swap/proven_moves.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::proven_moves_test {
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
constexpr auto all = [](std::size_t) { return true; };
using yes_or_no = std::vector<bool>;

TEST_CASE("the same block between the same accesses is proven, whenever it comes back") {
  step_plan const before = plan_of(
      {{.variable = 0, .after = 0, .before = 9, .from = 7}, {.variable = 1, .after = 5, .before = 9, .from = 8}});
  CHECK(proven_moves(plan_of({{.variable = 1, .after = 0, .before = 5, .from = 2},
                              {.variable = 1, .after = 5, .before = 9, .from = 6},
                              {.variable = 0, .after = 0, .before = 9, .from = 7}}),
                     before, all) == yes_or_no{false, true, true});
  CHECK(proven_moves(plan_of({{.variable = 1, .after = 0, .before = 9}}), before, all) == yes_or_no{false});
  CHECK(proven_moves(plan_of({}), before, all).empty());
}

TEST_CASE("what was not proven before is not now") {
  step_plan const before =
      plan_of({{.variable = 0, .after = 0, .before = 9}, {.variable = 1, .after = 5, .before = 9}});
  CHECK(proven_moves(before, before, [](std::size_t out) { return out == 1; }) == yes_or_no{false, true});
  CHECK(proven_moves(before, plan_of({}), all) == yes_or_no{false, false});
}

TEST_CASE("nor is what has only the number of another block") {
  std::vector<planned_out> const outs{{.variable = 0, .after = 0, .before = 9}};
  CHECK(proven_moves(plan_of(outs, 1), plan_of(outs, 0), all) == yes_or_no{false});
}

}  // namespace
}  // namespace gmlake::swap::proven_moves_test
