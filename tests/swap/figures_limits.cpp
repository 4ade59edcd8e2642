/// How many limits the search for the least stall meets: of programs shaped like training steps all that any schedule
/// may meet, of tiny ones nearly all.

#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/least_stall.hpp"
#include "tests/swap/naive.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::figures_limits_test {
namespace {

std::vector<program> small_ones() {
  return {programs::cnn(3, {.blocks = 1}), programs::transformer(3, {.layers = 4, .step_ns = 50e6, .peak = 9e9}),
          programs::transformer(3, {.layers = 4, .frozen = true, .step_ns = 90e6, .peak = 6e9})};
}

TEST_CASE("every limit is met that any schedule may meet") {
  for (program const& p : small_ones()) {
    setting const at(p, {});
    bytes const least = least_limit(at);
    for (bytes const part : {0U, 3U, 10U, 30U, 60U}) {
      bytes const limit = least + (at.peak() - least) / 100 * part;
      CAPTURE(part);
      auto const found = least_stall(at, limit).find();
      REQUIRE(found);
      CHECK(find_fault(p, found->schedule) == nullptr);
      CHECK(found->outcome.peak <= limit);
      CHECK(found->outcome.total >= time_bound(at, limit));
      // It says what a simulation says.
      CHECK(simulate(p, found->schedule, at.channel(), limit).total == found->outcome.total);
    }
    CHECK_FALSE(least_stall(at, least - 1).find());
  }
}

TEST_CASE("of tiny programs nearly every limit is met, and none with more than is there") {
  int asked = 0, met = 0;
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    program const p = programs::tiny(seed, 12, 8);
    setting const at(p, naive::tiny_channel(random));
    bytes const limit = least_limit(at) + random() % (at.peak() - least_limit(at) + 1);
    auto const found = least_stall(at, limit).find();
    ++asked;
    if (!found) continue;
    ++met;
    REQUIRE(find_fault(p, found->schedule) == nullptr);
    CHECK(found->outcome.peak <= limit);
    CHECK(found->outcome.total >= time_bound(at, limit));
  }
  MESSAGE("met ", met, " of ", asked);
  CHECK(met >= asked * 95 / 100);
}

}  // namespace
}  // namespace gmlake::swap::figures_limits_test
