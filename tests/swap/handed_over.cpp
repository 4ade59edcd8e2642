/// Blocks that leave and stay mapped: their memory is others' behind the copy, on the device, and whatever comes while
/// that is under way, contents are whole.

#include <vector>

#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::residency;

namespace {

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;

/// The block is sent away, and stays mapped.
void leave(swap_rig& r, address block) { must(r.pool->swap_out(block, work, vacating::leave)); }

[[nodiscard]] std::size_t under_way(swap_rig& r, stream on) { return r.queues->pending(on).size(); }

/// A block whose contents are on the host, and on their way back.
[[nodiscard]] address arriving(swap_rig& r, bytes n, unsigned char value, bool read_only) {
  address const b = r.take(n);
  r.fill(b, n, value);
  must(r.pool->set_read_only(b, read_only));
  leave(r, b);
  r.queues->work(copy_queues::out, 1);
  must(r.pool->prefetch(b));
  REQUIRE(r.state(b) == residency::arriving);
  REQUIRE(under_way(r, copy_queues::in) == 1);
  return b;
}

}  // namespace

TEST_CASE("a block that leaves and stays mapped is absent at once, and its memory serves others behind its copy") {
  swap_rig r({.device = 2 * mib});
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 7);
  leave(r, b);
  CHECK(r.state(b) == residency::absent);
  CHECK(under_way(r, copy_queues::out) == 1);
  CHECK_FALSE(r.device.beneath(b, 2 * mib).empty());
  CHECK(r.pool->swaps().departures == 1);
  CHECK(r.pool->swaps().absent == 2 * mib);
  CHECK_FALSE(must(r.pool->progress()));
  CHECK(under_way(r, copy_queues::out) == 1);  // and nobody waits for it

  address const other = r.take(2 * mib);  // all that the device has
  r.fill(other, 2 * mib, 9);
  for (int i = 0; i < 2; ++i) {
    leave(r, other);
    must(r.pool->swap_in(b, work));
    CHECK(r.holds(b, 2 * mib, 7));
    leave(r, b);
    must(r.pool->swap_in(other, work));
    CHECK(r.holds(other, 2 * mib, 9));
  }
  CHECK(r.device.beneath(b, 1).front().memory == r.device.beneath(other, 1).front().memory);
}

TEST_CASE("a block that is called back while its copy is under way has its memory again, without a driver call") {
  bool read_only = false;
  SUBCASE("which may be written") {}
  SUBCASE("which nobody writes") { read_only = true; }
  swap_rig r;
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 3);
  must(r.pool->set_read_only(b, read_only));
  leave(r, b);
  REQUIRE(under_way(r, copy_queues::out) == 1);
  auto const calls = r.device.calls.calls();
  must(r.pool->prefetch(b));
  CHECK(r.state(b) == residency::arriving);
  must(r.pool->swap_in(b, work));
  CHECK(r.device.calls.calls() == calls);
  CHECK(r.holds(b, 2 * mib, 3));
  unsigned char const now = read_only ? 3 : 4;
  r.fill(b, 2 * mib, now);
  leave(r, b);
  must(r.pool->settle());
  address const other = r.take(2 * mib);
  r.fill(other, 2 * mib, 5);
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, now));
  must(r.pool->settle());
  CHECK(r.pool->swaps().on_host == (read_only ? 2 * mib : 0));
  CHECK(r.pool->swaps().copied_out == (read_only ? 2 : 4) * mib);
}

TEST_CASE("a block that finds some of its memory with others comes back to other memory, once its copy is over") {
  swap_rig r({.device = 4 * mib});
  address const b = r.take(2 * mib);
  address const kept = r.take(mib), spare = r.take(mib);
  r.fill(b, 2 * mib, 3);
  leave(r, b);
  address const other = r.take(mib);  // half of what it had
  r.fill(other, mib, 5);
  must(r.pool->deallocate(spare));
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 3));
  CHECK(r.holds(other, mib, 5));
  must(r.pool->deallocate(kept));
}

