#include "gmlake/plan/suffix_extremes.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;

namespace {

template <class Before>
void check_against_plain_search(std::mt19937_64& random) {
  plan::suffix_extremes<Before> extremes;
  std::vector<std::uint64_t> series;
  std::uint64_t forgotten = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    series.push_back(random() % 50);
    extremes.push(i, series.back());
    if (random() % 100 == 0) extremes.forget(forgotten += random() % (i - forgotten + 1));
    std::uint64_t const from = forgotten + random() % (i - forgotten + 1);
    auto const best = *std::min_element(series.begin() + static_cast<std::ptrdiff_t>(from), series.end(), Before{});
    REQUIRE(extremes.over(from) != nullptr);
    REQUIRE(extremes.over(from)->value == best);
    REQUIRE(extremes.over(i + 1) == nullptr);
  }
}

}  // namespace

TEST_CASE("the extreme from any point on is what a search would find") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  check_against_plain_search<std::less<>>(random);
  check_against_plain_search<std::greater<>>(random);
}

TEST_CASE("the last that comes before the end is the nearest lower one") {
  plan::suffix_extremes<std::less<>> lows;
  CHECK(lows.before_last() == nullptr);
  std::uint64_t point = 0;
  for (std::uint64_t value : {5u, 2u, 7u, 3u, 6u}) lows.push(point++, value);
  REQUIRE(lows.before_last() != nullptr);
  CHECK(lows.before_last()->point == 3);
  lows.push(point++, 3);  // an equal one is not lower
  CHECK(lows.before_last()->point == 1);
  lows.forget(point);  // but for the end
  CHECK(lows.before_last() == nullptr);
  CHECK(lows.over(0)->value == 3);
  lows.push(point, 1);
  CHECK(lows.before_last() == nullptr);
  lows.clear();
  CHECK(lows.over(0) == nullptr);
}
