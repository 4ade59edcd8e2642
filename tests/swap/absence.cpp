#include "gmlake/swap/absence.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/coverage.hpp"
#include "gmlake/swap/load.hpp"
#include "gmlake/swap/setting.hpp"
#include "tests/swap/naive.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::absence_test {
namespace {

program of_six(variable const& v) { return {std::vector<time>(6, time(1)), {v}}; }

TEST_CASE("a variable may be away between accesses that leave an operation free, and from the last one to its death") {
  program const p = of_six({.size = 1, .birth = 0, .death = 6, .accesses = {{1}, {2}, {4}}});
  CHECK(absences_of(p) == std::vector<absence>{{0, 2, 4}, {0, 4, 6}});
  CHECK(comes_back(p, {0, 2, 4}));
  CHECK_FALSE(comes_back(p, {0, 4, 6}));
  CHECK(absences_of(of_six({.size = 1, .birth = 0, .death = 5, .accesses = {{3}}})) == std::vector<absence>{{0, 3, 5}});
  CHECK(absences_of(of_six({.size = 1, .birth = 0, .death = 4, .accesses = {{3}}})).empty());
  CHECK(absences_of(of_six({.size = 1, .birth = 0, .death = 6})).empty());
}

TEST_CASE("what its owner keeps beyond the step is there at its end") {
  CHECK(absences_of(of_six({.size = 1, .death = 6, .handed_on = true, .accesses = {{1}, {3}}})) ==
        std::vector<absence>{{0, 1, 3}});
}

TEST_CASE("what is carried may be away over the step's end") {
  CHECK(absences_of(of_six({.size = 1, .death = 6, .carried = true, .accesses = {{1}, {4}}})) ==
        std::vector<absence>{{0, 1, 4}, {0, 4, 7}});
  CHECK(absences_of(of_six({.size = 1, .death = 6, .carried = true, .accesses = {{2}}})) ==
        std::vector<absence>{{0, 2, 8}});
  CHECK(absences_of(of_six({.size = 1, .death = 6, .carried = true, .accesses = {{0}, {5}}})) ==
        std::vector<absence>{{0, 0, 5}});
  program const p = of_six({.size = 1, .death = 6, .carried = true, .accesses = {{2}}});
  CHECK(comes_back(p, {0, 2, 8}));
  CHECK(absences_of(of_six({.size = 1, .death = 6, .carried = true})).empty());
}

TEST_CASE("the load is what lives at an operation") {
  program p = of_six({.size = 5, .birth = 1, .death = 3});
  p.variables.push_back({.size = 7, .birth = 2, .death = 6});
  CHECK(loads_of(p) == std::vector<bytes>{0, 5, 12, 7, 7, 7});
  CHECK(peak_of(loads_of(p)) == 12);
}

TEST_CASE("what covers an operation is in its place around it, and adds up to what can move") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    program const p = programs::tiny(seed);
    setting const at(p, {});
    std::vector<bytes> const movable = movable_of(at);
    for (std::uint32_t i = 0; i < at.size(); ++i) {
      bytes sum = 0;
      for (covering const& c : covering_at(at, i)) {
        CHECK(c.after < std::int64_t{i});
        CHECK(c.before > std::int64_t{i});
        absence const& a = at.absences()[c.absence];
        CHECK(c.before - c.after == std::int64_t{a.before} - std::int64_t{a.after});
        sum += c.size;
      }
      CHECK(sum == movable[i]);
      CHECK(at.loads()[i] - sum <= least_limit(at));
    }
  }
}

}  // namespace
}  // namespace gmlake::swap::absence_test
