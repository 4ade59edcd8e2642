/// The model of STWeaver: what a profile is made into, what the plan serves, and what goes where it is idle.

#include "gmlake/pool/presets/stweaver.hpp"

#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/pool/presets/stweaver_plan.hpp"
#include "tests/pool/presets/peer_suite.hpp"

namespace gmlake {
namespace {

using namespace peer_suite;

template <class B>
using weaver = stweaver<B>;

constexpr bytes weights_size = 20_MiB;
constexpr bytes early = 8_MiB;
constexpr bytes late = 6_MiB;
constexpr bytes wide = 4_MiB;  ///< lives through all of an iteration

/// Weights, then iterations:  wide [ early ] [ late ]
plan::lifetimes profiled(int iterations) {
  plan::lifetimes run;
  (void)run.allocated(weights_size, 0);
  for (int i = 0; i < iterations; ++i) {
    run.mark("step");
    auto const w = run.allocated(wide, 0);
    run.freed(run.allocated(early, 0));
    run.freed(run.allocated(late, 0));
    run.freed(w);
  }
  return run;
}

std::vector<plan::plan> const& plans() {
  static auto const made = make_stweaver_plans(profiled(3));
  return made;
}

template <Pool P>
void iterate(P& pool) {
  address const w = take(pool, wide);
  give(pool, take(pool, early));
  give(pool, take(pool, late));
  give(pool, w);
}

TEST_SUITE("stweaver") {
  TEST_CASE("the plan has what comes before the iteration, and the iteration, in one space") {
    auto const& p = plans();
    REQUIRE(p.size() == 2);
    CHECK_FALSE(p[0].repeats);
    CHECK(p[0].requests.size() == 4);
    CHECK(p[1].repeats);
    CHECK(p[1].requests.size() == 3);
    CHECK(p[1].period == 6);
    CHECK(p[0].height == weights_size + wide + early);
    CHECK(p[1].height == p[0].height);
  }

  TEST_CASE("a run without the whole iteration has no plan") {
    CHECK(make_stweaver_plans(profiled(0)).empty());
    CHECK(make_stweaver_plans(profiled(2)).empty());
    CHECK_FALSE(make_stweaver_plans(profiled(2), {.iteration = 0}).empty());
  }

  TEST_CASE("what an iteration leaves behind for good has no place") {
    plan::lifetimes run;
    for (int i = 0; i < 4; ++i) {
      run.mark("step");
      (void)run.allocated(1_MiB, 0);
      run.freed(run.allocated(early, 0));
    }
    auto const made = make_stweaver_plans(run);
    REQUIRE(made.size() == 2);
    CHECK(made[0].requests[0].offset != plan::step_request::nowhere);
    CHECK(made[1].requests[0].offset == plan::step_request::nowhere);
    CHECK(made[1].requests[1].offset != plan::step_request::nowhere);
  }

  TEST_CASE("the memory is there before the first request") {
    stweaver pool{device{}, {.plans = plans()}};
    CHECK(pool.plans_seen().made == 1);
    CHECK(pool.stats().reserved.now == weights_size + wide + early);
  }

  TEST_CASE("the run that was profiled is served as planned, marked or not") {
    for (bool const marked : {true, false}) {
      CAPTURE(marked);
      stweaver pool{device{}, {.plans = plans()}};
      auto const calls = pool.stats().driver.total().calls;
      address const weights = take(pool, weights_size);
      for (int i = 0; i < 5; ++i) {
        if (marked) pool.mark_step();
        iterate(pool);
      }
      CHECK(pool.plans_seen().placed == 16);
      CHECK(pool.stats().driver.total().calls == calls);
      give(pool, weights);
      CHECK(pool.stats().live.now == 0);
    }
  }

  TEST_CASE("a request too many of a size is dynamic, and doesn't shift those that follow") {
    stweaver pool{device{}, {.plans = plans()}};
    address const weights = take(pool, weights_size);
    pool.mark_step();
    iterate(pool);
    pool.mark_step();
    address const w = take(pool, wide);
    give(pool, take(pool, wide));
    CHECK(pool.plans_seen().placed == 5);
    address const e = take(pool, early);
    CHECK(pool.plans_seen().placed == 6);
    for (address const a : {w, e, weights}) give(pool, a);
  }

  TEST_CASE("a dynamic request takes planned memory that is idle for its time") {
    stweaver pool{device{}, {.plans = plans()}};
    address const weights = take(pool, weights_size);
    pool.mark_step();
    iterate(pool);
    pool.mark_step();
    address const w = take(pool, wide);
    address const other = take(pool, 7_MiB);  // in the place of `early`, whose time is over before `late` begins
    CHECK(pool.plans_seen().squeezed == 1);
    CHECK(pool.stats().reserved.now == weights_size + wide + early);
    give(pool, other);
    give(pool, take(pool, late));
    CHECK(pool.plans_seen().displaced == 0);
    give(pool, w);
    give(pool, weights);
  }

  TEST_CASE("a dynamic request that planned memory has no idle room for falls back") {
    stweaver pool{device{}, {.plans = plans()}};
    address const weights = take(pool, weights_size);
    pool.mark_step();
    address const large = take(pool, 50_MiB);
    CHECK(pool.plans_seen().astray == 1);
    CHECK(pool.stats().reserved.now == weights_size + wide + early + 50_MiB);
    give(pool, large);
    give(pool, weights);
  }

  TEST_CASE("a place that is in use is not handed out again") {
    stweaver pool{device{}, {.plans = plans()}};
    address const weights = take(pool, weights_size);
    pool.mark_step();
    iterate(pool);
    pool.mark_step();
    address const kept = take(pool, wide);
    pool.mark_step();
    address const next = take(pool, wide);
    CHECK(next != kept);
    CHECK(pool.plans_seen().displaced == 1);
    for (address const a : {kept, next, weights}) give(pool, a);
  }

  TEST_CASE("without room for the plan under the limit, everything falls back") {
    stweaver pool{device{}, {.limit = 30_MiB, .plans = plans()}};
    CHECK(pool.plans_seen().made == 0);
    give(pool, take(pool, weights_size));
    CHECK(pool.stats().reserved.peak == weights_size);
  }

  TEST_CASE("the fallback has what the limit leaves beside the plan") {
    stweaver pool{device{}, {.limit = 40_MiB, .plans = plans()}};
    REQUIRE(pool.plans_seen().made == 1);
    CHECK(refused(pool, 50_MiB) == errc::out_of_memory);
    give(pool, take(pool, 512));
    CHECK(pool.stats().reserved.peak <= 40_MiB);
  }

  TEST_CASE("a failing call leaks nothing, the plan's own neither") {
    for (std::uint64_t first = 0;; ++first) {
      CAPTURE(first);
      faulty_device lender(device{});
      lender.arm({.first = first, .count = 1});
      {
        stweaver pool{borrowed<faulty_device>{&lender}, {.plans = plans()}};
        for (int i = 0; i < 20; ++i) {
          auto const a = pool.allocate(9_MiB, {});
          if (a) give(pool, *a);
          REQUIRE(pool.stats().reserved.now == lender.wrapped().created_bytes());
        }
        lender.disarm();
        give(pool, take(pool, 3_MiB));
      }
      REQUIRE(lender.wrapped().idle());
      if (lender.faults() == 0) break;
    }
  }

  TEST_CASE("live blocks never overlap, and the gauges agree with a naive account") {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      stweaver pool{device{}, {.limit = 1_GiB, .plans = plans()}};
      walk(pool, seed, 2000);
    }
  }

  TEST_CASE("an empty request gets a block of its own") { an_empty_request_gets_a_block_of_its_own<weaver>(); }
  TEST_CASE("a size that can't be rounded is an invalid argument") {
    a_size_that_cannot_be_rounded_is_an_invalid_argument<weaver>();
  }
  TEST_CASE("what is not a block is an unknown pointer") { what_is_not_a_block_is_an_unknown_pointer<weaver>(); }
  TEST_CASE("a second free is reported, even after coalescing") {
    a_second_free_is_reported_even_after_coalescing<weaver>();
  }
  TEST_CASE("destruction returns everything, live blocks too") { destruction_returns_everything<weaver>(); }
  TEST_CASE("a failing backend call leaks nothing, whichever it is") { a_failing_call_leaks_nothing<weaver>(); }
}

}  // namespace
}  // namespace gmlake
