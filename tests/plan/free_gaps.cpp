#include "gmlake/plan/free_gaps.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;

TEST_CASE("the smallest gap is taken, at the end that is asked for, and the top only grows where none suffices") {
  plan::free_gaps free;
  REQUIRE(free.take(100, 1, false) == 0);
  REQUIRE(free.take(20, 1, false) == 100);
  REQUIRE(free.take(10, 1, false) == 120);
  free.give_back(0, 100);
  free.give_back(120, 10);
  CHECK(free.take(5, 1, true) == 125);
  CHECK(free.take(6, 1, true) == 94);
  CHECK(free.take(94, 1, false) == 0);
  CHECK(free.top() == 130);
  CHECK(free.take(8, 1, false) == 130);
  CHECK(free.top() == 138);
}

TEST_CASE("the top grows from the gap that touches it") {
  plan::free_gaps free(1000);
  REQUIRE(free.take(50, 1, false) == 1000);
  free.give_back(1000, 50);
  CHECK(free.take(80, 1, false) == 1000);
  CHECK(free.top() == 1080);
}

TEST_CASE("random takes, walls and gifts never hand out a byte twice, and all that is free is found again") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  struct part {
    bytes begin, size;
  };
  for (int round = 0; round < 20; ++round) {
    plan::free_gaps free;
    std::vector<bool> taken;
    std::vector<part> held;
    auto const claim = [&](bytes at, bytes size, bool fresh) {
      if (taken.size() < at + size) taken.resize(at + size);
      for (bytes i = at; i < at + size; ++i) {
        if (fresh) REQUIRE_FALSE(taken[i]);
        taken[i] = true;
      }
    };
    for (int k = 0; k < 3; ++k) {
      bytes const at = random() % 300;
      bytes const size = 1 + random() % 40;
      free.wall(at, size);
      claim(at, size, false);
    }
    for (int step = 0; step < 2000; ++step) {
      if (random() % 2 == 0 || held.empty()) {
        bytes const size = 1 + random() % 60;
        bytes const alignment = bytes{1} << random() % 6;
        bytes const at = free.take(size, alignment, random() % 2 == 0);
        REQUIRE(at % alignment == 0);
        claim(at, size, true);
        held.push_back({at, size});
      } else {
        std::swap(held[random() % held.size()], held.back());
        part const p = held.back();
        held.pop_back();
        free.give_back(p.begin, p.size);
        for (bytes i = p.begin; i < p.begin + p.size; ++i) taken[i] = false;
      }
    }
    // Every byte beneath the top that is not taken can be had.
    bytes const top = free.top();
    taken.resize(top);
    auto left = std::ranges::count(taken, false);
    for (; left > 0; --left) REQUIRE(free.take(1, 1, false) < top);
    CHECK(free.take(1, 1, false) == top);
  }
}
