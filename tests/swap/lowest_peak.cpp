#include "gmlake/swap/lowest_peak.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/simulate.hpp"
#include "tests/swap/naive.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::lowest_peak_test {
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

TEST_CASE("no score of AutoSwap's finds a lower peak") {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    program const p = programs::cnn(seed, {.stages = 5, .blocks = 1, .layers = 3, .jitter = 1});
    setting const at(p, {});
    bytes const found = lowest_peak(at).find().outcome.peak;
    for (score_weights const& w : {score_weights{.doa = 1}, {.aoa = 1}, {.wdoa = 1}, {.swdoa = 1}}) {
      CHECK(found <= autoswap(at, w).lowest_peak(24).outcome.peak);
    }
  }
}

TEST_CASE("blocks that are too small to be worth moving stay, and bounds don't know of that") {
  program p;
  p.operations.assign(12, time(1'000'000));
  p.variables.push_back({.size = 1_MiB - 512, .birth = 0, .death = 12, .accesses = {{0}, {11}}});
  p.variables.push_back({.size = 1_MiB, .birth = 0, .death = 12, .accesses = {{0}, {11}}});
  p.variables.push_back({.size = 4_MiB, .birth = 5, .death = 7, .accesses = {{5}, {6}}});
  setting const all(p, {}), large(p, {}, smallest_worth_moving);
  CHECK(peak_bound(large) == peak_bound(all));
  auto const moved = [](schedule const& s) {
    std::vector<std::uint32_t> variables;
    for (move const& m : s.moves) variables.push_back(m.away.variable);
    std::ranges::sort(variables);
    return variables;
  };
  CHECK(moved(lowest_peak(all).find().schedule) == std::vector<std::uint32_t>{0, 1});
  CHECK(moved(lowest_peak(large).find().schedule) == std::vector<std::uint32_t>{1});
  CHECK(moved(autoswap(large, {.doa = 1}).schedule_for(4_MiB)) == std::vector<std::uint32_t>{1});
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
}  // namespace gmlake::swap::lowest_peak_test
