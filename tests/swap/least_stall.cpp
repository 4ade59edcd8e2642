#include "gmlake/swap/least_stall.hpp"

#include <doctest/doctest.h>

#include "gmlake/swap/schedule_step.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::least_stall_test {
namespace {

TEST_CASE("a limit at the peak costs nothing, and moves nothing") {
  program const p = programs::cnn(3, {.blocks = 1});
  setting const at(p, {});
  auto const found = least_stall(at, at.peak()).find();
  REQUIRE(found);
  CHECK(found->outcome.without_stall());
  CHECK(found->schedule.moves.empty());
}

TEST_CASE("the same question gets the same answer") {
  program const p = programs::cnn(4, {.blocks = 1});
  setting const at(p, {});
  auto const once = least_stall(at, at.peak() / 2).find(), again = least_stall(at, at.peak() / 2).find();
  REQUIRE((once && again));
  CHECK(once->schedule.returns == again->schedule.returns);
  CHECK(once->outcome.starts == again->outcome.starts);
}

TEST_CASE("below the least limit the schedule is for that itself, where it can be met") {
  for (std::uint32_t const seed : {5U, 6U}) {
    program const p = programs::cnn(seed, {.blocks = 1});
    setting const at(p, {});
    bytes const least = least_limit(at);
    auto const [found, meets] = schedule_for(at, least - 1);
    CHECK_FALSE(meets);
    CHECK(found.outcome.peak >= least);
    bytes const expected = least_stall(at, least).find() ? least : least + least / 50;
    CHECK(found.outcome.peak <= expected);
  }
}

}  // namespace
}  // namespace gmlake::swap::least_stall_test
