#include "gmlake/swap/timetable.hpp"

#include <optional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::timetable_test {
namespace {

TEST_CASE("what is reserved is reserved in every step, also over its end") {
  timetable t(time(100));
  t.reserve(time(90), time(20));
  CHECK(t.earliest(time(0), time(10), time(100)) == time(10));
  CHECK(t.earliest(time(85), time(10), time(200)) == time(110));
  CHECK(t.earliest(time(85), time(10), time(119)) == std::nullopt);
  CHECK(t.earliest(time(-15), time(5), time(0)) == time(-15));
  CHECK(t.earliest(time(0), time(81), time(1000)) == std::nullopt);
  CHECK(t.earliest(time(95), time(0), time(95)) == time(95));
}

TEST_CASE("the earliest free stretch is found, as by looking at every instant") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    int const period = 1 + static_cast<int>(random() % 60);
    timetable t{time(period)};
    std::vector<bool> busy(static_cast<std::size_t>(period));
    auto const index = [&](int at) { return static_cast<std::size_t>((at % period + period) % period); };
    for (int k = 0; k < 40; ++k) {
      int const from = static_cast<int>(random() % 200) - 100, length = 1 + static_cast<int>(random() % 9);
      int const by = from + static_cast<int>(random() % 80);
      std::optional<time> expected;
      for (int at = from; at + length <= by && at - from <= period && length <= period && !expected; ++at) {
        bool free = true;
        for (int i = at; i < at + length; ++i) free = free && !busy[index(i)];
        if (free) expected = time(at);
      }
      auto const found = t.earliest(time(from), time(length), time(by));
      REQUIRE(found == expected);
      if (!found || random() % 2 == 0) continue;
      t.reserve(*found, time(length));
      for (int i = 0; i < length; ++i) busy[index(static_cast<int>(found->count()) + i)] = true;
    }
  }
}

}  // namespace
}  // namespace gmlake::swap::timetable_test
