#include "gmlake/plan/exact.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/plan/naive.hpp"

namespace {
using namespace gmlake;
using namespace std::chrono_literals;
using plan::exact_outcome;
using plan::exact_search;
using test::alive;

TEST_CASE("nothing fits into nothing") {
  plan::problem const p;
  auto const r = exact_search(p).minimise();
  CHECK(r.outcome == exact_outcome::found);
  CHECK(r.proven);
  CHECK(r.best.height == 0);
  CHECK(exact_search(p).fit(0).outcome == exact_outcome::found);
}

TEST_CASE("a problem that is none is refused") {
  plan::problem p;
  p.buffers.resize(1);
  CHECK(exact_search(p).fit(100).outcome == exact_outcome::invalid);
  CHECK(exact_search(p).minimise().outcome == exact_outcome::invalid);
  p.buffers.assign(plan::exact_model::most_buffers + 1, alive(0, 1, 1));
  CHECK(exact_search(p).minimise().outcome == exact_outcome::too_large);
  p.buffers.assign(2, alive(0, 1, bytes{1} << 40));
  p.buffers[1].size += 1;
  CHECK(exact_search(p).minimise().outcome == exact_outcome::too_large);
  p.buffers[1].size += (1 << 20) - 1;
  CHECK(exact_search(p).minimise().proven);
}

TEST_CASE("what is fixed stays, and what collides has no solution") {
  plan::problem p;
  p.buffers.assign(3, alive(0, 1, 4));
  p.buffers[0].fixed = 6;
  auto r = exact_search(p).minimise();
  CHECK(r.best.height == 14);
  CHECK(r.best.offsets[0] == 6);
  CHECK(r.proven);
  p.buffers[1].fixed = 8;
  r = exact_search(p).minimise();
  CHECK(r.outcome == exact_outcome::infeasible);
}

TEST_CASE("what ends beyond the lengths known here is too large, and not without a solution") {
  plan::problem p;
  p.buffers.assign(2, alive(0, 1, (bytes{1} << 29) + 1));
  p.buffers[1].size -= 4;
  for (plan::buffer& b : p.buffers) b.alignment = 1 << 20;
  CHECK(exact_search(p).minimise().outcome == exact_outcome::too_large);
  CHECK(exact_search(p).fit(bytes{1} << 40).outcome == exact_outcome::too_large);
  CHECK(exact_search(p).fit((1 << 30) - 1).outcome == exact_outcome::infeasible);
  p.buffers[0].fixed = p.buffers[1].fixed = 0;
  p.buffers[0].size = p.buffers[1].size = 1000;
  CHECK(exact_search(p).minimise().outcome == exact_outcome::infeasible);
}

TEST_CASE("an alignment above the capacity leaves the beginning") {
  plan::problem p;
  p.buffers.assign(2, alive(0, 1, 3));
  p.buffers[1].alignment = bytes{1} << 50;
  auto const r = exact_search(p).minimise();
  CHECK(r.best.height == 6);
  CHECK(r.best.offsets[1] == 0);
  p.buffers[0].alignment = bytes{1} << 50;
  CHECK(exact_search(p).fit(1000).outcome == exact_outcome::infeasible);
}

TEST_CASE("the least height is that of trying everything") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  int harder = 0;
  for (auto const& kind : test::all_kinds()) {
    for (int i = 0; i < 60; ++i) {
      CAPTURE(i);
      plan::problem const p = test::random_problem(random, kind);
      auto const expected = test::naive_optimum(p, 48);
      auto const r = exact_search(p).minimise();
      if (!expected) {
        CHECK(r.outcome == exact_outcome::infeasible);
        continue;
      }
      REQUIRE(r.outcome == exact_outcome::found);
      REQUIRE(r.proven);
      REQUIRE(r.best.height == *expected);
      REQUIRE(test::naively_valid(p, r.best));
      REQUIRE_FALSE(plan::validate(p, r.best));
      bytes const bound = plan::lower_bound(p);
      REQUIRE(bound <= *expected);
      harder += bound < *expected;
      auto const under = exact_search(p).fit(*expected - 1);
      REQUIRE(under.outcome == exact_outcome::infeasible);
      REQUIRE(under.proven);
      auto const fitted = exact_search(p).fit(*expected + random() % 3);
      REQUIRE(fitted.outcome == exact_outcome::found);
      REQUIRE_FALSE(plan::validate(p, fitted.best));
    }
  }
  CHECK(harder > 10);
}

/// Cuts a rectangle of space and time by straight cuts, over and over: the pieces fit its height, and nothing less.
plan::problem cut_rectangle(std::mt19937_64& random, std::size_t pieces, plan::instant length, bytes height) {
  struct piece {
    plan::instant lower, upper;
    bytes begin, end;
  };
  std::vector<piece> all{{0, length, 0, height}};
  while (all.size() < pieces) {
    piece& p = all[random() % all.size()];
    piece rest = p;
    if (random() % 2 == 0) {
      if (p.upper - p.lower < 2) continue;
      p.upper = rest.lower = p.lower + 1 + random() % (p.upper - p.lower - 1);
    } else {
      if (p.end - p.begin < 2) continue;
      p.end = rest.begin = p.begin + 1 + random() % (p.end - p.begin - 1);
    }
    all.push_back(rest);
  }
  std::ranges::shuffle(all, random);
  plan::problem cut;
  for (piece const& p : all) {
    cut.buffers.push_back(alive(p.lower, p.upper, p.end - p.begin));
  }
  return cut;
}

TEST_CASE("the pieces of a rectangle are put together again") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (std::size_t const pieces : {5u, 12u, 20u, 30u}) {
    for (int i = 0; i < 20; ++i) {
      CAPTURE(pieces);
      plan::problem const p = cut_rectangle(random, pieces, 1000, 1 << 20);
      auto const r = exact_search(p).minimise();
      REQUIRE(r.outcome == exact_outcome::found);
      CHECK(r.proven);
      CHECK(r.best.height == 1 << 20);
      CHECK_FALSE(plan::validate(p, r.best));
    }
  }
}

TEST_CASE("the same problem has the same solution") {
  std::mt19937_64 random(1);
  plan::problem const p = cut_rectangle(random, 40, 1000, 1 << 12);
  plan::exact_options const few{.time_limit = 1h, .node_limit = 50'000};
  auto const a = exact_search(p, few).minimise();
  auto const b = exact_search(p, few).minimise();
  CHECK(a.outcome == b.outcome);
  CHECK(a.nodes == b.nodes);
  CHECK(a.best.offsets == b.best.offsets);
}

TEST_CASE("limits are kept") {
  std::mt19937_64 random(2);
  plan::problem const p = cut_rectangle(random, 300, 5000, 1 << 20);
  auto const few = exact_search(p, {.node_limit = 1000}).fit(1 << 20);
  CHECK(few.outcome == exact_outcome::gave_up);
  CHECK(few.nodes == 1000);
  auto const started = std::chrono::steady_clock::now();
  auto const brief = exact_search(p, {.time_limit = 50ms}).minimise();
  CHECK(std::chrono::steady_clock::now() - started < 5s);
  if (brief.outcome == exact_outcome::found) CHECK_FALSE(plan::validate(p, brief.best));
  CHECK(exact_search(p, {.time_limit = 0s}).fit(1 << 20).outcome == exact_outcome::gave_up);
}

}  // namespace