TEST_CASE("the host would wait for the copy of a block that finds its memory with others, while that is under way") {
  swap_rig r({.device = 2 * mib});
  address const b = r.take(2 * mib);
  CHECK_FALSE(r.pool->awaits_copy(b));
  leave(r, b);
  CHECK_FALSE(r.pool->awaits_copy(b));  // it may come back to the same behind its copy
  r.queues->done_when_awaited = false;
  address const other = r.take(mib);  // half of that
  CHECK(r.pool->awaits_copy(b));
  CHECK_FALSE(r.pool->awaits_copy(other));
  CHECK_FALSE(r.pool->awaits_copy(address{}));
  REQUIRE(under_way(r, copy_queues::out) == 1);
  r.queues->work(copy_queues::out, 1);
  CHECK_FALSE(r.pool->awaits_copy(b));
}

TEST_CASE("a block whose memory is wanted back while its copy is under way, and others have it, stays where it is") {
  swap_rig r({.device = 2 * mib});
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 3);
  leave(r, b);
  address const other = r.take(mib);
  r.fill(other, mib, 5);
  CHECK(r.pool->try_prefetch(b).error().code == errc::out_of_memory);
  CHECK(r.pool->swap_in(b, work).error().code == errc::out_of_memory);
  CHECK(r.state(b) == residency::absent);
  leave(r, other);
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 3));
  leave(r, b);
  must(r.pool->swap_in(other, work));
  CHECK(r.holds(other, mib, 5));
}

TEST_CASE("a block that is freed while its copy is under way stays mapped for that long, and keeps its host memory") {
  swap_rig r({.device = 4 * mib});
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 3);
  leave(r, b);
  auto const had = r.device.beneath(b, 2 * mib);
  must(r.pool->deallocate(b));
  CHECK(r.pool->swaps().absent == 0);
  CHECK(r.pool->swaps().on_host == 2 * mib);
  (void)must(r.on_device->trim_passed());
  REQUIRE(under_way(r, copy_queues::out) == 1);
  CHECK(r.device.beneath(b, 2 * mib).size() == had.size());
  address const other = r.take(4 * mib);
  r.fill(other, 4 * mib, 4);
  r.queues->work(copy_queues::out, 1);
  (void)must(r.pool->progress());
  CHECK(r.pool->swaps().on_host == 0);
  leave(r, other);
  must(r.pool->swap_in(other, work));
  CHECK(r.holds(other, 4 * mib, 4));
}

TEST_CASE("a block that is arriving leaves again at once, behind its arrival") {
  for (bool const read_only : {false, true}) {
    CAPTURE(read_only);
    swap_rig r({.device = 2 * mib});
    address const b = arriving(r, 2 * mib, 6, read_only);
    leave(r, b);
    CHECK(r.state(b) == residency::absent);
    CHECK(r.pool->swaps().arrivals == 1);
    CHECK(r.pool->swaps().departures == 2);
    CHECK(r.pool->swaps().copied_out == (read_only ? 2 : 4) * mib);
    address const other = r.take(2 * mib);
    r.fill(other, 2 * mib, 1);
    leave(r, other);
    must(r.pool->swap_in(b, work));
    CHECK(r.holds(b, 2 * mib, 6));
    must(r.pool->settle());
    CHECK(r.pool->swaps().on_host == (read_only ? 4 : 2) * mib);  // the other's, and the copy of what nobody writes
    must(r.pool->deallocate(other));
    must(r.pool->deallocate(b));
    must(r.pool->settle());
    CHECK(r.pool->swaps().on_host == 0);
    CHECK(r.pool->swaps().swappable == 0);
  }
}

TEST_CASE("an arriving block that finds the host full leaves all the same, by its own old copy's memory") {
  swap_rig r({.host = 2 * mib});
  address const b = arriving(r, 2 * mib, 6, false);
  leave(r, b);
  CHECK(r.state(b) == residency::absent);
  CHECK(r.pool->swaps().refusals == 0);
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 6));
}

TEST_CASE("an arriving block that can't leave again has its contents") {
  swap_rig r;
  address const b = arriving(r, 2 * mib, 6, false);
  SUBCASE("where its copy can't be queued") {
    r.queues->copy_fails = [] { return true; };
    CHECK(r.pool->swap_out(b, work, vacating::leave).error().code == errc::driver_failure);
    CHECK(r.state(b) == residency::mapped);
  }
  SUBCASE("where nothing can wait for its arrival") {
    r.queues->wait_fails = [] { return true; };
    CHECK(r.pool->swap_out(b, work, vacating::leave).error().code == errc::driver_failure);
    CHECK(r.state(b) == residency::arriving);
  }
  SUBCASE("where the end of its copy can't be told") {
    r.queues->record_fails = [] { return true; };
    CHECK(r.pool->swap_out(b, work, vacating::leave).error().code == errc::driver_failure);
    CHECK(r.state(b) == residency::mapped);
  }
  r.queues->copy_fails = r.queues->record_fails = r.queues->wait_fails = nullptr;
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 6));
  r.fill(b, 2 * mib, 8);
  leave(r, b);
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 8));
}

