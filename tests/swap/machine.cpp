#include "gmlake/swap/machine.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/simulate.hpp"

namespace gmlake::swap::machine_test {
namespace {

TEST_CASE("operations take longer or shorter on another machine, and nothing else changes") {
  program p;
  p.operations = {time(0), time(1), time(3), time(1'000'000'007)};
  p.variables.push_back({.size = 512, .birth = 1, .death = 3, .accesses = {{1}, {2}}});
  CHECK(on({.operation_time = 10}, p).operations ==
        std::vector<time>{time(0), time(10), time(30), time(10'000'000'070)});
  CHECK(on({.operation_time = 0.5}, p).operations == std::vector<time>{time(0), time(1), time(2), time(500'000'004)});
  CHECK(on({}, p).operations == p.operations);
  CHECK(on({.operation_time = 10}, p).variables.size() == 1);
  CHECK(find_fault(on({.operation_time = 0}, p)) == nullptr);
}

TEST_CASE("a slower link takes what a faster one hides") {
  program p;
  p.operations = {time(100), time(100), time(1'000'000), time(100)};
  p.variables.push_back({.size = 20'000'000, .birth = 0, .death = 4, .accesses = {{0}, {3}}});
  schedule const s{{{{0, 0, 3}, 2}}, {0}};
  machine const h200, pcie3{.channel = {{.bytes_per_second = 12'000'000'000}, {.bytes_per_second = 12'000'000'000}}};
  time const fast = simulate(on(h200, p), s, h200.channel).total;
  time const slow = simulate(on(pcie3, p), s, pcie3.channel).total;
  CHECK(fast == time(1'000'300));
  CHECK(slow > fast);
}

}  // namespace
}  // namespace gmlake::swap::machine_test
