/// The model of PyTorch's native allocator: its rules, one by one.

#include "gmlake/pool/presets/pytorch.hpp"

#include <doctest/doctest.h>

#include "tests/pool/presets/peer_suite.hpp"

namespace gmlake {
namespace {

using namespace peer_suite;

template <class B>
using pytorch = pytorch_pool<B>;

TEST_SUITE("pytorch") {
  TEST_CASE("sizes are rounded up to 512 bytes") {
    CHECK(pytorch_rules::block_size(0) == 512);
    CHECK(pytorch_rules::block_size(1) == 512);
    CHECK(pytorch_rules::block_size(512) == 512);
    CHECK(pytorch_rules::block_size(513) == 1024);
    CHECK(pytorch_rules::block_size(1_MiB + 1) == 1_MiB + 512);
  }

  TEST_CASE("a segment is 2 MiB for small blocks, 20 MiB below 10 MiB, and a multiple of 2 MiB above") {
    CHECK(pytorch_rules::segment_size(512) == 2_MiB);
    CHECK(pytorch_rules::segment_size(1_MiB) == 2_MiB);
    CHECK(pytorch_rules::segment_size(1_MiB + 512) == 20_MiB);
    CHECK(pytorch_rules::segment_size(10_MiB - 512) == 20_MiB);
    CHECK(pytorch_rules::segment_size(10_MiB) == 10_MiB);
    CHECK(pytorch_rules::segment_size(10_MiB + 512) == 12_MiB);
  }

  TEST_CASE("a segment is one handle, mapped once at addresses of its own") {
    pytorch_pool pool{device{}};
    (void)take(pool, 100_MiB);
    driver_usage const used = pool.stats().driver;
    CHECK(used[driver_call::reserve].calls == 1);
    CHECK(used[driver_call::create].calls == 1);
    CHECK(used[driver_call::map].calls == 1);
    CHECK(used[driver_call::set_access].calls == 1);
    CHECK(pool.stats().reserved.now == 100_MiB);
    CHECK(pool.stats().mapped.now == 100_MiB);
  }

  TEST_CASE("small blocks share a segment down to the last 512 bytes") {
    pytorch_pool pool{device{}};
    address const a = take(pool, 1_MiB);
    CHECK(take(pool, 1_MiB - 512) == a + 1_MiB);
    CHECK(take(pool, 512) == a + 2_MiB - 512);
    CHECK(pool.stats().reserved.now == 2_MiB);
    CHECK(pool.stats().live.now == 2_MiB);
  }

  TEST_CASE("small and large blocks never share a segment") {
    pytorch_pool pool{device{}};
    (void)take(pool, 5_MiB);
    (void)take(pool, 1_MiB);
    CHECK(pool.stats().reserved.now == 22_MiB);
  }

  TEST_CASE("a large block keeps a remainder of 1 MiB") {
    pytorch_pool pool{device{}};
    (void)take(pool, 19_MiB);
    CHECK(pool.stats().live.now == 20_MiB);
  }

  TEST_CASE("a large block gives up a remainder of more than 1 MiB") {
    pytorch_pool pool{device{}};
    address const a = take(pool, 9_MiB);
    address const b = take(pool, 10_MiB - 512);
    CHECK(b == a + 9_MiB);
    CHECK(pool.stats().live.now == 19_MiB - 512);
    CHECK(pool.stats().reserved.now == 20_MiB);
  }

  TEST_CASE("the smallest block that fits is taken") {
    pytorch_pool pool{device{}};
    address const wide = take(pool, 60_MiB);
    address const narrow = take(pool, 40_MiB);
    give(pool, wide);
    give(pool, narrow);
    CHECK(take(pool, 30_MiB) == narrow);
    CHECK(take(pool, 50_MiB) == wide);
  }

  TEST_CASE("of two segments that fit equally the newer is taken, of two blocks in one the lower") {
    pytorch_pool pool{device{}};
    address const older = take(pool, 40_MiB);
    address const newer = take(pool, 40_MiB);
    give(pool, older);
    give(pool, newer);
    CHECK(take(pool, 40_MiB) == newer);

    address const low = take(pool, 1_MiB - 512, stream{1});
    address const between = take(pool, 512, stream{1});
    address const high = take(pool, 1_MiB - 512, stream{1});
    address const after = take(pool, 512, stream{1});
    give(pool, low);
    give(pool, high);
    CHECK(take(pool, 1_MiB - 512, stream{1}) == low);
    give(pool, between);
    give(pool, after);
  }

  TEST_CASE("a freed block coalesces with both neighbours") {
    pytorch_pool pool{device{}};
    address const a = take(pool, 4_MiB);
    address const b = take(pool, 4_MiB);
    address const c = take(pool, 4_MiB);
    give(pool, a);
    give(pool, c);
    give(pool, b);
    CHECK(take(pool, 20_MiB) == a);
    CHECK(pool.stats().reserved.now == 20_MiB);
  }

  TEST_CASE("at the limit, wholly free segments are released and the request is tried again") {
    pytorch_pool pool{device{}, {.limit = 100_MiB}};
    address const free = take(pool, 60_MiB);
    address const half = take(pool, 8_MiB);
    give(pool, free);
    (void)take(pool, 80_MiB);
    CHECK(pool.stats().reserved.now == 100_MiB);
    CHECK(pool.stats().reserved.peak == 100_MiB);
    CHECK(pool.stats().driver[driver_call::release].calls == 1);
    give(pool, half);
  }

  TEST_CASE("a device that runs out is no different from the limit") {
    device lender({.capacity = 100_MiB});
    pytorch_pool pool{borrowed<device>{&lender}};
    give(pool, take(pool, 60_MiB, stream{1}));
    (void)take(pool, 80_MiB);
    CHECK(lender.created_bytes() == 80_MiB);
  }

  TEST_CASE("out of memory says where it all is") {
    pytorch_pool pool{device{}, {.limit = 100_MiB}};
    address const a = take(pool, 8_MiB);
    address const b = take(pool, 4_MiB);
    (void)take(pool, 80_MiB);
    give(pool, a);
    auto refusal = pool.allocate(20_MiB, {});
    REQUIRE_FALSE(refusal);
    CHECK(refusal.error().code == errc::out_of_memory);
    memory_account const m = refusal.error().account;
    CHECK(m.requested == 20_MiB);
    CHECK(m.reserved == 100_MiB);
    CHECK(m.live == 84_MiB);
    CHECK(m.free == 16_MiB);
    CHECK(m.largest_contiguous == 8_MiB);
    CHECK(m.limit == 100_MiB);
    CHECK_FALSE(m.fragmented());
    CHECK(pool.stats().failures == 1);
    give(pool, b);
  }

  TEST_CASE("a larger granule rounds segments up") {
    pytorch_pool pool{device({.granularity = 8_MiB})};
    (void)take(pool, 512);
    CHECK(pool.stats().reserved.now == 8_MiB);
    (void)take(pool, 1_MiB, {});
    CHECK(pool.stats().reserved.now == 8_MiB);
  }

  TEST_CASE("an empty request gets a block of its own") { an_empty_request_gets_a_block_of_its_own<pytorch>(); }
  TEST_CASE("a size that can't be rounded is an invalid argument") {
    a_size_that_cannot_be_rounded_is_an_invalid_argument<pytorch>();
  }
  TEST_CASE("what is not a block is an unknown pointer") { what_is_not_a_block_is_an_unknown_pointer<pytorch>(); }
  TEST_CASE("a second free is reported, even after coalescing") {
    a_second_free_is_reported_even_after_coalescing<pytorch>();
  }
  TEST_CASE("a stream is never served from another's memory") {
    a_stream_is_never_served_from_another_s_memory<pytorch>();
  }
  TEST_CASE("live blocks never overlap, and the gauges agree with a naive account") {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      pytorch_pool pool{device{}, {.limit = 1_GiB}};
      walk(pool, seed, 2000);
    }
  }
  TEST_CASE("destruction returns everything, live blocks too") { destruction_returns_everything<pytorch>(); }
  TEST_CASE("a failing backend call leaks nothing, whichever it is") { a_failing_call_leaks_nothing<pytorch>(); }
}

}  // namespace
}  // namespace gmlake
