#include "gmlake/swap/stays.hpp"

#include <doctest/doctest.h>

#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/portfolio.hpp"
#include "gmlake/plan/validate.hpp"
#include "gmlake/swap/least_stall.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::stays_test {
namespace {

[[nodiscard]] plan::problem stays_under(program const& p, solution const& s) {
  return stays_of(p, changes_of(p, s.schedule, {}, s.outcome));
}

TEST_CASE("each stay is a buffer, and what stays over the end wraps") {
  program p;
  p.operations.assign(4, std::chrono::milliseconds(1));
  p.variables = {{.size = 8, .birth = 0, .death = 4, .carried = true, .accesses = {{0}}},
                 {.size = 4, .birth = 1, .death = 3, .carried = false, .accesses = {{1}}},
                 {.size = 2, .birth = 0, .death = 4, .carried = true, .accesses = {{2}}}};
  std::vector<change> const all{{time{1}, change_kind::born, 1},
                                {time{2}, change_kind::left, 0},
                                {time{3}, change_kind::dead, 1},
                                {time{4}, change_kind::returns, 0}};
  plan::problem const made = stays_of(p, all);
  CHECK(made.period == 4);
  REQUIRE(made.buffers.size() == 3);
  CHECK(made.buffers[0].size == 4);
  CHECK(made.buffers[0].lower == 0);
  CHECK(made.buffers[0].upper == 2);
  CHECK(made.buffers[1].size == 8);
  CHECK(made.buffers[1].lower == 3);
  CHECK(made.buffers[1].upper == 5);  // it leaves at the next step's second change
  CHECK(made.buffers[2].size == 2);
  CHECK(made.buffers[2].upper - made.buffers[2].lower == made.period);
  CHECK(stays_of(program{}, {}).buffers.empty());
}

TEST_CASE("what a schedule leaves packs into little more than its peak") {
  for (std::uint32_t const seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    program const p = programs::cnn(seed, {.blocks = 2});
    setting const at(p, {});
    auto const planned = least_stall(at, at.peak() / 10 * 7).find();
    REQUIRE(planned);
    plan::problem const made = stays_under(p, *planned);
    REQUIRE_FALSE(plan::validate(made));
    CHECK(plan::lower_bound(made) <= planned->outcome.peak);
    plan::packed const packed = plan::portfolio({.work = 20'000'000}).pack(made);
    CHECK_FALSE(plan::validate(made, packed.solution));
    CHECK(packed.solution.height >= plan::lower_bound(made));
    CHECK(packed.solution.height <= planned->outcome.peak + planned->outcome.peak / 12);
    CHECK(packed.solution.height < at.peak());
  }
}

TEST_CASE("without a schedule, all that is carried is there throughout") {
  program const p = programs::cnn(1, {.blocks = 2});
  plan::problem const made = stays_under(p, {{}, simulate(p, {}, {})});
  REQUIRE_FALSE(plan::validate(made));
  CHECK(plan::lower_bound(made) == setting(p, {}).peak());
}

}  // namespace
}  // namespace gmlake::swap::stays_test
