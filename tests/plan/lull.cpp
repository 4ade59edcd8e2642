#include "gmlake/plan/lull.hpp"

#include <doctest/doctest.h>

using namespace gmlake;
using plan::lull;

namespace {

/// So many requests on end, at the same live bytes; what the last one was told.
bool requests(lull& of, std::uint32_t count, bytes live) {
  bool lasts = false;
  while (count-- > 0) lasts = of.lasts(live);
  return lasts;
}

}  // namespace

TEST_SUITE("lull") {
  TEST_CASE("it lasts once enough requests have come alone") {
    lull l;
    CHECK_FALSE(l.lasts(1000));  // something was there before
    CHECK_FALSE(requests(l, lull::long_enough - 1, 1000));
    CHECK(l.lasts(1000));
    CHECK(requests(l, 3 * lull::long_enough, 1000));
  }
  TEST_CASE("what stays ends it, however little") {
    lull l;
    CHECK(requests(l, lull::long_enough + 1, 1000));
    CHECK_FALSE(l.lasts(1001));
    CHECK_FALSE(requests(l, lull::long_enough - 1, 1001));
    CHECK(l.lasts(1001));
  }
  TEST_CASE("what goes doesn't, and what comes then counts from there") {
    lull l;
    CHECK(requests(l, lull::long_enough + 1, 1000));
    CHECK(l.lasts(500));
    CHECK_FALSE(l.lasts(501));
  }
  TEST_CASE("a program that always has two at a time never has one") {
    lull l;
    bool ever = false;
    for (std::uint32_t i = 0; i < 4 * lull::long_enough; ++i) ever = ever || l.lasts(i % 2 == 0 ? 0 : 512);
    CHECK_FALSE(ever);
  }
}
