/// Groups of blocks that are paused and resumed, over a pager: what it does by itself leaves them alone, and what it is
/// told to do makes room.

#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "gmlake/swap/load.hpp"
#include "gmlake/swap/pager.hpp"
#include "tests/swap/paged_program.hpp"
#include "tests/swap/programs.hpp"
#include "tests/swap/swap_rig.hpp"

namespace gmlake::test {
namespace {

using swap::residency;
using swap::tag;
using pager = swap::pager<swap_rig::pool_type>;

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;
constexpr tag rollout{1}, training{2};

/// A block that an operation has made.
[[nodiscard]] address made(swap_rig& r, pager& memory, bytes n, tag group, unsigned char value) {
  address const at = must(memory.allocate(n, work, group));
  must(memory.access(at, work, false, true));
  r.fill(at, n, value);
  (void)memory.end_operation();
  return at;
}

/// All that a program makes by it is of one group.
struct grouped {
  pager* memory;
  tag group;

  [[nodiscard]] result<address> allocate(bytes n, stream on, tag, swap::job_id job) const noexcept {
    return memory->allocate(n, on, group, job);
  }
  template <class... A>
  auto deallocate(A... all) const noexcept {
    return memory->deallocate(all...);
  }
  template <class... A>
  auto access(A... all) const noexcept {
    return memory->access(all...);
  }
  template <class... A>
  auto end_operation(A... all) const noexcept {
    return memory->end_operation(all...);
  }
  template <class... A>
  void took(A... all) const noexcept {
    memory->took(all...);
  }
  template <class... A>
  void begin_step(A... all) const noexcept {
    memory->begin_step(all...);
  }
  template <class... A>
  auto may_go(A... all) const noexcept {
    return memory->may_go(all...);
  }
  template <class... A>
  auto set_recompute(A... all) const noexcept {
    return memory->set_recompute(std::move(all)...);
  }
};

TEST_CASE("all of a group can leave, whatever schedules would have stay") {
  swap::program p =
      swap::programs::scaled_to(swap::programs::cnn(1, {.stages = 2, .blocks = 2, .layers = 4}), 10e6, 60e6);
  for (swap::variable& v : p.variables) v.size = (v.size + 500'000) / 1'000'000 * mib;
  std::erase_if(p.variables, [](swap::variable const& v) { return v.size == 0; });
  bytes const limit = swap::peak_of(swap::loads_of(p)) * 3 / 4 / mib * mib;
  for (tag const group : {tag{}, training}) {
    swap_rig r({.device = 256_MiB, .host = 512_MiB});
    pager memory(*r.pool, {.limit = limit, .leave_mapped = false, .ahead = {}, .look_every = {}});
    grouped by{&memory, group};
    paged_program<grouped> run(by, p);
    for (int k = 0; k < 8; ++k) run.step();
    CHECK(memory.stats().steps_by_schedule >= 4);
    for (std::size_t i = 0; i < p.operations.size() / 2; ++i) (void)run.advance();
    std::size_t live = 0, stay = 0;
    for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
      if (run.at(v) == address{}) continue;
      ++live;
      if (!r.pool->residency_of(run.at(v))) ++stay;
    }
    CHECK(live > 0);
    if (group == tag{}) CHECK(stay > 0);  // so schedules do
    else CHECK(stay == 0);
    swap::pause_outcome const out = memory.pause(group);
    CHECK(out.stayed == 0);
    for (std::uint32_t v = 0; group != tag{} && v < p.variables.size(); ++v) {
      if (run.at(v) != address{}) CHECK(r.state(run.at(v)) == residency::absent);
    }
    run.step();
  }
}

TEST_CASE("what is small for the pager, but asked for or in a group, can leave") {
  swap_rig r({.device = 32 * mib});
  pager memory(*r.pool, {.limit = 32 * mib, .smallest = 4 * mib});
  address const small = must(memory.allocate(2 * mib, work));
  address const asked = must(memory.allocate(2 * mib, work, {}, {}, placement::movable));
  address const grouped = must(memory.allocate(2 * mib, work, training));
  address const large = must(memory.allocate(4 * mib, work));
  (void)memory.end_operation();
  CHECK_FALSE(memory.swap_out(small, work));
  for (address const at : {asked, grouped, large}) must(memory.swap_out(at, work));
  for (address const at : {small, asked, grouped, large}) must(memory.deallocate(at));
}

TEST_CASE("a paused group stays so when paging ends, and is resumed afterwards") {
  for (bool const keeping : {true, false}) {
    CAPTURE(keeping);
    swap_rig r({.device = 16 * mib});
    pager memory(*r.pool, {});
    (void)memory.stop();
    address const weights = must(memory.allocate(12 * mib, work, rollout));
    r.fill(weights, 12 * mib, 3);
    CHECK(memory.pause(rollout, keeping).moved == 12 * mib);
    memory.go_on();
    CHECK(memory.set_limit(10 * mib));
    memory.begin_step();
    address const other = made(r, memory, 8 * mib, training, 4);
    CHECK(must(r.pool->is_paused(weights)));
    CHECK_FALSE(must(r.pool->is_paused(other)));
    CHECK(memory.set_limit(16 * mib));
    swap::pause_outcome const ended = memory.stop();
    CHECK(ended.stayed == 0);
    CHECK(ended.moved == 8 * mib);
    CHECK(r.state(weights) == residency::absent);
    must(memory.deallocate(other));
    CHECK(memory.resume(rollout).moved == 12 * mib);
    CHECK_FALSE(must(r.pool->is_paused(weights)));
    if (keeping) CHECK(r.holds(weights, 12 * mib, 3));
    CHECK(memory.stop().moved == 12 * mib);
  }
}

TEST_CASE("an access ends a block's pause") {
  swap_rig r({.device = 16 * mib});
  pager memory(*r.pool, {});
  address const at = made(r, memory, 4 * mib, rollout, 5);
  CHECK(memory.pause(rollout).stayed == 0);
  must(memory.access(at, work, true, false));
  CHECK(r.holds(at, 4 * mib, 5));
  CHECK_FALSE(must(r.pool->is_paused(at)));
  (void)memory.end_operation();
  CHECK(r.pool->is_paused(at + 1).error().code == errc::unknown_pointer);
}

TEST_CASE("what an operation uses is not paused") {
  swap_rig r({.device = 16 * mib});
  pager memory(*r.pool, {});
  address const at = made(r, memory, 4 * mib, rollout, 6);
  address const idle = made(r, memory, 2 * mib, rollout, 7);
  must(memory.access(at, work, true, true));
  swap::pause_outcome const out = memory.pause(rollout);
  CHECK(out.stayed == 4 * mib);
  CHECK(out.moved == 2 * mib);
  CHECK(out.why.code == errc::invalid_argument);
  CHECK(r.state(at) == residency::mapped);
  CHECK(r.state(idle) == residency::absent);
  (void)memory.end_operation();
  CHECK(memory.pause(rollout).stayed == 0);
}

TEST_CASE("within a limit, what comes back by hand makes others leave") {
  for (int const how : {0, 1, 2, 3}) {
    CAPTURE(how);
    swap_rig r({.device = 16 * mib});
    pager memory(*r.pool, {.limit = 8 * mib});
    address const at = made(r, memory, 6 * mib, rollout, 1);
    CHECK(memory.pause(rollout).stayed == 0);
    address const idle = made(r, memory, 6 * mib, training, 2);
    if (how == 0) CHECK(memory.resume(rollout).stayed == 0);
    if (how == 1) must(memory.swap_in(at, work));
    if (how == 2) must(memory.prefetch(at));
    if (how == 3) must(memory.pin(at, work));
    must(r.pool->settle());
    CHECK(r.state(at) == residency::mapped);
    CHECK(r.holds(at, 6 * mib, 1));
    CHECK(r.state(idle) == residency::absent);
    if (how == 3) must(memory.unpin(at));
    must(memory.access(idle, work, true, false));
    CHECK(r.holds(idle, 6 * mib, 2));
    (void)memory.end_operation();
  }
}

TEST_CASE("a group that is resumed does not drive itself out") {
  swap_rig r({.device = 16 * mib});
  pager memory(*r.pool, {.limit = 8 * mib});
  for (unsigned char k = 1; k <= 3; ++k) (void)made(r, memory, 2 * mib, rollout, k);
  CHECK(memory.pause(rollout).stayed == 0);
  for (unsigned char k = 1; k <= 4; ++k) (void)made(r, memory, 2 * mib, training, k);
  swap::pause_outcome const out = memory.resume(rollout);
  CHECK(out.stayed == 0);
  CHECK(out.moved == 6 * mib);
  CHECK(memory.resume(training).moved == 8 * mib);
}

TEST_CASE("unpinning what the pager does not know is an error") {
  swap_rig r;
  address const at = r.take(2 * mib);
  must(r.pool->pin(at, work));
  pager memory(*r.pool, {});
  CHECK(memory.unpin(at).error().code == errc::unknown_pointer);
  must(r.pool->unpin(at));
}

TEST_CASE("a pause that keeps nothing gives back the host memory of what had left before") {
  for (bytes const file : {bytes{0}, 8 * mib}) {
    CAPTURE(file);
    swap_rig r({.host = 4 * mib + (file > 0 ? 2 * swap_rig::stage : 0), .file = file});
    address const a = r.take(4 * mib, work, rollout), b = r.take(4 * mib, work, training);
    must(r.pool->swap_out(a, work));
    must(r.pool->settle());
    CHECK(r.pool->pause(rollout, false).moved == 4 * mib);
    CHECK(r.pool->swaps().on_host == 0);
    CHECK(r.pool->swaps().on_file == 0);
    r.fill(b, 4 * mib, 9);
    must(r.pool->swap_out(b, work));
    must(r.pool->settle());
    must(r.pool->swap_in(a, work));
    must(r.pool->swap_in(b, work));
    CHECK(r.holds(b, 4 * mib, 9));
  }
}

TEST_CASE("contents that are discarded while they leave need no host memory afterwards") {
  swap_rig r;
  address const at = r.take(2 * mib);
  must(r.pool->swap_out(at, work));
  REQUIRE(r.state(at) == residency::leaving);
  must(r.pool->discard(at, work));
  must(r.pool->settle());
  CHECK(r.state(at) == residency::absent);
  CHECK(r.pool->swaps().on_host == 0);
  must(r.pool->swap_in(at, work));
}

TEST_CASE("a block that is pinned stays, whoever sends it away at that time") {
  swap_rig r;
  address const at = r.take(mib);
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      (void)r.pool->swap_out(at, work).has_value();
      (void)r.pool->settle().has_value();
    }
  });
  int away = 0, pins = 0;
  auto const until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < until) {
    if (!r.pool->pin(at, work)) continue;
    ++pins;
    residency const now = r.state(at);
    away += now == residency::absent || now == residency::leaving ? 1 : 0;
    must(r.pool->unpin(at));
  }
  over = true;
  other.join();
  CHECK(pins > 0);
  CHECK(away == 0);
}

}  // namespace
}  // namespace gmlake::test
