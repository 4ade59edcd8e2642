/// Who watches a block is told before its memory goes and after other memory has come, and can keep it where it is.

#include "gmlake/swap/remapping.hpp"

#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::remapping;
using swap::residency;
using swap::tag;

namespace {

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;

/// Somebody who has registered a block.
struct registrant {
  swap_rig* rig;
  bool registered = true;
  bool minds = false;
  int told = 0;
  int wrong = 0;  ///< times that there was no memory at the block, or it heard the same twice

  [[nodiscard]] swap::remap_callback callback() {
    return [this](address at, bytes n, remapping what) -> result<void> {
      ++told;
      if (minds) return failure(errc::driver_failure, "registrant");
      if (rig->device.beneath(at, n).empty()) ++wrong;
      bool const now = what == remapping::come;
      if (registered == now) ++wrong;
      registered = now;
      return {};
    };
  }
};

}  // namespace

TEST_CASE("a watcher is told while the memory is there still, and as soon as other memory is") {
  swap_rig r;
  address const b = r.take(2 * mib);
  registrant nccl{.rig = &r};
  (void)must(r.pool->watch(b, nccl.callback()));
  must(r.pool->swap_out(b, work));
  CHECK(nccl.registered);  // its copy is under way: what is queued may use the registration
  must(r.pool->settle());
  CHECK_FALSE(nccl.registered);
  must(r.pool->swap_in(b, work));
  CHECK(nccl.registered);
  must(r.pool->settle());
  CHECK(nccl.told == 2);
  CHECK(nccl.wrong == 0);
  must(r.pool->swap_out(b, work));
  must(r.pool->swap_in(b, work));  // called back: nothing has gone
  CHECK(nccl.told == 2);
}

TEST_CASE("who watches what is absent is told when memory has come; nobody can't watch") {
  swap_rig r;
  address const b = r.take(2 * mib);
  CHECK(r.pool->watch(b, {}).error().code == errc::invalid_argument);
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  registrant nccl{.rig = &r, .registered = false};
  (void)must(r.pool->watch(b, nccl.callback()));
  CHECK(nccl.told == 0);
  must(r.pool->swap_in(b, work));
  CHECK(nccl.registered);
  CHECK(nccl.wrong == 0);
}

TEST_CASE("a watcher that minds keeps a block mapped") {
  swap_rig r;
  address const b = r.take(2 * mib, work, tag{1});
  r.fill(b, 2 * mib, 7);
  registrant first{.rig = &r}, second{.rig = &r, .minds = true};
  (void)must(r.pool->watch(b, first.callback()));
  auto const who = must(r.pool->watch(b, second.callback()));
  must(r.pool->swap_out(b, work));
  CHECK(std::string(r.pool->settle().error().call) == "registrant");
  CHECK(r.state(b) == residency::mapped);
  CHECK(first.registered);  // told otherwise again
  auto const paused = r.pool->pause(tag{1});
  CHECK(paused.stayed == 2 * mib);
  CHECK(std::string(paused.why.call) == "registrant");
  CHECK(r.holds(b, 2 * mib, 7));
  must(r.pool->unwatch(b, who));
  CHECK(r.pool->unwatch(b, who).error().code == errc::invalid_argument);
  CHECK(r.pool->pause(tag{1}).stayed == 0);
  CHECK_FALSE(first.registered);
  CHECK(r.pool->resume(tag{1}).stayed == 0);
  CHECK(first.registered);
  CHECK(first.wrong == 0);
}

TEST_CASE("a watcher that can't register keeps a block absent") {
  swap_rig r;
  address const b = r.take(2 * mib);
  r.fill(b, 2 * mib, 7);
  registrant first{.rig = &r}, second{.rig = &r};
  (void)must(r.pool->watch(b, first.callback()));
  (void)must(r.pool->watch(b, second.callback()));
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  second.minds = true;
  CHECK(std::string(r.pool->swap_in(b, work).error().call) == "registrant");
  CHECK(r.state(b) == residency::absent);
  CHECK(r.device.beneath(b, 1).empty());
  CHECK_FALSE(first.registered);
  second.minds = false;
  must(r.pool->swap_in(b, work));
  CHECK(r.holds(b, 2 * mib, 7));
  CHECK(first.registered);
  CHECK(second.registered);
  CHECK(first.wrong + second.wrong == 0);
}

TEST_CASE("a watcher hears once that memory goes, however often unmapping is tried, and that it has stayed after all") {
  swap_rig r;
  address const b = r.take(mib);
  registrant rdma{.rig = &r};
  (void)must(r.pool->watch(b, rdma.callback()));
  must(r.pool->swap_out(b, work));
  r.device.calls.arm({.first = 0, .count = 2, .only = driver_call::unmap});
  CHECK_FALSE(r.pool->settle());
  CHECK_FALSE(r.pool->settle());
  CHECK_FALSE(rdma.registered);
  CHECK(rdma.told == 1);
  must(r.pool->swap_in(b, work));
  CHECK(r.state(b) == residency::mapped);
  CHECK(rdma.registered);
  CHECK(rdma.told == 2);
  r.device.calls.disarm();
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  CHECK(rdma.wrong == 0);
}

TEST_CASE("contents that can't be brought leave a watcher knowing that the memory is gone") {
  swap_rig r;
  address const b = r.take(mib);
  registrant rdma{.rig = &r};
  (void)must(r.pool->watch(b, rdma.callback()));
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  r.queues->copy_fails = [] { return true; };
  CHECK_FALSE(r.pool->swap_in(b, work));
  CHECK_FALSE(rdma.registered);
  r.queues->copy_fails = nullptr;
  must(r.pool->swap_in(b, work));
  CHECK(rdma.registered);
  CHECK(rdma.wrong == 0);
}

TEST_CASE("only swappable blocks are watched, and nobody is told of a block's end") {
  swap_rig r;
  registrant unheard{.rig = &r};
  address const small = r.take(1_KiB);
  CHECK(r.pool->watch(small, unheard.callback()).error().code == errc::unknown_pointer);
  CHECK(r.pool->unwatch(small, swap::watcher{1}).error().code == errc::unknown_pointer);
  address const b = r.take(mib);
  (void)must(r.pool->watch(b, unheard.callback()));
  must(r.pool->deallocate(b));
  CHECK(unheard.told == 0);
}

TEST_CASE("who begins to watch a block of which others know that it goes is told so at once") {
  swap_rig r;
  registrant first{.rig = &r};
  address const b = r.take(2 * mib);
  (void)must(r.pool->watch(b, first.callback()));
  must(r.pool->swap_out(b, work));
  r.device.calls.arm({.first = 0, .count = 1, .only = driver_call::unmap});
  CHECK_FALSE(r.pool->settle());
  r.device.calls.disarm();
  REQUIRE(r.state(b) == residency::leaving);
  int going = 0, come = 0;
  auto const hear = [&](address, bytes, swap::remapping what) -> result<void> {
    ++(what == swap::remapping::going ? going : come);
    return {};
  };
  auto const fail = [](address, bytes, swap::remapping) -> result<void> { return failure(errc::driver_failure, "no"); };
  CHECK(r.pool->watch(b, fail).error().code == errc::driver_failure);
  (void)must(r.pool->watch(b, hear));
  CHECK(going == 1);
  must(r.pool->settle());
  CHECK(r.state(b) == residency::absent);
  CHECK(going == 1);
  must(r.pool->swap_in(b, work));
  CHECK(come == 1);
}
