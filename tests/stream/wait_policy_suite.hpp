#pragma once
/// What every WaitPolicy must do, and what a pool does by it. To hold one to it:
/// TEST_CASE_TEMPLATE_INVOKE(wait_policy, gmlake::wait_before_growing);

#include <memory>

#include <doctest/doctest.h>

#include "gmlake/backend/simulated.hpp"
#include "gmlake/grow/fixed_chunks.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "gmlake/stream/wait_policy.hpp"
#include "tests/backend/must.hpp"

namespace gmlake::test {

TEST_CASE_TEMPLATE_DEFINE("a wait policy keeps its contract", W, wait_policy) {
  using config =
      typename pool_config<simulated, simulated_streams>::template with_wait<W>::template with_growth<fixed_chunks>;
  auto const device = std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless});
  constexpr stream user{1};
  constexpr stream other{2};
  W const policy{};

  SUBCASE("the answers don't change") {
    for (int i = 0; i < 3; ++i) {
      CHECK(policy.before_stitching() == W{}.before_stitching());
      CHECK(policy.before_growing() == W{}.before_growing());
    }
  }

  SUBCASE("where only another stream's pending memory would do, the user waits for it or the pool grows") {
    basic_pool<config> pool(simulated{}, simulated_streams(device));
    must(pool.deallocate(must(pool.allocate(32_MiB, other))));
    bytes const before = pool.stats().reserved.now;
    address const b = must(pool.allocate(32_MiB, user));
    bool const waits = policy.before_stitching() || policy.before_growing();
    CHECK(pool.stats().device_waits == (waits ? 1 : 0));
    CHECK(pool.stats().reserved.now == (waits ? before : before + 32_MiB));
    must(pool.deallocate(b));
    CHECK(pool.validate() == nullptr);
  }

  SUBCASE("memory that is free for the user comes first, whatever the policy") {
    basic_pool<config> pool(simulated{}, simulated_streams(device));
    address const mine = must(pool.allocate(32_MiB, user));
    address const theirs = must(pool.allocate(32_MiB, other));
    must(pool.deallocate(theirs));
    must(pool.deallocate(mine));
    CHECK(must(pool.allocate(32_MiB, user)) == mine);
    CHECK(pool.stats().device_waits == 0);
  }

  SUBCASE("where memory could be stitched or waited for, it is stitched unless the policy says otherwise") {
    basic_pool<config> pool(simulated{}, simulated_streams(device));
    // Chunks of 32 MiB:  | user | live | user | other, pending |
    address const a = must(pool.allocate(32_MiB, user));
    address const b = must(pool.allocate(32_MiB, user));
    address const c = must(pool.allocate(32_MiB, user));
    address const apart = must(pool.allocate(1_MiB, user));
    address const d = must(pool.allocate(64_MiB, other));
    must(pool.deallocate(d));
    must(pool.deallocate(a));
    must(pool.deallocate(c));
    (void)must(pool.allocate(64_MiB, user));
    CHECK(pool.stats().stitches_made == (policy.before_stitching() ? 0 : 1));
    CHECK(pool.stats().device_waits == (policy.before_stitching() ? 1 : 0));
    must(pool.deallocate(b));
    must(pool.deallocate(apart));
    CHECK(pool.validate() == nullptr);
  }

  SUBCASE("before a request fails, the user waits whatever the policy") {
    basic_pool<config> pool(simulated{}, simulated_streams(device), {.limit = 64_MiB});
    must(pool.deallocate(must(pool.allocate(64_MiB, other))));
    (void)must(pool.allocate(64_MiB, user));
    CHECK(pool.stats().device_waits == 1);
    CHECK(pool.stats().host_waits == 0);
  }
}

}  // namespace gmlake::test
