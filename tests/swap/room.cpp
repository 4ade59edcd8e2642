#include "gmlake/swap/room.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::room_test {
namespace {

TEST_CASE("room is given, taken and found as in a plain list") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto const n = 1 + static_cast<std::uint32_t>(random() % 20);
    std::vector<bytes> loads(n);
    for (bytes& l : loads) l = random() % 50;
    room r(loads, 40);
    std::vector<std::int64_t> free(n);
    for (std::uint32_t i = 0; i < n; ++i) free[i] = 40 - static_cast<std::int64_t>(loads[i]);
    for (int k = 0; k < 60; ++k) {
      auto const first = static_cast<std::uint32_t>(random() % (2 * n));
      auto const last = first + 1 + static_cast<std::uint32_t>(random() % std::min(n, 2 * n - first));
      bytes const size = random() % 20;
      auto const least_from = [&](std::uint32_t from) {
        std::int64_t least = free[from % n];
        for (std::uint32_t i = from; i < last; ++i) least = std::min(least, free[i % n]);
        return least;
      };
      CHECK(r.least(first, last) == least_from(first));
      std::uint32_t expected = last;
      while (expected > first && least_from(expected - 1) >= static_cast<std::int64_t>(size)) --expected;
      CHECK(r.first_with(first, last, size) == expected);
      bool const gives = random() % 2 == 0;
      if (gives) r.give(first, last, size);
      else r.take(first, last, size);
      for (std::uint32_t i = first; i < last; ++i) {
        free[i % n] += gives ? static_cast<std::int64_t>(size) : -static_cast<std::int64_t>(size);
      }
    }
  }
}

}  // namespace
}  // namespace gmlake::swap::room_test
