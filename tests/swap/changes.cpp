#include "gmlake/swap/changes.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/lowest_peak.hpp"
#include "gmlake/swap/simulate.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::changes_test {
namespace {

/// Every byte takes a nanosecond, either way.
constexpr channel a_byte_a_ns{{time(0), 1'000'000'000}, {time(0), 1'000'000'000}};

std::string text(std::vector<change> const& all) {
  std::string out;
  for (change const& c : all) {
    constexpr char const* kinds[] = {"left", "dead", "born", "returns"};
    out +=
        std::to_string(c.at.count()) + " " + kinds[static_cast<int>(c.kind)] + " " + std::to_string(c.variable) + "\n";
  }
  return out;
}

/// The most that is resident in a step.
bytes peak_of(program const& p, std::vector<change> const& all) {
  std::vector<bool> resident = resident_at_begin(p, all);
  bytes now = 0;
  for (std::uint32_t v = 0; v < p.variables.size(); ++v) now += resident[v] ? p.variables[v].size : 0;
  bytes most = now;
  for (change const& c : all) {
    CHECK(resident[c.variable] != c.takes());
    resident[c.variable] = c.takes();
    if (c.takes()) now += p.variables[c.variable].size;
    else now -= p.variables[c.variable].size;
    most = std::max(most, now);
  }
  CHECK(resident == resident_at_begin(p, all));
  return most;
}

TEST_CASE("births, deaths and both ends of a move stand in the order of their times") {
  program p;
  p.operations = {time(5), time(10), time(10), time(10)};
  p.variables.push_back({.size = 10, .birth = 0, .death = 4, .accesses = {{0, false, true}, {3, true, false}}});
  p.variables.push_back({.size = 20, .birth = 2, .death = 3, .accesses = {{2, true, true}}});
  schedule const s{{{{0, 0, 3}, 3}}, {0}};
  outcome const o = simulate(p, s, a_byte_a_ns, 20);
  CHECK(o.ways_out == std::vector<time>{time(5)});
  CHECK(o.ways_back == std::vector<time>{time(25)});
  CHECK(text(changes_of(p, s, a_byte_a_ns, o)) ==
        "0 born 0\n15 left 0\n15 born 1\n25 dead 1\n25 returns 0\n45 dead 0\n");
}

TEST_CASE("what leaves for good is dead when it has left") {
  program p;
  p.operations.assign(4, time(10));
  p.variables.push_back({.size = 5, .birth = 0, .death = 4, .accesses = {{0, false, true}}});
  p.variables.push_back({.size = 5, .birth = 2, .death = 3, .accesses = {{2, false, true}}});
  schedule const s{{{{0, 0, 4}, 4}}, {}};
  outcome const o = simulate(p, s, a_byte_a_ns, 5);
  REQUIRE(o.without_stall());
  CHECK(o.peak == 5);
  auto const all = changes_of(p, s, a_byte_a_ns, o);
  CHECK(text(all) == "0 born 0\n15 dead 0\n20 born 1\n30 dead 1\n");
  CHECK(peak_of(p, all) == 5);
}

TEST_CASE("what is away over the step's end is found away") {
  program p;
  p.operations = {time(10), time(10), time(10), time(10)};
  p.variables.push_back({.size = 5, .birth = 0, .death = 4, .carried = true, .accesses = {{1, true, true}}});
  schedule const s{{{{0, 1, 5}, 4}}, {0}};
  outcome const o = simulate(p, s, a_byte_a_ns);
  REQUIRE(o.without_stall());
  auto const all = changes_of(p, s, a_byte_a_ns, o);
  CHECK(text(all) == "0 returns 0\n25 left 0\n");
  CHECK(resident_at_begin(p, all) == std::vector<bool>{false});
}

TEST_CASE("operations that take no time keep the order of births and deaths") {
  program p;
  p.operations = {time(0), time(0), time(3)};
  p.variables.push_back({.size = 5, .birth = 0, .death = 1});
  p.variables.push_back({.size = 5, .birth = 1, .death = 2});
  outcome const o = simulate(p, {}, {});
  CHECK(text(changes_of(p, {}, {}, o)) == "0 born 0\n0 dead 0\n0 born 1\n0 dead 1\n");
}

TEST_CASE("the changes of a step add up to the simulation's peak") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    program p = programs::tiny(seed, 12, 8);
    for (time& t : p.operations) t += time(1);
    setting const at(p, a_byte_a_ns);
    solution const found = lowest_peak(at).find();
    CHECK(peak_of(p, changes_of(p, found.schedule, a_byte_a_ns, found.outcome)) == found.outcome.peak);
  }
}

}  // namespace
}  // namespace gmlake::swap::changes_test
