#include "gmlake/swap/autoswap.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "tests/swap/programs.hpp"

namespace gmlake::swap::autoswap_test {
namespace {

constexpr channel a_byte_a_ns{{time(0), 1'000'000'000}, {time(0), 1'000'000'000}};

/// Two that may be away: a small one for long, a large one for as long as the peak lasts.
program small_and_large() {
  program p;
  p.operations.assign(10, time(100));
  p.variables.push_back({.size = 10, .birth = 0, .death = 10, .accesses = {{0}, {9}}});
  p.variables.push_back({.size = 40, .birth = 0, .death = 10, .accesses = {{3}, {6}}});
  p.variables.push_back({.size = 50, .birth = 5, .death = 6, .accesses = {{5}}});
  return p;
}

TEST_CASE("scores are durations, areas and excess times durations") {
  program const p = small_and_large();
  setting const at(p, a_byte_a_ns);
  scores const s(at, 90, {});
  CHECK(s.duration(0) == 780);
  CHECK(s.duration(1) == 120);
  CHECK(s.area(0) == 7800);
  CHECK(s.area(1) == 4800);
  excess const over(at, at.loads(), 90);  // the load is 100 at one operation of 100 ns, and 50 elsewhere
  CHECK(over.during({0, 0, 9}) == 1000);
  CHECK(over.during({1, 3, 6}) == 1000);
  CHECK(over.during({1, 5, 9}) == 0);
  CHECK(over.during({1, 8, 16}) == 1000);  // over the step's end
  CHECK(over.during({1, 6, 15}) == 0);
  CHECK(excess(at, std::vector<bytes>(10, 90), 90).during({1, 3, 6}) == 0);
}

TEST_CASE("what is chosen goes by the weights, until the load is below the limit") {
  program const p = small_and_large();
  setting const at(p, a_byte_a_ns);
  auto const chosen_for = [&](score_weights const& w, bytes limit) {
    std::vector<std::uint32_t> variables;
    for (move const& m : autoswap(at, w).schedule_for(limit).moves) variables.push_back(m.away.variable);
    return variables;
  };
  CHECK(chosen_for({.doa = 1}, 90) == std::vector<std::uint32_t>{0});
  CHECK(chosen_for({.doa = 1}, 60) == std::vector<std::uint32_t>{0, 1});
  CHECK(chosen_for({.doa = 1}, 100).empty());
  CHECK(chosen_for({.swdoa = 1}, 55) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("of absences that weigh the same the longest is chosen first") {
  program p;
  p.operations.assign(10, time(100));
  p.variables.push_back({.size = 40, .birth = 0, .death = 10, .accesses = {{1}, {8}}});
  p.variables.push_back({.size = 40, .birth = 0, .death = 10, .accesses = {{3}, {7}}});
  p.variables.push_back({.size = 50, .birth = 5, .death = 6, .accesses = {{5}}});
  setting const at(p, a_byte_a_ns);
  schedule const s = autoswap(at, {.wdoa = 1}).schedule_for(100);
  REQUIRE(s.moves.size() == 1);
  CHECK(s.moves[0].away.variable == 0);
}

TEST_CASE("it never stalls where it looks for the lowest peak, and keeps to a limit that it is given") {
  for (std::uint32_t seed = 0; seed < 2; ++seed) {
    program const p = programs::cnn(seed, {.blocks = 2});
    setting const at(p, {});
    for (score_weights const& w : {score_weights{.doa = 1}, score_weights{.aoa = 1}, score_weights{.wdoa = 1}}) {
      solution const low = autoswap(at, w).lowest_peak(32);
      CHECK(find_fault(p, low.schedule) == nullptr);
      CHECK(low.outcome.without_stall());
      CHECK(low.outcome.peak <= at.peak());
      auto const limited = autoswap(at, w).under(at.peak() / 4 * 3);
      if (limited) CHECK(limited->outcome.peak <= at.peak() / 4 * 3);
    }
  }
}

}  // namespace
}  // namespace gmlake::swap::autoswap_test