TEST_CASE("what was left mapped is unmapped on demand, after the copies that read it") {
  swap_rig r;
  address const one = r.take(mib), two = r.take(2 * mib);
  r.fill(one, mib, 1);
  r.fill(two, 2 * mib, 2);
  leave(r, one);
  leave(r, two);
  REQUIRE(under_way(r, copy_queues::out) == 2);
  r.queues->wait_fails = [] { return true; };
  CHECK(r.pool->unmap_absent(any_block).error().code == errc::driver_failure);
  CHECK_FALSE(r.device.beneath(one, 1).empty());  // since nobody knows that they are over
  CHECK_FALSE(r.device.beneath(two, 1).empty());
  r.queues->wait_fails = nullptr;
  must(r.pool->unmap_absent([&](address at) { return at == one; }));
  CHECK(r.device.beneath(one, 1).empty());
  CHECK_FALSE(r.device.beneath(two, 1).empty());
  must(r.pool->unmap_absent(any_block));
  CHECK(under_way(r, copy_queues::out) == 0);
  CHECK(r.device.beneath(one, 1).empty());
  CHECK(r.device.beneath(two, 1).empty());
  address const other = r.take(3 * mib);
  r.fill(other, 3 * mib, 3);
  for (address const b : {one, two}) must(r.pool->swap_in(b, work));
  CHECK(r.holds(one, mib, 1));
  CHECK(r.holds(two, 2 * mib, 2));
}

TEST_CASE("a pool that goes while handed-over blocks' copies are under way gives all host memory back") {
  swap_rig r;
  address const one = r.take(mib), two = r.take(mib);
  leave(r, one);
  leave(r, two);
  must(r.pool->prefetch(two));
  r.pool.reset();
  CHECK(under_way(r, copy_queues::out) == 0);
  CHECK(r.on_host->stats().live.now == 0);
}

TEST_CASE(
    "nothing is handed over of which somebody is to be told first, or whose copy is to be used before it is whole") {
  auto const leaves = [](swap_rig& r) {
    address const b = r.take(mib);
    r.fill(b, mib, 2);
    must(r.pool->set_read_only(b, true));
    leave(r, b);
    CHECK(r.state(b) == residency::leaving);
    r.queues->work(copy_queues::out, 1);
    CHECK_FALSE(must(r.pool->progress()));
    CHECK(r.state(b) == residency::absent);
    must(r.pool->swap_in(b, work));
    CHECK(r.holds(b, mib, 2));
  };
  SUBCASE("where a file lies below") {
    swap_rig r({.file = 4 * mib});
    leaves(r);
  }
  SUBCASE("where copies serve in place") {
    swap_rig r({.in_place = true});
    leaves(r);
  }
  SUBCASE("where somebody watches") {
    swap_rig r;
    address const b = r.take(mib);
    int going = 0;
    (void)must(r.pool->watch(b, [&](address, bytes, swap::remapping what) -> result<void> {
      if (what == swap::remapping::going) ++going;
      return {};
    }));
    leave(r, b);
    CHECK(r.state(b) == residency::leaving);
    CHECK(going == 0);
    must(r.pool->settle());
    CHECK(going == 1);
  }
}

TEST_CASE("of many copies that nobody needs any more and that are under way, a look asks for few") {
  constexpr int most = 20;
  swap_rig r({.device = most * mib});
  std::vector<address> all(most);
  for (address& b : all) b = r.take(mib / 2);
  for (address const b : all) leave(r, b);
  for (address const b : all) must(r.pool->deallocate(b));
  REQUIRE(under_way(r, copy_queues::out) == most);
  CHECK(r.pool->swaps().on_host == most * mib / 2);
  int asked = 0;
  r.queues->reached_fails = [&] {
    ++asked;
    return false;
  };
  (void)must(r.pool->progress());
  CHECK(asked <= 4);
  r.queues->work(copy_queues::out, most);
  (void)must(r.pool->progress());
  r.queues->reached_fails = nullptr;
  CHECK(r.pool->swaps().on_host == 0);
}
