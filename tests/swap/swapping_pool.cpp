/// Blocks leave for the host and come back, at the same addresses and with the same contents, whatever comes between.

#include "gmlake/swap/swapping_pool.hpp"

#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::residency;
using swap::tag;

namespace {

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;

}  // namespace

TEST_CASE("a block that leaves keeps its memory until its copy is whole") {
  swap_rig r;
  address const b = r.take(4 * mib);
  r.fill(b, 4 * mib, 7);
  must(r.pool->swap_out(b, work));
  CHECK(r.state(b) == residency::leaving);
  CHECK(must(r.pool->progress()));
  CHECK(r.holds(b, 4 * mib, 7));
  r.queues->work(copy_queues::out, 1);
  CHECK_FALSE(must(r.pool->progress()));
  CHECK(r.state(b) == residency::absent);
  CHECK(r.device.beneath(b, 1).empty());
  CHECK(r.pool->swaps().absent == 4 * mib);
}

TEST_CASE("contents come back to the same address, on other memory") {
  swap_rig r({.device = 5 * mib});
  address const b = r.take(4 * mib);
  r.fill(b, 4 * mib, 9);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  address const other = r.take(5 * mib);  // all that the device has
  r.fill(other, 5 * mib, 1);
  must(r.pool->deallocate(other));
  must(r.pool->swap_in(b, work));
  CHECK(r.state(b) == residency::arriving);
  CHECK(r.holds(b, 4 * mib, 9));
  must(r.pool->settle());
  CHECK(r.state(b) == residency::mapped);
  CHECK(r.pool->swaps().on_host == 0);
  CHECK(must(r.pool->generation_of(b)) == 1);
}

TEST_CASE("a request that finds no memory waits for what is leaving") {
  swap_rig r({.device = 4 * mib});
  address const b = r.take(4 * mib);
  must(r.pool->swap_out(b, work));
  address const other = r.take(3 * mib);
  CHECK(r.state(b) == residency::absent);
  CHECK(r.pool->swap_in(b, work).error().code == errc::out_of_memory);
  CHECK(r.state(b) == residency::absent);
  must(r.pool->swap_out(other, work));
  must(r.pool->swap_in(b, work));
}

TEST_CASE("a block wanted back before it has gone stays where it is") {
  swap_rig r;
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 3);
  must(r.pool->swap_out(b, work));
  must(r.pool->swap_in(b, work));
  CHECK(r.state(b) == residency::mapped);
  CHECK(r.pool->swaps().called_back == 1);
  r.fill(b, 2 * mib, 4);  // while the useless copy is under way
  CHECK(r.pool->swaps().on_host == 2 * mib);
  r.queues->work(copy_queues::out, 1);
  (void)must(r.pool->progress());
  CHECK(r.pool->swaps().on_host == 0);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 4));
}

TEST_CASE("blocks are freed in every state, and what copies still read is not handed out") {
  swap_rig r({.device = 8 * mib});
  address const leaving = r.take(2 * mib);
  address const absent = r.take(2 * mib);
  address const arriving = r.take(2 * mib);
  for (address b : {absent, arriving}) must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->prefetch(arriving));
  must(r.pool->swap_out(leaving, work));
  REQUIRE(r.state(leaving) == residency::leaving);
  REQUIRE(r.state(absent) == residency::absent);
  REQUIRE(r.state(arriving) == residency::arriving);

  must(r.pool->deallocate(leaving));
  address const next = must(r.on_device->allocate(2 * mib, work));
  for (physical_piece const& was : r.device.beneath(leaving, 2 * mib)) {
    for (physical_piece const& is : r.device.beneath(next, 2 * mib)) CHECK(was.memory != is.memory);
  }
  must(r.pool->deallocate(absent));
  must(r.pool->deallocate(arriving));
  CHECK(r.pool->swaps().swappable == 0);
  CHECK(r.pool->swaps().absent == 0);
  r.queues->work(copy_queues::out, 8);
  r.queues->work(copy_queues::in, 8);
  (void)must(r.pool->progress());
  CHECK(r.pool->swaps().on_host == 0);
  CHECK(r.pool->deallocate(absent).error().code != errc::out_of_memory);
}

TEST_CASE("what the host has no room for stays on the device") {
  swap_rig r({.host = 3 * mib});
  address const first = r.take(2 * mib);
  address const second = r.take(2 * mib);
  must(r.pool->swap_out(first, work));
  result<void> const full = r.pool->swap_out(second, work);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == errc::out_of_host_memory);
  CHECK(r.state(second) == residency::mapped);
  CHECK(r.pool->swaps().refusals == 1);
  must(r.pool->settle());
  must(r.pool->deallocate(first));
  must(r.pool->swap_out(second, work));
}

