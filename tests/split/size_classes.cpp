#include "gmlake/split/size_classes.hpp"

#include <random>
#include <set>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

TEST_CASE("classes divide the sizes without a gap, and narrowly") {
  CHECK(size_classes::of(0) == 0);
  for (unsigned c = 1; c < size_classes::count; ++c) {
    CAPTURE(c);
    bytes const least = size_classes::least(c);
    CHECK(size_classes::of(least) == c);
    CHECK(size_classes::of(least - 1) == c - 1);
    CHECK(size_classes::all_fit(least) == c);
    CHECK(size_classes::all_fit(least - 1) == c);
    if (c >= size_classes::divisions) CHECK(least - size_classes::least(c - 1) <= least / size_classes::divisions);
  }
}

TEST_CASE("the bitmap agrees with a set") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  size_classes used;
  std::set<unsigned> model;
  for (int step = 0; step < 20'000; ++step) {
    auto const c = static_cast<unsigned>(random() % size_classes::count);
    if (random() % 64 < (step / 1000 % 2 == 0 ? 20u : 44u)) {
      used.set(c);
      model.insert(c);
    } else {
      used.clear(c);
      model.erase(c);
    }
    if (step % 5000 == 4999) {
      for (unsigned each : std::set<unsigned>(model)) used.clear(each);
      model.clear();
    }
    auto const from = static_cast<unsigned>(random() % (size_classes::count + 1));
    auto const above = model.lower_bound(from);
    REQUIRE(used.at_or_above(from) == (above == model.end() ? size_classes::none : *above));
    REQUIRE(used.below(from) == (above == model.begin() ? size_classes::none : *std::prev(above)));
  }
}

}  // namespace
