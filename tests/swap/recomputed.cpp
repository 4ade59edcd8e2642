/// Blocks whose contents can be made again are discarded by schedule where the channel does not suffice, and whoever
/// wants one finds the contents.

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gmlake/swap/load.hpp"
#include "gmlake/swap/pager.hpp"
#include "tests/swap/paged_program.hpp"
#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::pager_options;
using swap::residency;

namespace {

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;
constexpr std::uint32_t layers = 12;
constexpr std::uint32_t input = layers;  ///< carried, which every recomputation reads
using pager = swap::pager<swap_rig::pool_type>;

/// Each layer leaves an activation of 1 MiB for the way back, which takes three operations' time to move, each way, and
/// half of one to be made again from the input.
[[nodiscard]] swap::program network() {
  swap::program p{std::vector<swap::time>(2 * std::size_t{layers}, swap::time(350'000)), {}};
  for (std::uint32_t i = 0; i < layers; ++i) {
    std::uint32_t const back = 2 * layers - 1 - i;
    p.variables.push_back({.size = mib,
                           .birth = i,
                           .death = back + 1,
                           .recompute = swap::time(150'000),
                           .accesses = {{i, false, true}, {back, true, false}}});
  }
  swap::variable& in = p.variables.emplace_back();
  in = {.size = mib, .birth = 0, .death = 2 * layers, .carried = true, .accesses = {}};
  for (std::uint32_t i = 0; i < 2 * layers; ++i) in.accesses.push_back({i, true, false});
  return p;
}

[[nodiscard]] pager_options options(bytes limit = 7 * mib) {
  pager_options o;
  o.limit = limit;
  o.channel = {{swap::time(0), 1'000'000'000}, {swap::time(0), 1'000'000'000}};
  o.ahead = {};
  o.look_every = {};
  return o;
}

struct recompute_rig : swap_rig {
  explicit recompute_rig(pager_options const& o = options()) : swap_rig({.device = 64_MiB, .host = 64_MiB}) {
    queues->at_a_look = [] { return std::size_t{1}; };
    memory = std::make_unique<pager>(*pool, o);
    run = std::make_unique<paged_program<pager>>(*memory, network());
    run->inputs_of = [](std::uint32_t) { return std::vector<std::uint32_t>{input}; };
  }
  /// Until the step that is running has discarded something; which.
  [[nodiscard]] std::uint32_t discard_one() {
    for (int k = 0; k < 3; ++k) run->step();
    auto const before = memory->stats().discarded;
    while (memory->stats().discarded == before) (void)run->advance();
    for (std::uint32_t v = 0; v < layers; ++v) {
      if (run->at(v) != address{} && state(run->at(v)) == residency::absent) return v;
    }
    FAIL("nothing is absent");
    return 0;
  }

  std::unique_ptr<pager> memory;
  std::unique_ptr<paged_program<pager>> run;
};

}  // namespace

TEST_CASE("what a schedule discards is made again when it is accessed, and nothing of it is copied") {
  recompute_rig r;
  for (int k = 0; k < 4; ++k) r.run->step();
  REQUIRE(r.memory->expected());
  std::uint32_t const foreseen = r.memory->expected()->recomputed;
  REQUIRE(foreseen > 0);
  swap::pager_stats const before = r.memory->stats();
  swap::swap_stats const moved_before = r.pool->swaps();
  for (int k = 0; k < 3; ++k) r.run->step();
  swap::pager_stats const s = r.memory->stats();
  CHECK(s.steps_by_schedule == before.steps_by_schedule + 3);
  CHECK(s.discarded == before.discarded + 3 * std::uint64_t{foreseen});
  CHECK(s.recomputed == before.recomputed + 3 * std::uint64_t{foreseen});
  CHECK(s.misses == before.misses);
  CHECK(s.evictions == before.evictions);
  swap::swap_stats const moved = r.pool->swaps();
  CHECK(moved.copied_out - moved_before.copied_out == 3 * r.memory->expected()->out);
  CHECK(r.on_device->account().reserved <= 7 * mib);
}

TEST_CASE("without recomputation the same step is expected to take longer") {
  recompute_rig with;
  recompute_rig without;
  for (swap::variable& v : without.run->program().variables) v.recompute = {};
  for (int k = 0; k < 3; ++k) {
    with.run->step();
    without.run->step();
  }
  REQUIRE(with.memory->expected());
  REQUIRE(without.memory->expected());
  CHECK(without.memory->expected()->recomputed == 0);
  CHECK(without.memory->stats().discarded == 0);
  CHECK(with.memory->expected()->step < without.memory->expected()->step);
}

TEST_CASE("whoever wants discarded contents by hand has them made again") {
  recompute_rig r;
  std::uint32_t const v = r.discard_one();
  address const at = r.run->at(v);
  auto const made = r.memory->stats().recomputed;
  SUBCASE("pin") {
    must(r.memory->pin(at, work));
    must(r.memory->unpin(at));
  }
  SUBCASE("swap_in") { must(r.memory->swap_in(at, work)); }
  SUBCASE("access") {
    must(r.memory->access(at, work, true, false));
    (void)r.memory->end_operation();
  }
  SUBCASE("resume, and access") {
    CHECK(r.memory->resume(swap::tag{}).stayed == 0);
    CHECK(r.memory->stats().recomputed == made);
    must(r.memory->access(at, work, true, false));
    (void)r.memory->end_operation();
  }
  CHECK(r.memory->stats().recomputed == made + 1);
  r.run->touch(v);
  CHECK(r.memory->stats().recomputed == made + 1);
}

TEST_CASE("a copy of a block without its contents is never taken for them") {
  recompute_rig r;
  std::uint32_t const v = r.discard_one();
  address const at = r.run->at(v);
  CHECK(r.memory->resume(swap::tag{}).stayed == 0);
  std::memset(to_pointer(at), 0, mib);
  CHECK(r.memory->pause(swap::tag{}).stayed == 0);
  must(r.memory->set_read_only(at, true));
  CHECK(r.memory->resume(swap::tag{}).stayed == 0);
  r.run->touch(v);
  must(r.memory->swap_out(at, work));
  must(r.pool->settle());
  CHECK(r.state(at) == residency::absent);
  r.run->touch(v);
}

TEST_CASE("after a stop all contents are there") {
  recompute_rig r(options());
  std::uint32_t const v = r.discard_one();
  CHECK_FALSE(r.memory->set_recompute(r.run->at(v), {}, {}));  // it would be lost
  auto const made = r.memory->stats().recomputed;
  CHECK(r.memory->set_limit(40 * mib));
  CHECK(r.memory->stop().stayed == 0);
  CHECK(r.memory->stats().recomputed > made);
  r.run->touch(v);
  r.memory->go_on();
}

TEST_CASE("a recomputation that fails is the access's error, and is tried again") {
  recompute_rig r;
  std::uint32_t const v = r.discard_one();
  int failures = 0;
  r.run->recompute_fails = [&] { return failures++ == 0; };
  result<void> const done = r.memory->access(r.run->at(v), work, true, false);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::driver_failure);
  (void)r.memory->end_operation();
  r.run->touch(v);
  CHECK(failures == 2);
  r.run->step();
}

TEST_CASE("a write ends it: what was written is copied, not made again") {
  recompute_rig r;
  address const at = must(r.memory->allocate(mib, work));
  must(r.memory->access(at, work, false, true));
  stamp(at, mib, 1);
  int calls = 0;
  auto const how = [&](address, bytes, stream) -> result<void> {
    ++calls;
    return {};
  };
  must(r.memory->set_recompute(at, how, swap::time(1)));
  must(r.memory->access(at, work, true, true));
  stamp(at, mib, 2);
  (void)r.memory->end_operation();
  must(r.memory->swap_out(at, work));
  must(r.memory->access(at, work, true, false));
  CHECK(stamped(at, mib, 2));
  CHECK(calls == 0);
  CHECK_FALSE(r.memory->set_recompute(at, how, swap::time(0)));
  must(r.memory->set_recompute(address{77}, how, swap::time(1)));  // no effect
  (void)r.memory->end_operation();
  must(r.memory->deallocate(at));
}

TEST_CASE("a callback may allocate, and can neither free its block, end the operation nor want itself") {
  recompute_rig r;
  std::uint32_t const v = r.discard_one();
  address const at = r.run->at(v);
  address scratch{};
  must(r.memory->set_recompute(
      at,
      [&](address block, bytes n, stream on) -> result<void> {
        CHECK(block == at);
        CHECK(n == mib);
        scratch = must(r.memory->allocate(mib, on));
        must(r.memory->access(scratch, on, false, true));
        CHECK(r.memory->deallocate(block).error().code == errc::invalid_argument);
        auto const number = r.memory->end_operation();
        CHECK(r.memory->end_operation() == number);
        must(r.memory->access(block, on, false, true));
        stamp(block, n, 7);
        return {};
      },
      swap::time(100)));
  must(r.memory->access(at, work, true, false));
  CHECK(stamped(at, mib, 7));
  CHECK(r.state(scratch) == residency::mapped);
  (void)r.memory->end_operation();
  must(r.memory->deallocate(scratch));
}

TEST_CASE("what recomputations allocate and use makes no other step of one") {
  recompute_rig r(options(8 * mib));
  r.run->inputs_of = [&](std::uint32_t) {
    address const scratch = must(r.memory->allocate(256_KiB, work));
    must(r.memory->access(scratch, work, false, true));
    must(r.memory->deallocate(scratch));
    return std::vector<std::uint32_t>{input};
  };
  for (int k = 0; k < 3; ++k) r.run->step();
  swap::pager_stats const before = r.memory->stats();
  for (int k = 0; k < 3; ++k) r.run->step();
  CHECK(r.memory->stats().recomputed > before.recomputed);
  CHECK(r.memory->stats().steps_by_schedule == before.steps_by_schedule + 3);
  CHECK(r.memory->stats().departures == 0);
}

TEST_CASE("two threads that want a discarded block have it made once") {
  recompute_rig r;
  std::uint32_t const v = r.discard_one();
  address const at = r.run->at(v);
  auto const made = r.memory->stats().recomputed;
  std::atomic<int> there{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k) {
    threads.emplace_back([&] {
      if (r.memory->access(at, work, true, false)) ++there;
      (void)r.memory->end_operation();
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(there == 2);
  CHECK(r.memory->stats().recomputed == made + 1);
  r.run->touch(v);
}
