#include "gmlake/swap/own_mappings.hpp"

#include <doctest/doctest.h>

namespace gmlake::swap::own_mappings_test {
namespace {

/// Over ten operations: a weight, what leaves from 2 to 7, what lives across that, and what comes and goes before it.
program four() {
  program p;
  p.operations.assign(10, time(1000));
  p.variables = {{.size = 32_MiB, .birth = 0, .death = 10, .carried = true, .accesses = {{0}}},
                 {.size = 32_MiB, .birth = 1, .death = 9, .accesses = {{1}, {8}}},
                 {.size = 32_MiB, .birth = 0, .death = 4, .accesses = {{0}, {3}}},
                 {.size = 32_MiB, .birth = 3, .death = 6, .accesses = {{3}, {5}}}};
  return p;
}

TEST_CASE("whatever is large enough has a mapping of its own, where mappings suffice; what is carried has one anyway") {
  program p = four();
  p.variables[3].size = 8_MiB;
  std::vector<bool> const moves{false, true, false, false};
  CHECK(own_mappings(p, moves, {2, 7}, 16_MiB) == std::vector<bool>{false, true, true, false});
  CHECK(own_mappings(p, moves, {2, 7}, 1_MiB) == std::vector<bool>{false, true, true, true});
  CHECK(own_mappings(p, moves, {2, 7}, 64_MiB) == std::vector<bool>{false, true, false, false});
}

TEST_CASE("where they don't, those do without that come and go between two moves") {
  program const p = four();
  std::vector<bool> const moves{false, true, false, false}, few{false, true, true, false};
  CHECK(own_mappings(p, moves, {7, 2}, 16_MiB, {.blocks = 2}) == few);
  CHECK(own_mappings(p, moves, {7, 2}, 16_MiB, {.addresses = 80_MiB}) == few);
  CHECK(own_mappings(p, moves, {7, 2}, 16_MiB, {.blocks = 3}) == std::vector<bool>{false, true, true, true});
}

}  // namespace
}  // namespace gmlake::swap::own_mappings_test
