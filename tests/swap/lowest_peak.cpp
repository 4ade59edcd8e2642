#include "gmlake/swap/lowest_peak.hpp"

#include <random>

#include <doctest/doctest.h>

#include "gmlake/swap/simulate.hpp"
#include "tests/swap/naive.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap {
namespace {

TEST_CASE("nothing stalls, and the peak never rises") {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    program const p = programs::tiny(seed, 12, 8);
    setting const at(p, naive::tiny_channel(random));
    solution const found = lowest_peak(at).find();
    REQUIRE(find_fault(p, found.schedule) == nullptr);
    CHECK(found.outcome.without_stall());
    CHECK(found.outcome.peak <= at.peak());
    CHECK(found.outcome.peak >= peak_bound(at));
    // A runtime that is given the peak as its limit gets by.
    CHECK(simulate(p, found.schedule, at.channel(), found.outcome.peak).without_stall());
  }
}

TEST_CASE("several peaks are lowered together, also one over the step's end") {
  program p;
  p.operations.assign(12, time(100));
  // What is carried is away over the end of the step and while the peak in its middle lasts.
  p.variables.push_back({.size = 50, .death = 12, .carried = true, .accesses = {{2}, {9}}});
  p.variables.push_back({.size = 50, .birth = 0, .death = 1, .accesses = {{0}}});
  p.variables.push_back({.size = 50, .birth = 5, .death = 7, .accesses = {{5}, {6}}});
  setting const at(p, {{time(0), 1'000'000'000}, {time(0), 1'000'000'000}});
  CHECK(at.peak() == 100);
  solution const found = lowest_peak(at).find();
  CHECK(found.outcome.peak == 50);
  CHECK(found.schedule.moves.size() == 2);
}

TEST_CASE("a program without operations, or without time, has nothing to plan") {
  program const none;
  setting const empty(none, {});
  CHECK(lowest_peak(empty).find().outcome.without_stall());
  program p;
  p.operations.assign(4, time(0));
  p.variables.push_back({.size = 50, .death = 4, .carried = true, .accesses = {{0}, {2}}});
  setting const instant(p, {});
  CHECK(lowest_peak(instant).find().schedule.moves.empty());
}

}  // namespace
}  // namespace gmlake::swap
