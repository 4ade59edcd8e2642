/// The model of PyTorch's allocator with expandable segments: its rules, one by one.

#include "gmlake/pool/presets/expandable.hpp"

#include <doctest/doctest.h>

#include "tests/pool/presets/peer_suite.hpp"

namespace gmlake {
namespace {

using namespace peer_suite;

template <class B>
using expandable = expandable_pool<B>;

TEST_SUITE("expandable") {
  TEST_CASE("small blocks grow by handles of 2 MiB, large ones by handles of 20 MiB") {
    expandable_pool pool{device{}};
    (void)take(pool, 512);
    CHECK(pool.stats().reserved.now == 2_MiB);
    (void)take(pool, 50_MiB);
    CHECK(pool.stats().reserved.now == 62_MiB);
    CHECK(pool.stats().driver[driver_call::create].calls == 4);
  }

  TEST_CASE("one growth sets access once, over all its handles") {
    expandable_pool pool{device{}};
    (void)take(pool, 50_MiB);
    driver_usage const used = pool.stats().driver;
    CHECK(used[driver_call::reserve].calls == 1);
    CHECK(used[driver_call::map].calls == 3);
    CHECK(used[driver_call::set_access].calls == 1);
  }

  TEST_CASE("a segment reserves the device's memory and an eighth, in whole handles") {
    device lender;
    expandable_pool pool{borrowed<device>{&lender}, {.device_bytes = 800_MiB}};
    (void)take(pool, 30_MiB);
    CHECK(lender.reserved_bytes() == 900_MiB);
    (void)take(pool, 512);
    CHECK(lender.reserved_bytes() == 1800_MiB);
  }

  TEST_CASE("a request that is larger than the free end maps only what is missing") {
    expandable_pool pool{device{}};
    address const a = take(pool, 30_MiB);
    address const b = take(pool, 30_MiB);
    CHECK(b == a + 30_MiB);
    CHECK(pool.stats().reserved.now == 60_MiB);
  }

  TEST_CASE("whatever remains of 512 bytes or more is split off, of large blocks too") {
    expandable_pool pool{device{}};
    address const a = take(pool, 20_MiB - 512);
    address const b = take(pool, 2_MiB);
    CHECK(b == a + 20_MiB - 512);
    CHECK(pool.stats().live.now == 22_MiB - 512);
  }

  TEST_CASE("a larger block inside is preferred to the growing end") {
    expandable_pool pool{device{}};
    address const inside = take(pool, 15_MiB);
    address const wall = take(pool, 13_MiB);  // 12 MiB are free at the growing end
    give(pool, inside);
    CHECK(take(pool, 11_MiB) == inside);
    give(pool, wall);
  }

  TEST_CASE("the growing end is taken where nothing else fits") {
    expandable_pool pool{device{}};
    address const inside = take(pool, 5_MiB);
    address const wall = take(pool, 23_MiB);
    give(pool, inside);
    CHECK(take(pool, 11_MiB) == wall + 23_MiB);
    CHECK(pool.stats().reserved.now == 40_MiB);
  }

  // MiB:  0    10       20   40   50      50 + n    100
  //       | a  |  free  | hole | c  |   n   |    e    |
  // The free block before the hole has 10 MiB, 30 if it grew. n is free too when the 8 MiB are asked for.
  bytes offset_of_8_MiB(bytes n) {
    expandable_pool pool{device{}, {.limit = 140_MiB}};
    address const a = take(pool, 10_MiB);
    address const middle = take(pool, 30_MiB);
    (void)take(pool, 10_MiB);
    address const d = take(pool, n);
    (void)take(pool, 50_MiB - n);
    give(pool, middle);
    (void)take(pool, 60_MiB, stream{1});  // unmaps [20, 40)
    REQUIRE(pool.stats().driver[driver_call::unmap].calls == 1);
    give(pool, d);
    return take(pool, 8_MiB) - a;
  }

  TEST_CASE("a block before a hole counts as large as the hole lets it grow") {
    CHECK(offset_of_8_MiB(25_MiB) == 50_MiB);
    CHECK(offset_of_8_MiB(35_MiB) == 10_MiB);
  }

  TEST_CASE("a freed block coalesces with both neighbours") {
    expandable_pool pool{device{}};
    address const a = take(pool, 10_MiB);
    address const b = take(pool, 10_MiB);
    address const c = take(pool, 10_MiB);
    address const d = take(pool, 10_MiB);
    give(pool, a);
    give(pool, c);
    give(pool, b);
    CHECK(take(pool, 30_MiB) == a);
    CHECK(pool.stats().reserved.now == 40_MiB);
    give(pool, d);
  }

  TEST_CASE("at the limit, free handles are unmapped and the request is tried again") {
    expandable_pool pool{device{}, {.limit = 100_MiB}};
    address const a = take(pool, 70_MiB, stream{1});
    address const b = take(pool, 10_MiB, stream{1});
    give(pool, a);
    (void)take(pool, 40_MiB);  // [0, 60) MiB of stream 1 hold three free handles; the fourth is in use
    CHECK(pool.stats().reserved.now == 60_MiB);
    CHECK(pool.stats().driver[driver_call::unmap].calls == 3);
    CHECK(pool.stats().driver[driver_call::release].calls == 3);
    give(pool, b);
  }

  TEST_CASE("memory is mapped again at the lowest hole where the request fits, free neighbours included") {
    expandable_pool pool{device{}, {.limit = 100_MiB}};
    address const a = take(pool, 70_MiB, stream{1});
    address const b = take(pool, 10_MiB, stream{1});
    give(pool, a);
    address const other = take(pool, 40_MiB);
    give(pool, other);
    CHECK(take(pool, 65_MiB, stream{1}) == a);  // the hole of 60 MiB and 5 of the 10 MiB that stayed mapped
    CHECK(pool.stats().reserved.now == 80_MiB);
    give(pool, b);
  }

  TEST_CASE("a segment that is empty is given back with its addresses") {
    device lender;
    expandable_pool pool{borrowed<device>{&lender}, {.limit = 100_MiB}};
    give(pool, take(pool, 80_MiB, stream{1}));
    CHECK(lender.reservations() == 1);
    (void)take(pool, 60_MiB, stream{2});
    CHECK(lender.reservations() == 1);
    CHECK(lender.created_bytes() == 60_MiB);
  }

  TEST_CASE("a stream whose segment is full of holes too small gets a second one") {
    device lender;
    expandable_pool pool{borrowed<device>{&lender}, {.device_bytes = 160_MiB}};
    address const a = take(pool, 100_MiB);
    (void)take(pool, 100_MiB);
    CHECK(lender.reservations() == 2);
    give(pool, a);
  }

  TEST_CASE("a request larger than a segment is out of memory") {
    expandable_pool pool{device{}, {.device_bytes = 160_MiB}};
    CHECK(refused(pool, 181_MiB) == errc::out_of_memory);
    CHECK(pool.stats().failures == 1);
  }

  TEST_CASE("a device that runs out leaves what was mapped before as it was") {
    device lender({.capacity = 100_MiB});
    expandable_pool pool{borrowed<device>{&lender}};
    address const a = take(pool, 50_MiB);
    CHECK(refused(pool, 60_MiB) == errc::out_of_memory);
    CHECK(lender.created_bytes() == 60_MiB);
    CHECK(take(pool, 50_MiB) == a + 50_MiB);
    CHECK(lender.created_bytes() == 100_MiB);
  }

  TEST_CASE("out of memory says where it all is") {
    expandable_pool pool{device{}, {.limit = 100_MiB}};
    address const a = take(pool, 30_MiB);
    address const b = take(pool, 45_MiB);
    give(pool, a);
    auto refusal = pool.allocate(60_MiB, {});
    REQUIRE_FALSE(refusal);
    CHECK(refusal.error().code == errc::out_of_memory);
    memory_account const m = refusal.error().account;
    CHECK(m.requested == 60_MiB);
    CHECK(m.reserved == 60_MiB);  // one handle of [0, 30) MiB went back
    CHECK(m.live == 45_MiB);
    CHECK(m.free == 15_MiB);
    CHECK(m.largest_contiguous == 10_MiB);
    CHECK(m.limit == 100_MiB);
    give(pool, b);
  }

  TEST_CASE("an empty request gets a block of its own") { an_empty_request_gets_a_block_of_its_own<expandable>(); }
  TEST_CASE("a size that can't be rounded is an invalid argument") {
    a_size_that_cannot_be_rounded_is_an_invalid_argument<expandable>();
  }
  TEST_CASE("what is not a block is an unknown pointer") { what_is_not_a_block_is_an_unknown_pointer<expandable>(); }
  TEST_CASE("a second free is reported, even after coalescing") {
    a_second_free_is_reported_even_after_coalescing<expandable>();
  }
  TEST_CASE("a stream is never served from another's memory") {
    a_stream_is_never_served_from_another_s_memory<expandable>();
  }
  TEST_CASE("live blocks never overlap, and the gauges agree with a naive account") {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      expandable_pool pool{device{}, {.limit = 1_GiB}};
      walk(pool, seed, 2000);
    }
  }
  TEST_CASE("destruction returns everything, live blocks too") { destruction_returns_everything<expandable>(); }
  TEST_CASE("a failing backend call leaks nothing, whichever it is") { a_failing_call_leaks_nothing<expandable>(); }
}

}  // namespace
}  // namespace gmlake
