/// The model of SmartPool: when it plans, what its plan serves, and what it leaves to the fallback.

#include "gmlake/pool/presets/smartpool.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "tests/pool/presets/peer_suite.hpp"

namespace gmlake {
namespace {

using namespace peer_suite;

template <class B>
using smart = smartpool<B>;

constexpr int pairs = 30;  // in an iteration: 120 requests and frees

/// An iteration of pairs of blocks, each with a size of its own: all are freed within it.
template <Pool P>
void iterate(P& pool, bytes extra = 0) {
  for (int i = 0; i < pairs; ++i) {
    address const a = take(pool, 3_MiB + static_cast<bytes>(i) * 512 + extra);
    address const b = take(pool, 1_MiB);
    give(pool, a);
    give(pool, b);
  }
}

/// A pool that has its plan, and is at the beginning of an iteration.
template <Pool P>
void learn(P& pool, bool marked = true) {
  for (int i = 0; i < 3; ++i) {
    if (marked) pool.mark_step();
    iterate(pool);
  }
  REQUIRE(pool.plans_seen().made == 1);
  if (marked) pool.mark_step();
}

TEST_SUITE("smartpool") {
  TEST_CASE("an iteration that came twice is served from its plan, without a driver call") {
    smartpool pool{device{}};
    for (int i = 0; i < 2; ++i) {
      pool.mark_step();
      iterate(pool);
    }
    CHECK(pool.plans_seen().made == 0);
    pool.mark_step();
    iterate(pool);
    CHECK(pool.plans_seen().made == 1);
    CHECK(pool.plans_seen().placed == 2 * pairs);
    CHECK(pool.planning_time().count() > 0);
    auto const calls = pool.stats().driver.total().calls;
    pool.mark_step();
    iterate(pool);
    CHECK(pool.plans_seen().placed == 4 * pairs);
    CHECK(pool.stats().driver.total().calls == calls);
    CHECK(pool.stats().live.now == 0);
  }

  TEST_CASE("iterations are found without marks") {
    smartpool pool{device{}};
    address const weights = take(pool, 10_MiB);
    for (int i = 0; i < 8; ++i) iterate(pool);
    CHECK(pool.plans_seen().made == 1);
    CHECK(pool.plans_seen().placed > 2 * pairs);
    CHECK(pool.plans_seen().astray == 0);
    give(pool, weights);
  }

  TEST_CASE("what never comes twice gets no plan") {
    smartpool pool{device{}};
    for (bytes i = 0; i < 8; ++i) {
      pool.mark_step();
      iterate(pool, i * 1_MiB);
    }
    CHECK(pool.plans_seen().made == 0);
    CHECK(pool.plans_seen().placed == 0);
  }

  TEST_CASE("cached memory is released when the plan gets its own") {
    smartpool pool{device{}};
    give(pool, take(pool, 500_MiB));
    CHECK(pool.stats().reserved.now == 500_MiB);
    learn(pool);
    CHECK(pool.stats().reserved.now < 10_MiB);
    CHECK(pool.stats().reserved.peak >= 500_MiB);
    CHECK(pool.stats().mapped.now == pool.stats().reserved.now);
  }

  TEST_CASE("memory that is in use stays beside the plan's") {
    smartpool pool{device{}};
    address const weights = take(pool, 100_MiB);
    learn(pool);
    CHECK(pool.stats().reserved.now >= 104_MiB);
    CHECK(pool.stats().requested.now == 100_MiB);
    give(pool, weights);
    CHECK(pool.stats().requested.now == 0);
  }

  TEST_CASE("a buffer that is freed in the next iteration has two places") {
    smartpool pool{device{}};
    address held{};
    for (int i = 0; i < 6; ++i) {
      pool.mark_step();
      address const next = take(pool, 8_MiB);  // while that of the iteration before lives
      if (held != address{}) give(pool, held);
      held = next;
      iterate(pool);
    }
    CHECK(pool.plans_seen().made == 1);
    CHECK(pool.plans_seen().displaced == 0);
    CHECK(pool.plans_seen().astray == 0);
    CHECK(pool.stats().reserved.now >= 2 * 8_MiB);
    give(pool, held);
  }

  TEST_CASE("a request of another size falls back, and those after it go on as planned") {
    smartpool pool{device{}};
    learn(pool);
    auto const before = pool.plans_seen();
    address const other = take(pool, 2_MiB);
    address const as_planned = take(pool, 1_MiB);
    CHECK(pool.plans_seen().astray == before.astray + 1);
    CHECK(pool.plans_seen().placed == before.placed + 1);
    give(pool, other);
    give(pool, as_planned);
  }

  TEST_CASE("a place that is in use is not handed out again") {
    smartpool pool{device{}};
    learn(pool);
    address const kept = take(pool, 3_MiB);
    pool.mark_step();
    address const next = take(pool, 3_MiB);
    CHECK(next != kept);
    CHECK(pool.plans_seen().displaced == 1);
    give(pool, kept);
    give(pool, next);
  }

  TEST_CASE("without room for the plan under the limit, all goes on without") {
    smartpool pool{device{}, {.limit = 42_MiB}};
    address const weights = take(pool, 20_MiB);
    for (int i = 0; i < 4; ++i) {
      pool.mark_step();
      iterate(pool, 10_MiB);
    }
    CHECK(pool.plans_seen().made == 1);
    give(pool, weights);

    smartpool tight{device{}, {.limit = 24_MiB}};
    address held{};
    for (int i = 0; i < 4; ++i) {  // two places of 10 MiB, while the fallback still holds 10 MiB for the buffer before
      tight.mark_step();
      address const next = take(tight, 10_MiB);
      if (held != address{}) give(tight, held);
      held = next;
      for (int k = 0; k < 60; ++k) give(tight, take(tight, 512));
    }
    CHECK(tight.plans_seen().made == 0);
    CHECK(tight.stats().reserved.peak <= 24_MiB);
    give(tight, held);
  }

  TEST_CASE("a second free of a planned block is reported, and what lies inside one is unknown") {
    smartpool pool{device{}};
    learn(pool);
    address const a = take(pool, 3_MiB);
    CHECK(refused_back(pool, a + 512) == errc::unknown_pointer);
    give(pool, a);
    CHECK(refused_back(pool, a) == errc::double_free);
  }

  TEST_CASE("a failing call leaks nothing, the plan's own neither") {
    for (std::uint64_t first = 0;; ++first) {
      CAPTURE(first);
      faulty_device lender(device{});
      lender.arm({.first = first, .count = 1});
      {
        smartpool pool{borrowed<faulty_device>{&lender}};
        for (int i = 0; i < 4; ++i) {
          pool.mark_step();
          for (int k = 0; k < 60; ++k) {
            auto const a = pool.allocate(3_MiB, {});
            if (a) give(pool, *a);
            REQUIRE(pool.stats().reserved.now == lender.wrapped().created_bytes());
          }
        }
        lender.disarm();
        give(pool, take(pool, 3_MiB));
      }
      REQUIRE(lender.wrapped().idle());
      if (lender.faults() == 0) break;
    }
  }

  TEST_CASE("an empty request gets a block of its own") { an_empty_request_gets_a_block_of_its_own<smart>(); }
  TEST_CASE("a size that can't be rounded is an invalid argument") {
    a_size_that_cannot_be_rounded_is_an_invalid_argument<smart>();
  }
  TEST_CASE("what is not a block is an unknown pointer") { what_is_not_a_block_is_an_unknown_pointer<smart>(); }
  TEST_CASE("a second free is reported, even after coalescing") {
    a_second_free_is_reported_even_after_coalescing<smart>();
  }
  TEST_CASE("live blocks never overlap, and the gauges agree with a naive account") {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      smartpool pool{device{}, {.limit = 1_GiB}};
      learn(pool);
      walk(pool, seed, 2000);
    }
  }
  TEST_CASE("destruction returns everything, live blocks too") { destruction_returns_everything<smart>(); }
  TEST_CASE("a failing backend call leaks nothing, whichever it is") { a_failing_call_leaks_nothing<smart>(); }
}

}  // namespace
}  // namespace gmlake
