/// Absent blocks served from their host copies, at their addresses: what touches one is slow, not wrong.

#include "gmlake/swap/in_place.hpp"

#include "gmlake/backend/placed_memory.hpp"
#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::residency;
using swap::tag;

namespace {

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;

struct no_source {
  [[nodiscard]] result<address> allocate(bytes) noexcept { return failure(errc::out_of_memory, "allocate"); }
  [[nodiscard]] result<void> deallocate(address, bytes) noexcept { return {}; }
};

static_assert(swap::can_serve_in_place<swap_rig::device_pool, swap_rig::host_pool>);
static_assert(!swap::can_serve_in_place<swap_rig::device_pool, basic_pool<pool_config<placed_memory<no_source>>>>);

void send_away(swap_rig& r, address b) {
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  REQUIRE(r.state(b) == residency::absent);
}

/// Handles beneath a block.
[[nodiscard]] std::vector<handle> beneath(swap_rig const& r, address b, bytes n) {
  std::vector<handle> all;
  for (physical_piece const& p : r.device.beneath(b, n)) all.push_back(p.memory);
  return all;
}

}  // namespace

TEST_CASE("an absent block is read at its address, and its device memory serves others") {
  swap_rig r({.device = 4 * mib, .in_place = true});
  bytes const size = 3 * mib + 64_KiB;
  address const b = r.take(size);
  r.fill(b, size, 9);
  auto const was = beneath(r, b, size);
  send_away(r, b);
  CHECK(must(r.pool->served_in_place(b)));
  CHECK(r.pool->swaps().in_place == size);
  CHECK(r.pool->swaps().absent == size);
  auto const is = beneath(r, b, size);
  REQUIRE_FALSE(is.empty());
  for (handle h : is) CHECK(std::ranges::find(was, h) == was.end());
  address const other = r.take(4 * mib);  // all that the device has
  r.fill(other, 4 * mib, 1);
  CHECK(r.holds(b, size, 9));
  must(r.pool->deallocate(other));
  must(r.pool->swap_in(b, work));
  CHECK_FALSE(must(r.pool->served_in_place(b)));
  CHECK(r.holds(b, size, 9));
  must(r.pool->settle());
  CHECK(r.pool->swaps().in_place == 0);
  CHECK(r.pool->swaps().on_host == 0);
}

TEST_CASE("what is written in place is the block's contents") {
  swap_rig r({.in_place = true});
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 1);
  for (unsigned char round = 2; round < 6; ++round) {
    send_away(r, b);
    CHECK(r.holds(b, 2 * mib, static_cast<unsigned char>(round - 1)));
    r.fill(b, 2 * mib, round);
    must(r.pool->swap_in(b, work));
    CHECK(r.holds(b, 2 * mib, round));
    must(r.pool->settle());
  }
}

TEST_CASE("a read-only block whose copy is kept is served again without being copied") {
  swap_rig r({.in_place = true});
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 4);
  must(r.pool->set_read_only(b, true));
  for (int i = 0; i < 3; ++i) {
    send_away(r, b);
    CHECK(must(r.pool->served_in_place(b)));
    CHECK(r.holds(b, 2 * mib, 4));
    must(r.pool->swap_in(b, work));
    must(r.pool->settle());
  }
  CHECK(r.pool->swaps().copied_out == 2 * mib);
}

TEST_CASE("a block that finds no room to come back goes on being served, and none of its bytes is lost") {
  swap_rig r({.device = 4 * mib, .in_place = true});
  address const b = r.take(3 * mib);
  r.fill(b, 3 * mib, 5);
  send_away(r, b);
  address const other = r.take(3 * mib);
  r.fill(b, 3 * mib, 6);
  CHECK(r.pool->swap_in(b, work).error().code == errc::out_of_memory);
  CHECK(must(r.pool->served_in_place(b)));
  CHECK(r.holds(b, 3 * mib, 6));
  must(r.pool->deallocate(other));
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 3 * mib, 6));
}

TEST_CASE("a paused group is served in place, and resumes with what was written meanwhile") {
  swap_rig r({.in_place = true});
  address const v = r.take(2 * mib, work, tag{1});
  address const w = r.take(mib, work, tag{1});
  r.fill(v, 2 * mib, 1);
  r.fill(w, mib, 2);
  CHECK(r.pool->pause(tag{1}).stayed == 0);
  CHECK(r.on_device->stats().reserved.now == 0);
  CHECK(r.holds(v, 2 * mib, 1));
  r.fill(w, mib, 3);
  CHECK(r.pool->resume(tag{1}).stayed == 0);
  CHECK(r.holds(v, 2 * mib, 1));
  CHECK(r.holds(w, mib, 3));
  SUBCASE("but for contents that were discarded: there is nothing to serve") {
    CHECK(r.pool->pause(tag{1}, false).stayed == 0);
    CHECK_FALSE(must(r.pool->served_in_place(v)));
    CHECK(r.device.beneath(v, 1).empty());
  }
}

TEST_CASE("a block is freed while it is served, and its copy's memory is the host pool's again") {
  swap_rig r({.in_place = true});
  address const b = r.take(2 * mib);
  send_away(r, b);
  r.device.calls.arm({.first = 0, .only = driver_call::unmap});
  CHECK(r.pool->deallocate(b).error().code == errc::driver_failure);
  r.device.calls.disarm();
  CHECK(must(r.pool->served_in_place(b)));
  must(r.pool->deallocate(b));
  CHECK(r.pool->swaps().in_place == 0);
  CHECK(r.pool->swaps().on_host == 0);
  CHECK(r.on_host->stats().live.now == 0);
}

TEST_CASE("work that may use a block in place is waited for before it is brought back or freed") {
  swap_rig r({.in_place = true});
  address const b = r.take(mib);
  must(r.pool->record_stream(b, stream{2}));
  send_away(r, b);
  int waits = 0;
  r.queues->wait_fails = [&waits] { return ++waits, false; };
  must(r.pool->swap_in(b, stream{3}));
  CHECK(waits >= 3);  // for its own stream, the one recorded and the one that asks
  must(r.pool->settle());
  send_away(r, b);
  r.queues->wait_fails = [] { return true; };
  CHECK(r.pool->deallocate(b).error().code == errc::driver_failure);
  CHECK(must(r.pool->served_in_place(b)));
  r.queues->wait_fails = nullptr;
  must(r.pool->deallocate(b));
}

TEST_CASE("a copy that can't be shown leaves the block absent, with its contents") {
  swap_rig r({.in_place = true});
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 8);
  must(r.pool->swap_out(b, work));
  r.queues->work(copy_queues::out, 1);
  r.device.calls.arm({.first = 0, .only = driver_call::map});
  (void)must(r.pool->progress());
  r.device.calls.disarm();
  CHECK(r.state(b) == residency::absent);
  CHECK_FALSE(must(r.pool->served_in_place(b)));
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 8));
}

TEST_CASE("a pool that goes while blocks are served leaves no mapping and no host memory behind") {
  swap_rig r({.in_place = true});
  address const b = r.take(2 * mib);
  send_away(r, b);
  r.pool.reset();
  CHECK(r.device.beneath(b, 1).empty());
  CHECK(r.on_host->stats().live.now == 0);
}
