#include "gmlake/swap/simulate.hpp"

#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/load.hpp"
#include "gmlake/swap/timing.hpp"
#include "tests/swap/naive.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::simulate_test {
namespace {

/// Every byte takes a nanosecond, either way.
constexpr channel a_byte_a_ns{{time(0), 1'000'000'000}, {time(0), 1'000'000'000}};

/// 10 bytes that the first and the last of four operations access, and 20 that live in between.
program around_a_peak() {
  program p;
  p.operations = {time(5), time(10), time(10), time(10)};
  p.variables.push_back({.size = 10, .birth = 0, .death = 4, .accesses = {{0, false, true}, {3, true, false}}});
  p.variables.push_back({.size = 20, .birth = 2, .death = 3, .accesses = {{2, true, true}}});
  return p;
}

schedule only(absence const& a, std::uint32_t from) { return {{{a, from}}, {0}}; }

TEST_CASE("nothing that moves means no stall, and the peak of the load") {
  program const p = programs::cnn(1);
  outcome const o = simulate(p, {}, {});
  CHECK(o.without_stall());
  CHECK(o.total == starts_of(p).back());
  CHECK(o.peak == peak_of(loads_of(p)));
  CHECK(o.stalls.empty());
}

TEST_CASE("what leaves and comes back in time costs nothing and lowers the peak") {
  program const p = around_a_peak();
  outcome const o = simulate(p, only({0, 0, 3}, 3), a_byte_a_ns, 20);
  REQUIRE(o.meets_limit());
  CHECK(o.peak == 20);
  CHECK(o.total == time(45));  // the last operation waits for the way back
  REQUIRE(o.stalls.size() == 1);
  CHECK(o.stalls[0].operation == 3);
  CHECK(o.stalls[0].cause == waits_for::arrival);
  CHECK(o.stalls[0].variable == 0);
  CHECK(o.stalls[0].length == time(10));
  CHECK(o.moved.out == 10);
  CHECK(o.moved.in == 10);

  outcome const early = simulate(p, only({0, 0, 3}, 2), a_byte_a_ns);
  CHECK(early.without_stall());
  CHECK(early.peak == 30);
}

TEST_CASE("an operation waits for room until what leaves has left") {
  program p = around_a_peak();
  p.operations[1] = time(4);
  outcome const o = simulate(p, only({0, 0, 3}, 3), a_byte_a_ns, 20);
  REQUIRE(o.stalls.size() == 2);
  CHECK(o.stalls[0].operation == 2);
  CHECK(o.stalls[0].cause == waits_for::room);
  CHECK(o.stalls[0].length == time(6));
  CHECK(o.stalled == time(16));
  CHECK(o.total == time(45));
  CHECK(o.starts == std::vector{time(0), time(5), time(15), time(35), time(45)});
}

TEST_CASE("what the host has a copy of leaves at once") {
  program p = around_a_peak();
  p.operations[1] = time(0);
  p.variables[0].accesses[0] = {0, true, false};
  p.variables[0].has_copy = true;
  outcome const o = simulate(p, only({0, 0, 3}, 3), a_byte_a_ns, 20);
  CHECK(o.total == time(35));
  CHECK(o.moved.out == 0);
  CHECK(o.moved.in == 10);
}

TEST_CASE("a limit that can't be met is told, with the operation that waits for ever") {
  CHECK(simulate(around_a_peak(), {}, a_byte_a_ns, 29).stuck == 2U);
  CHECK(simulate(around_a_peak(), only({0, 0, 3}, 3), a_byte_a_ns, 19).stuck == 2U);
  // The first in line comes back for the last operation only, behind it what the one before waits for.
  program p = around_a_peak();
  p.variables.push_back({.size = 1, .birth = 0, .death = 3, .accesses = {{0, false, true}, {2, true, false}}});
  schedule const s{{{{0, 0, 3}, 3}, {{2, 0, 2}, 1}}, {0, 1}};
  CHECK(simulate(p, s, a_byte_a_ns).stuck == 2U);
}

TEST_CASE("what is away over the step's end comes back in the next") {
  program p;
  p.operations = {time(10), time(30), time(10)};
  p.variables.push_back({.size = 20, .birth = 0, .death = 3, .carried = true, .accesses = {{1, true, true}}});
  outcome const o = simulate(p, only({0, 1, 4}, 2), a_byte_a_ns);
  CHECK(o.settled);
  CHECK(o.total == time(70));  // its way out and back take 40, the two operations without it 20
  outcome const quick = simulate(p, only({0, 1, 4}, 2), {{time(0), 4'000'000'000}, {time(0), 4'000'000'000}});
  CHECK(quick.without_stall());
}

TEST_CASE("an operation begins once it has been launched, which the device waits for without a stall") {
  program p = around_a_peak();
  p.launched = {time(0), time(5), time(30), time(31)};
  outcome const o = simulate(p, {}, a_byte_a_ns);
  CHECK(o.without_stall());
  CHECK(o.starts == std::vector{time(0), time(5), time(30), time(40), time(50)});
  CHECK(o.total == time(50));

  // By then what leaves has left, and the way back takes as long as ever.
  outcome const away = simulate(p, only({0, 0, 3}, 3), a_byte_a_ns, 20);
  REQUIRE(away.stalls.size() == 1);
  CHECK(away.stalls[0].operation == 3);
  CHECK(away.stalled == time(10));
  CHECK(away.starts == std::vector{time(0), time(5), time(30), time(50), time(60)});
}

TEST_CASE("steps come out as when they are laid out one after the other, nanosecond by nanosecond") {
  int settled = 0, stuck = 0, stalled = 0, by_launch = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    program p = programs::tiny(seed);
    channel const c = naive::tiny_channel(random);
    schedule const s = naive::any_schedule(p, random);
    if (random() % 2 == 0) {
      p.launched.assign(p.operations.size(), time(0));
      for (std::size_t i = 1; i < p.launched.size(); ++i) p.launched[i] = p.launched[i - 1] + time(random() % 20);
    }
    REQUIRE(find_fault(p) == nullptr);
    REQUIRE(find_fault(p, s) == nullptr);
    bytes const peak = peak_of(loads_of(p));
    bytes const limit = random() % 3 == 0 ? no_limit : peak - random() % (peak / 2 + 1);
    outcome const o = simulate(p, s, c, limit);
    naive::seen const n = naive::simulate(p, s, c, limit == no_limit ? 1'000'000 : limit, 20);
    REQUIRE(o.stuck.has_value() == n.stuck);
    if (o.stuck) {
      ++stuck;
      continue;
    }
    CHECK(o.peak <= limit);
    if (!o.settled) continue;
    ++settled;
    stalled += o.stalled > time(0);
    CHECK(o.total == n.begins[20] - n.begins[19]);
    CHECK(o.peak == n.peak);
    CHECK(o.starts.back() == o.total);
    time const held_up = o.total - starts_of(p).back() - o.stalled;
    CHECK(held_up >= time(0));
    if (p.launched.empty()) CHECK(held_up == time(0));
    by_launch += held_up > time(0);
  }
  CHECK(settled > 1000);
  CHECK(stuck > 300);
  CHECK(stalled > 300);
  CHECK(by_launch > 200);
}

}  // namespace
}  // namespace gmlake::swap::simulate_test