TEST_CASE("a block that finds the host full waits for copies that are over soon") {
  swap_rig r({.host = 2 * mib});
  address const first = r.take(2 * mib);
  address const second = r.take(2 * mib);
  must(r.pool->swap_out(first, work));
  must(r.pool->swap_in(first, work));    // called back: its copy is of no use, and under way
  must(r.pool->swap_out(second, work));  // waits for that
  must(r.pool->settle());
  must(r.pool->prefetch(second));
  must(r.pool->swap_out(first, work));  // and for this
  CHECK(r.state(second) == residency::mapped);
  CHECK(r.pool->swaps().refusals == 0);
}

TEST_CASE("a pinned block stays, and what was absent is pinned where it arrives") {
  swap_rig r;
  address const b = r.take(mib);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->pin(b, work));
  CHECK(r.pool->swap_out(b, work).error().code == errc::invalid_argument);
  CHECK(r.pool->pause(tag{}).stayed == mib);
  must(r.pool->unpin(b));
  CHECK(r.pool->unpin(b).error().code == errc::invalid_argument);
  must(r.pool->swap_out(b, work));
}

TEST_CASE("what is discarded leaves without a copy, and comes back as memory") {
  swap_rig r({.host = 64_KiB});  // no room for one
  address const b = r.take(2 * mib);
  must(r.pool->discard(b, work));
  must(r.pool->settle());
  CHECK(r.state(b) == residency::absent);
  CHECK(r.pool->swaps().on_host == 0);
  CHECK(r.on_device->account().live == 0);
  must(r.pool->swap_in(b, work));
  must(r.pool->settle());
  CHECK(r.state(b) == residency::mapped);
  CHECK(r.pool->swaps().copied_out == 0);
  CHECK(r.pool->swaps().copied_in == 0);
  r.fill(b, 2 * mib, 7);
  CHECK(r.holds(b, 2 * mib, 7));
  must(r.pool->pin(b, work));
  CHECK(r.pool->discard(b, work).error().code == errc::invalid_argument);
  CHECK(r.pool->discard(address{77}, work).error().code == errc::unknown_pointer);
}

TEST_CASE("read-only blocks are copied once, however often they leave") {
  swap_rig r;
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 5);
  must(r.pool->set_read_only(b, true));
  for (int i = 0; i < 3; ++i) {
    must(r.pool->swap_out(b, work));
    if (i == 1) must(r.pool->swap_in(b, work));  // called back: its copy stays good
    must(r.pool->swap_out(b, work));
    must(r.pool->settle());
    REQUIRE(r.state(b) == residency::absent);
    must(r.pool->swap_in(b, work));
    CHECK(r.holds(b, 2 * mib, 5));
    must(r.pool->settle());
  }
  CHECK(r.pool->swaps().copied_out == 2 * mib);
  must(r.pool->set_read_only(b, false));
  CHECK(r.pool->swaps().on_host == 0);
  r.fill(b, 2 * mib, 6);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 6));
}

TEST_CASE("a block that was written while it arrived, and is read only from then on, is copied anew") {
  swap_rig r;
  address const b = r.take(mib);
  r.fill(b, mib, 12);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->swap_in(b, work));
  CHECK(r.state(b) == residency::arriving);
  r.fill(b, mib, 13);
  must(r.pool->set_read_only(b, true));
  for (int i = 0; i < 2; ++i) {
    must(r.pool->swap_out(b, work));
    must(r.pool->settle());
    CHECK(r.pool->swaps().copied_out == 2 * mib);
    must(r.pool->swap_in(b, work));
    CHECK(r.holds(b, mib, 13));
  }
}

TEST_CASE("a paused group gives its memory back to the device, and resumes with its contents") {
  swap_rig r;
  tag const weights{1}, cache{2};
  address const w = r.take(3 * mib + 64_KiB, work, weights);
  address const v = r.take(mib, work, weights);
  address const c = r.take(2 * mib, work, cache);
  r.fill(w, 3 * mib + 64_KiB, 11);
  r.fill(v, mib, 12);
  r.fill(c, 2 * mib, 13);

  CHECK(r.pool->pause(weights).moved == 4 * mib + 64_KiB);
  CHECK(r.pool->pause(cache, false).moved == 2 * mib);
  CHECK(r.device.device().live_handles() == 0);
  CHECK(r.pool->swaps().on_host == 4 * mib + 64_KiB);

  CHECK(r.pool->resume(cache).moved == 2 * mib);
  CHECK(r.pool->resume(weights).moved == 4 * mib + 64_KiB);
  CHECK(r.holds(w, 3 * mib + 64_KiB, 11));
  CHECK(r.holds(v, mib, 12));
  CHECK(r.pool->swaps().on_host == 0);
  CHECK_FALSE(r.device.beneath(c, 2 * mib).empty());
}

