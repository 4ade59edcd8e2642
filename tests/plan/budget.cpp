#include "gmlake/plan/budget.hpp"

#include <chrono>

#include <doctest/doctest.h>

using gmlake::plan::budget;

TEST_CASE("a budget lasts until its work is taken") {
  budget b(10);
  CHECK(b.take(9));
  CHECK(b.left() == 1);
  CHECK_FALSE(b.spent());
  CHECK_FALSE(b.take(1));
  CHECK(b.spent());
  CHECK_FALSE(b.take(100));
  CHECK(b.left() == 0);
}

TEST_CASE("a part is no more than what is left") {
  budget b(10);
  CHECK(b.part(3).left() == 3);
  CHECK(b.part(30).left() == 10);
  CHECK(b.left() == 10);
}

TEST_CASE("past the deadline a budget is spent, at the latest after a look's work") {
  budget b(budget::unlimited, budget::clock::now());
  CHECK_FALSE(b.take(10'000'000));
  CHECK(b.spent());
}

TEST_CASE("the time left is never negative, and boundless without a deadline") {
  auto const now = budget::clock::now();
  CHECK(budget(1, now - std::chrono::hours(1)).time_left() == budget::clock::duration::zero());
  CHECK(budget(1, now + std::chrono::hours(1)).time_left() > std::chrono::minutes(59));
  CHECK(budget(1).time_left() == budget::clock::duration::max());
}
