#include "gmlake/plan/bound.hpp"

#include <doctest/doctest.h>

#include "tests/plan/naive.hpp"

namespace {
using namespace gmlake;
using test::alive;

TEST_CASE("nothing needs no height") { CHECK(plan::lower_bound({}) == 0); }

TEST_CASE("the bound is the peak of live bytes, and ends come before beginnings") {
  plan::problem p;
  p.buffers = {alive(0, 4, 3), alive(2, 6, 5), alive(4, 9, 4)};
  CHECK(plan::lower_bound(p) == 9);
}

TEST_CASE("what wraps counts in both its pieces") {
  plan::problem p;
  p.period = 10;
  p.buffers = {alive(8, 12, 3), alive(1, 3, 5), alive(2, 8, 7)};
  CHECK(plan::lower_bound(p) == 12);
  p.buffers[1].upper = 2;
  CHECK(plan::lower_bound(p) == 8);
}

TEST_CASE("streams that never share add up") {
  plan::problem p;
  p.buffers = {alive(0, 1, 3, 1), alive(1, 2, 5, 2), alive(2, 3, 4, 1)};
  CHECK(plan::lower_bound(p) == 5);
  p.stream_gap = plan::problem::never;
  CHECK(plan::lower_bound(p) == 9);
}

TEST_CASE("a fixed buffer's end is a bound as well") {
  plan::problem p;
  p.buffers = {alive(0, 1, 3)};
  p.buffers[0].fixed = 32;
  CHECK(plan::lower_bound(p) == 35);
}

}  // namespace