TEST_CASE("what has left of a group that pauses is the device's before the next has") {
  swap_rig r;
  tag const weights{1};
  std::vector<bytes> held;
  for (int i = 0; i < 3; ++i) {
    (void)must(r.pool->watch(r.take(mib, work, weights), [&](address, bytes, swap::remapping) {
      held.push_back(r.device.device().created_bytes());
      return result<void>{};
    }));
  }
  CHECK(r.pool->pause(weights).moved == 3 * mib);
  CHECK(held == std::vector<bytes>{3 * mib, 2 * mib, mib});
}

TEST_CASE("a group that finds no room to resume comes back as far as there is, and later wholly") {
  swap_rig r({.device = 4 * mib});
  address const first = r.take(2 * mib);
  address const second = r.take(2 * mib);
  r.fill(first, 2 * mib, 1);
  r.fill(second, 2 * mib, 2);
  CHECK(r.pool->pause(tag{}).moved == 4 * mib);
  address const other = must(r.on_device->allocate(2 * mib));
  auto const part = r.pool->resume(tag{});
  CHECK(part.moved == 2 * mib);
  CHECK(part.stayed == 2 * mib);
  CHECK(part.why.code == errc::out_of_memory);
  must(r.on_device->deallocate(other));
  CHECK(r.pool->resume(tag{}).stayed == 0);
  CHECK(r.holds(first, 2 * mib, 1));
  CHECK(r.holds(second, 2 * mib, 2));
}

TEST_CASE("accesses that nothing foresaw are served and counted") {
  swap_rig r;
  address const b = r.take(mib);
  r.fill(b, mib, 8);
  must(r.pool->access(b, work));
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->access(b, work));
  CHECK(r.holds(b, mib, 8));
  CHECK(r.pool->swaps().misses == 1);
  must(r.pool->access(address{77}, work));  // what is not swappable is there
}

TEST_CASE("small requests go to the device pool and don't swap") {
  swap_rig r;
  address const b = r.take(1_KiB);
  CHECK(r.pool->swap_out(b, work).error().code == errc::unknown_pointer);
  CHECK(r.pool->swap_in(b, work).error().code == errc::unknown_pointer);
  must(r.pool->deallocate(b));
  CHECK(r.pool->deallocate(b).error().code == errc::double_free);
}

TEST_CASE("a copy that can't be queued leaves a block where it was") {
  swap_rig r;
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 21);
  r.queues->copy_fails = [] { return true; };
  CHECK(r.pool->swap_out(b, work).error().code == errc::driver_failure);
  CHECK(r.state(b) == residency::mapped);
  CHECK(r.pool->swaps().on_host == 0);
  r.queues->copy_fails = nullptr;
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  r.queues->copy_fails = [] { return true; };
  CHECK(r.pool->swap_in(b, work).error().code == errc::driver_failure);
  CHECK(r.state(b) == residency::absent);
  CHECK(r.device.beneath(b, 1).empty());
  r.queues->copy_fails = nullptr;
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 21));
}

TEST_CASE("no copy to the device begins whose end could not be told") {
  swap_rig r;
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 22);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  r.queues->record_fails = [] { return true; };
  CHECK_FALSE(r.pool->swap_in(b, work));
  CHECK_FALSE(r.pool->try_prefetch(b));
  CHECK(r.queues->queued(copy_queues::in) == 0);
  CHECK(r.state(b) == residency::absent);
  CHECK(r.device.beneath(b, 1).empty());
  r.queues->record_fails = nullptr;
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 22));
}

TEST_CASE("memory that can't be unmapped is tried again") {
  swap_rig r;
  address const b = r.take(mib);
  must(r.pool->swap_out(b, work));
  r.device.calls.arm({.first = 0, .only = driver_call::unmap});
  CHECK(r.pool->settle().error().code == errc::driver_failure);
  CHECK(r.state(b) == residency::leaving);
  must(r.pool->settle());
  CHECK(r.state(b) == residency::absent);
}

TEST_CASE("a copy whose end can't be told is not relied on") {
  swap_rig r;
  address const b = r.take(mib);
  r.fill(b, mib, 30);
  must(r.pool->swap_out(b, work));
  r.queues->reached_fails = [] { return true; };
  CHECK_FALSE(r.pool->progress());
  CHECK(r.state(b) == residency::mapped);
  r.queues->reached_fails = nullptr;
  r.fill(b, mib, 31);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, mib, 31));
}

TEST_CASE("a pool that goes while blocks move gives all host memory back") {
  swap_rig r;
  address const leaving = r.take(mib);
  address const absent = r.take(mib);
  address const arriving = r.take(mib);
  for (address b : {absent, arriving}) must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  must(r.pool->prefetch(arriving));
  must(r.pool->swap_out(leaving, work));
  r.pool.reset();
  CHECK(r.on_host->stats().live.now == 0);
}
