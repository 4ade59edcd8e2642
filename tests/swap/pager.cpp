/// A program keeps to a limit below its peak, on demand and by schedule, with every byte right.

#include "gmlake/swap/pager.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "gmlake/swap/least_recent.hpp"
#include "gmlake/swap/load.hpp"
#include "tests/swap/paged_program.hpp"
#include "tests/swap/programs.hpp"
#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::pager_options;
using swap::residency;

namespace {

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;
using pager = swap::pager<swap_rig::pool_type>;

/// With sizes in whole chunks, at a peak of about so many.
[[nodiscard]] swap::program in_chunks(swap::program p, double chunks) {
  p = swap::programs::scaled_to(std::move(p), 10e6, chunks * 1e6);
  for (swap::variable& v : p.variables) v.size = (v.size + 500'000) / 1'000'000 * mib;
  std::erase_if(p.variables, [](swap::variable const& v) { return v.size == 0; });
  return p;
}

[[nodiscard]] swap::program small_cnn(std::uint32_t seed, double chunks = 60) {
  return in_chunks(swap::programs::cnn(seed, {.stages = 2, .blocks = 2, .layers = 4}), chunks);
}

[[nodiscard]] pager_options options(bytes limit) { return {.limit = limit, .ahead = {}, .look_every = {}}; }

struct pager_rig : swap_rig {
  explicit pager_rig(pager_options const& o, bytes device_size = 256_MiB)
      : swap_rig({.device = device_size, .host = 512_MiB}) {
    queues->at_a_look = [] { return std::size_t{1}; };
    memory = std::make_unique<pager>(*pool, o);
  }
  /// Written by the operation that this thread runs.
  [[nodiscard]] address take(bytes n, std::uint64_t value, swap::tag group = {}) {
    address const at = must(memory->allocate(n, work, group));
    must(memory->access(at, work, false, true));
    stamp(at, n, value);
    return at;
  }
  [[nodiscard]] bytes reserved() { return device.device().created_bytes(); }
  std::unique_ptr<pager> memory;
};

}  // namespace

TEST_CASE("a request that finds no memory sends away what was used least recently") {
  pager_rig r(options(4 * mib));
  address const a = r.take(2 * mib, 1);
  (void)r.memory->end_operation();
  address const b = r.take(2 * mib, 2);
  (void)r.memory->end_operation();
  must(r.memory->access(a, work, true, false));
  (void)r.memory->end_operation();
  address const c = r.take(2 * mib, 3);
  CHECK(r.state(a) == residency::mapped);
  CHECK(r.state(b) == residency::absent);
  (void)r.memory->end_operation();
  must(r.memory->access(b, work, true, false));
  CHECK(stamped(b, 2 * mib, 2));
  CHECK(r.state(a) == residency::absent);
  swap::pager_stats const s = r.memory->stats();
  CHECK(s.evictions == 2);
  CHECK(s.misses == 1);
  CHECK(s.host_waits >= 2);
  for (address x : {a, b, c}) must(r.memory->deallocate(x));
}

TEST_CASE("what a running operation uses stays, and too little memory for one is an error that loses nothing") {
  pager_rig r(options(4 * mib));
  address const a = r.take(2 * mib, 1);
  address const b = r.take(2 * mib, 2);
  result<address> const none = r.memory->allocate(mib, work);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::out_of_memory);
  CHECK(none.error().account.limit == 4 * mib);
  (void)r.memory->end_operation();
  must(r.memory->access(a, work, true, false));
  address const c = must(r.memory->allocate(2 * mib, work));
  CHECK(r.state(a) == residency::mapped);
  CHECK(r.memory->access(b, work, true, false).error().code == errc::out_of_memory);
  CHECK(r.state(b) == residency::absent);
  (void)r.memory->end_operation();
  must(r.memory->deallocate(c));
  must(r.memory->access(b, work, true, false));
  CHECK(stamped(b, 2 * mib, 2));
  must(r.memory->access(address{77}, work, true, true));
}

TEST_CASE("all that an operation uses is announced at once, up to the first error") {
  pager_rig r(options(4 * mib));
  std::vector<address> blocks;
  for (std::uint64_t i = 0; i < 4; ++i) {
    blocks.push_back(r.take(2 * mib, i));
    (void)r.memory->end_operation();
  }
  using uses = std::vector<swap::block_use>;
  must(r.memory->access(uses{{blocks[1], true, false}, {blocks[3], true, true}}, work));
  CHECK(stamped(blocks[1], 2 * mib, 1));
  CHECK(stamped(blocks[3], 2 * mib, 3));
  (void)r.memory->end_operation();

  uses const too_much{{blocks[0], true, false}, {blocks[2], true, false}, {blocks[1], true, false}};
  CHECK(r.memory->access(too_much, work).error().code == errc::out_of_memory);
  CHECK(stamped(blocks[0], 2 * mib, 0));
  CHECK(stamped(blocks[2], 2 * mib, 2));
  CHECK_FALSE(r.memory->allocate(2 * mib, work));  // for both stay
  (void)r.memory->end_operation();
  must(r.memory->access(blocks[1], work, true, false));
  CHECK(stamped(blocks[1], 2 * mib, 1));
  (void)r.memory->end_operation();
  for (address x : blocks) must(r.memory->deallocate(x));
}

TEST_CASE("on demand, programs keep to a limit") {
  for (double const share : {0.9, 0.7, 0.5}) {
    CAPTURE(share);
    swap::program const p = small_cnn(1);
    bytes const peak = swap::peak_of(swap::loads_of(p));
    bytes const limit = static_cast<bytes>(share * static_cast<double>(peak)) / mib * mib;
    pager_options o = options(limit);
    o.schedules = false;
    pager_rig r(o);
    paged_program<pager> run(*r.memory, p);
    run.after_each = [&] { REQUIRE(r.reserved() <= limit); };
    for (int k = 0; k < 4; ++k) run.step();
    CHECK(r.memory->stats().evictions > 0);
    CHECK(r.memory->stats().plans_made == 0);
  }
}

TEST_CASE("from the third step on, a program follows a schedule and misses nothing") {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    for (double const share : {0.9, 0.75, 0.6}) {
      CAPTURE(seed);
      CAPTURE(share);
      swap::program const p = small_cnn(seed);
      bytes const peak = swap::peak_of(swap::loads_of(p));
      bytes const limit = static_cast<bytes>(share * static_cast<double>(peak)) / mib * mib;
      pager_rig r(options(limit));
      paged_program<pager> run(*r.memory, p);
      run.after_each = [&] { REQUIRE(r.reserved() <= limit); };
      run.step();
      run.step();
      CHECK_FALSE(r.memory->expected());
      run.step();
      REQUIRE(r.memory->expected());
      CHECK(r.memory->expected()->moves > 0);
      CHECK(r.memory->stats().plans_made == 1);
      run.step();
      swap::pager_stats const before = r.memory->stats();
      for (int k = 0; k < 3; ++k) run.step();
      swap::pager_stats const s = r.memory->stats();
      CHECK(s.planned_out > before.planned_out);
      CHECK(s.misses == before.misses);
      CHECK(s.departures == 0);
      CHECK(s.steps_by_schedule == before.steps_by_schedule + 3);
    }
  }
}

TEST_CASE("weights, their states and what is frozen leave by schedule too, over the step's end") {
  for (bool const frozen : {false, true}) {
    CAPTURE(frozen);
    swap::programs::transformer_shape const shape{
        .layers = 3, .weight = 100e6, .activation = 50e6, .frozen = frozen, .step_ns = 10e6};
    swap::program const p = in_chunks(swap::programs::transformer(5, shape), 80);
    bytes const peak = swap::peak_of(swap::loads_of(p));
    bytes const limit = peak * 6 / 10 / mib * mib;
    pager_rig r(options(limit));
    paged_program<pager> run(*r.memory, p);
    for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
      if (p.variables[v].has_copy) must(r.memory->set_read_only(run.at(v), true));
    }
    run.after_each = [&] { REQUIRE(r.reserved() <= limit); };
    for (int k = 0; k < 5; ++k) run.step();
    swap::pager_stats const before = r.memory->stats();
    bytes const copied = r.pool->swaps().copied_out;
    for (int k = 0; k < 3; ++k) run.step();
    swap::pager_stats const s = r.memory->stats();
    CHECK(s.planned_out > before.planned_out);
    CHECK(s.misses == before.misses);
    CHECK(s.steps_by_schedule == before.steps_by_schedule + 3);
    if (frozen) CHECK(r.pool->swaps().copied_out - copied < (s.planned_out - before.planned_out) * mib);
  }
}

TEST_CASE(
    "schedules leave room for the most that is too small to move, or where that is logged, for what is there when") {
  constexpr bytes small = mib / 2;
  swap::program p = small_cnn(3);
  for (int k = 0; k < 8; ++k) p.variables.push_back({.size = small, .birth = 0, .death = 2, .accesses = {{0}, {1}}});
  bytes const limit = swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib;
  std::vector<bytes> targets;
  for (bytes const logged : {mib, 64_KiB}) {
    pager_options o = options(limit);
    o.smallest = mib;
    o.smallest_logged = logged;
    pager_rig r(o);
    paged_program<pager> run(*r.memory, p);
    run.after_each = [&] { REQUIRE(r.reserved() <= limit); };
    for (int k = 0; k < 4; ++k) run.step();
    auto const expected = r.memory->expected();
    REQUIRE(expected);
    targets.push_back(expected->target);
  }
  CHECK(targets[0] + 8 * small <= targets[1]);
  CHECK(targets[1] <= limit);
}

/// Of the program's blocks.
[[nodiscard]] std::size_t mapped_while_absent(pager_rig& r, paged_program<pager>& run) {
  std::size_t n = 0;
  for (std::uint32_t v = 0; v < run.program().variables.size(); ++v) {
    if (run.at(v) == address{}) continue;
    result<residency> const now = r.pool->residency_of(run.at(v));  // unknown to the pool where it never moves
    if (!now || *now != residency::absent) continue;
    n += r.device.beneath(run.at(v), 1).empty() ? 0 : 1;
  }
  return n;
}

TEST_CASE("what a schedule has moved for some steps stays mapped while it is away, until the program departs") {
  swap::program const p = small_cnn(4, 120);
  bytes const limit = swap::peak_of(swap::loads_of(p)) * 6 / 10 / mib * mib;
  pager_rig r(options(limit));
  paged_program<pager> run(*r.memory, p);
  auto const calls_of_a_step = [&] {
    auto const before = r.device.calls.calls();
    run.step();
    return r.device.calls.calls() - before;
  };
  while (r.memory->stats().steps_by_schedule == 0 && r.memory->stats().steps < 20) run.step();
  std::size_t const unmapping = calls_of_a_step();
  for (int k = 0; k < 8; ++k) run.step();
  std::size_t const leaving = calls_of_a_step();
  CAPTURE(unmapping);
  CHECK(leaving * 2 < unmapping);
  CHECK(r.memory->stats().departures == 0);

  std::size_t most = 0;
  auto const half = static_cast<std::uint32_t>(p.operations.size() / 2);
  run.after_each = [&] { most = std::max(most, mapped_while_absent(r, run)); };
  run.step(half);
  CHECK(most > 0);
  run.after_each = [] {};
  (void)run.advance();
  run.touch(0);  // nobody has foreseen that
  CHECK(r.memory->stats().departures >= 1);
  CHECK(mapped_while_absent(r, run) == 0);
}

TEST_CASE(
    "what a schedule made anew for the same steps moves as the one before did stays mapped from the beginning on") {
  swap::program const p = small_cnn(4, 120);
  pager_options o = options(swap::peak_of(swap::loads_of(p)) * 6 / 10 / mib * mib);
  o.better = -2;  // what is made anew is taken
  pager_rig r(o);
  paged_program<pager> run(*r.memory, p);
  for (int k = 0; k < 12; ++k) run.step();
  REQUIRE(r.memory->stats().plans_made == 1);
  std::size_t most = 0;
  run.after_each = [&] {
    if (r.memory->stats().plans_made > 1) most = std::max(most, mapped_while_absent(r, run));
  };
  for (int k = 0; k < 20 && r.memory->stats().plans_made == 1; ++k) run.step(~0u, 1.2);
  CHECK(r.memory->stats().plans_made == 2);
  CHECK(most > 0);
  run.touch(0);
  CHECK(r.memory->stats().departures >= 1);
  CHECK(mapped_while_absent(r, run) == 0);
}

TEST_CASE("a step that does something else goes on demand, and nothing is wrong") {
  swap::program const p = small_cnn(2);
  bytes const limit = swap::peak_of(swap::loads_of(p)) * 6 / 10 / mib * mib;
  pager_rig r(options(limit));
  paged_program<pager> run(*r.memory, p);
  run.after_each = [&] { REQUIRE(r.reserved() <= limit); };
  for (int k = 0; k < 4; ++k) run.step();
  CHECK(r.memory->stats().departures == 0);

  auto const half = static_cast<std::uint32_t>(p.operations.size() / 2);
  run.step(half);  // ends early
  run.step();
  CHECK(r.memory->stats().departures == 1);
  CHECK(r.memory->stats().steps_by_schedule >= 1);
  for (auto const& change : {+[](swap::program& q) { q.variables[q.variables.size() / 2].size += mib; },
                             +[](swap::program& q) { q.operations.push_back(q.operations.back()); },
                             +[](swap::program& q) { q.variables[3].accesses.pop_back(); }}) {
    swap::program const old = run.program();
    std::uint64_t const before = r.memory->stats().departures;
    change(run.program());
    run.step();
    run.step();
    CHECK(r.memory->stats().departures > before);
    run.step();
    std::uint64_t const whole = r.memory->stats().steps_by_schedule;
    run.step();  // it has come twice, and is followed
    run.step();
    CHECK(r.memory->stats().steps_by_schedule >= whole + 1);
    run.program() = old;
    run.step();
    run.step();
  }
}

TEST_CASE("programs in turn keep their plans side by side") {
  swap::program const a = small_cnn(2), b = small_cnn(3, 50);
  bytes const limit = swap::peak_of(swap::loads_of(a)) * 65 / 100 / mib * mib;
  pager_rig r(options(limit));
  paged_program<pager> one(*r.memory, a), other(*r.memory, b);
  for (int k = 0; k < 4; ++k) {
    one.step();
    other.step();
  }
  swap::pager_stats const before = r.memory->stats();
  for (int k = 0; k < 3; ++k) {
    one.step();
    other.step();
  }
  swap::pager_stats const s = r.memory->stats();
  CHECK(s.plans_made == before.plans_made);
  CHECK(s.departures == before.departures);
  CHECK(s.steps_by_schedule == before.steps_by_schedule + 6);
  CHECK(s.misses == before.misses);
  // One of them twice: the other's plan is left at its beginning for the right one.
  one.step();
  one.step();
  CHECK(r.memory->stats().misses == before.misses);
}

TEST_CASE("of steps of two kinds in turn each leaves mapped what it moves, while it runs") {
  swap::program const a = small_cnn(4, 120), b = small_cnn(3, 50);
  pager_rig r(options(swap::peak_of(swap::loads_of(a)) * 6 / 10 / mib * mib));
  paged_program<pager> one(*r.memory, a), other(*r.memory, b);
  std::size_t most = 0;
  one.after_each = [&] { most = std::max(most, mapped_while_absent(r, one)); };
  for (int k = 0; k < 4; ++k) {
    one.step();
    other.step();
  }
  CHECK(most == 0);
  for (int k = 0; k < 4; ++k) {
    CHECK(mapped_while_absent(r, one) + mapped_while_absent(r, other) == 0);
    one.step();
    other.step();
  }
  CHECK(most > 0);
  CHECK(r.memory->stats().plans_made == 2);
}

TEST_CASE("a step is planned again when its operations take another time") {
  swap::program const p = small_cnn(2);
  bytes const limit = swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib;
  pager_rig r(options(limit));
  paged_program<pager> run(*r.memory, p);
  for (int k = 0; k < 5; ++k) run.step();
  CHECK(r.memory->stats().plans_made == 1);
  swap::time const before = r.memory->expected()->step;
  for (int k = 0; k < 20; ++k) run.step(~0u, 2);
  // The old schedule does for that too: only what is expected of it changes.
  CHECK(r.memory->stats().plans_made == 1);
  CHECK(r.memory->stats().plans_kept >= 1);
  CHECK(r.memory->stats().plans_kept < 5);
  CHECK(r.memory->expected()->step > before * 3 / 2);
}

TEST_CASE("a step is planned again when copies take another time, for what they take") {
  swap::program const p = small_cnn(2);
  pager_rig r(options(swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib));
  r.queues->bytes_per_second = r.memory->link().out.bytes_per_second;  // as calibrated
  paged_program<pager> run(*r.memory, p);
  for (int k = 0; k < 20; ++k) run.step();
  swap::pager_stats const before = r.memory->stats();
  swap::forecast const expected = *r.memory->expected();
  CHECK(before.plans_made + before.plans_kept == 1);
  r.queues->bytes_per_second /= 100;
  for (int k = 0; k < 20; ++k) run.step();
  for (swap::lane const& l : {r.memory->link().out, r.memory->link().in}) {
    CHECK(l.bytes_per_second == doctest::Approx(static_cast<double>(r.queues->bytes_per_second)).epsilon(0.01));
  }
  swap::pager_stats const after = r.memory->stats();
  CHECK(after.plans_made + after.plans_kept > 1);
  CHECK(after.plans_made + after.plans_kept < 6);
  CHECK(r.memory->expected()->step > expected.step);
  CHECK(r.memory->expected()->least > expected.least);
}

TEST_CASE("a plan made anew takes the place of the one before where it does better, by as much as is asked for") {
  swap::program const p = small_cnn(2);
  pager_options o = options(swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib);
  SUBCASE("") { o.better = -2; }
  SUBCASE("here it does not") {}
  pager_rig r(o);
  paged_program<pager> run(*r.memory, p);
  for (int k = 0; k < 5; ++k) run.step();
  for (int k = 0; k < 20; ++k) run.step(~0u, 2);
  CHECK((r.memory->stats().plans_made > 1) == (o.better < 0));
  CHECK((r.memory->stats().plans_kept > 0) == (o.better > 0));
}

TEST_CASE("a step that was planned by guessed times is planned again by measured ones, and these stand") {
  swap::program const p = small_cnn(2);
  bytes const limit = swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib;
  pager_rig r(options(limit));
  paged_program<pager> run(*r.memory, p);
  run.guesses = true;
  for (int k = 0; k < 5; ++k) run.step(~0u, 0.5);
  CHECK(r.memory->stats().plans_made == 1);
  swap::time const by_guess = r.memory->expected()->step - r.memory->expected()->stalled;
  run.guesses = false;
  run.step();
  run.guesses = true;
  for (int k = 0; k < 5; ++k) run.step(~0u, 0.5);
  CHECK(r.memory->stats().plans_made + r.memory->stats().plans_kept == 2);
  swap::time const measured = r.memory->expected()->step - r.memory->expected()->stalled;
  CHECK(measured > by_guess * 19 / 10);
  CHECK(measured < by_guess * 21 / 10);
}

namespace {

/// What a pager with a clock reads.
std::atomic<swap::time::rep> clock_ns{0};
swap::time::rep passes_when_read = 0;
[[nodiscard]] swap::time read_clock() noexcept { return swap::time(clock_ns += passes_when_read); }

/// Steps that take 100 ms until they are planned again, and so long afterwards; the pager's figures then.
[[nodiscard]] swap::pager_stats planned_again(swap::time after, int steps) {
  swap::program const p = small_cnn(2);
  pager_options o = options(swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib);
  o.clock = read_clock;
  o.better = -2;
  pager_rig r(o);
  paged_program<pager> run(*r.memory, p);
  auto const step = [&](swap::time takes, double slower) {
    run.step(~0u, slower);
    clock_ns += takes.count();
  };
  using namespace std::chrono_literals;
  for (int k = 0; k < 20; ++k) step(100ms, 1);
  REQUIRE(r.memory->stats().plans_made == 1);
  step(100ms, 2);  // which is a quarter more on average, as it stays
  step(100ms, 1.25);
  REQUIRE(r.memory->stats().plans_made == 2);
  for (int k = 0; k < steps; ++k) step(after, 1.25);
  return r.memory->stats();
}

}  // namespace

TEST_CASE("a plan made anew that makes steps longer is given up for the one before, which stays") {
  using namespace std::chrono_literals;
  swap::pager_stats const s = planned_again(120ms, 20);
  CHECK(s.plans_reverted == 1);
  CHECK(s.departures == 0);
}

TEST_CASE("one that makes steps no longer stays, and so does any before it has settled") {
  using namespace std::chrono_literals;
  CHECK(planned_again(100ms, 20).plans_reverted == 0);
  CHECK(planned_again(80ms, 20).plans_reverted == 0);
  CHECK(planned_again(120ms, 8).plans_reverted == 0);
}

namespace {

/// What steps by schedule take of what the first one says: as they are at first, as they wait for what is mapped, as
/// the host is taken to hold them up besides, and as they are after eighty of them.
struct shares {
  double plain = 1, waiting = 1, host_bound = 1, later = 1;
};

/// The pager's figures after 17 and 110 such steps.
[[nodiscard]] std::pair<swap::pager_stats, swap::pager_stats> held_up(shares const& of) {
  swap::program const p = small_cnn(2);
  pager_options o = options(swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib);
  o.clock = read_clock;
  pager_rig r(o);
  paged_program<pager> run(*r.memory, p);
  int done = 0;
  double by_schedule = 0;  // the first one
  auto const steps = [&](int n) {
    for (int k = 0; k < n; ++k, ++done) {
      auto const before = r.memory->stats();
      run.step();
      auto const now = r.memory->stats();
      if (by_schedule == 0 && r.memory->expected()) {
        by_schedule = static_cast<double>(r.memory->expected()->step.count());
      }
      // What it takes is told when the next one begins, and which way it went then.
      double share = done < 80 ? of.plain : of.later;
      if (now.steps_waiting > before.steps_waiting) share = of.waiting;
      if (now.steps_host_bound > before.steps_host_bound) share = of.host_bound;
      clock_ns += static_cast<swap::time::rep>(by_schedule * share);
    }
    return r.memory->stats();
  };
  swap::pager_stats const early = steps(17);
  return {early, steps(93)};
}

}  // namespace

TEST_CASE("where steps take longer than their schedule, whether they take less where the host holds them up is tried") {
  auto const [early, late] = held_up({.plain = 1.2, .waiting = 1.2, .host_bound = 1.1, .later = 1.2});
  CHECK(early.steps_host_bound == 0);
  CHECK(early.steps_waiting == 0);
  CHECK(late.steps_host_bound > 80);
  CHECK(late.steps_by_schedule > 100);
  CHECK(late.plans_made == 2);  // one of them knows when operations are launched
  CHECK(late.plans_reverted == 0);
}

TEST_CASE("and given up where they don't, for the plan before") {
  for (double const share : {1.2, 1.25, 1.3}) {
    CAPTURE(share);
    swap::pager_stats const late = held_up({1.2, 1.2, share, 1.2}).second;
    CHECK(late.steps_host_bound == (share < 1.3 ? 30 : 14));  // sooner where they take longer by far
    CHECK(late.plans_reverted == 1);
  }
}

TEST_CASE("of which the same is expected as when it was left, by the times that were known by then") {
  swap::program const p = small_cnn(2);
  pager_options o = options(swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib);
  o.clock = read_clock;
  pager_rig r(o);
  paged_program<pager> run(*r.memory, p);
  for (int k = 0; k < 5; ++k) run.step();
  swap::time const at_first = r.memory->expected()->step;
  swap::forecast left = *r.memory->expected();
  for (int k = 0; k < 80 && r.memory->stats().plans_reverted == 0; ++k) {
    std::uint64_t const tried = r.memory->stats().steps_host_bound;
    if (r.memory->stats().plans_made == 1) left = *r.memory->expected();
    run.step(~0u, 2);  // for which the plan is kept
    bool const tries = r.memory->stats().steps_host_bound > tried;
    clock_ns += static_cast<swap::time::rep>((tries ? 1.5 : 1.2) * static_cast<double>(left.step.count()));
  }
  REQUIRE(r.memory->stats().plans_reverted == 1);
  CHECK(left.step > at_first * 3 / 2);
  CHECK(r.memory->expected()->step == left.step);
  CHECK(r.memory->expected()->least == left.least);
}

TEST_CASE("nor is it tried where launches alone are to take as long") {
  swap::program const p = small_cnn(2);
  pager_options o = options(swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib);
  o.clock = read_clock;
  // All that passes does while operations are launched, and more lately.
  auto const after = [&](double lately) {
    pager_rig r(o);
    paged_program<pager> run(*r.memory, p);
    for (int k = 0; k < 110; ++k) {
      swap::time::rep const began = clock_ns;
      if (k == 4) passes_when_read = 1;
      run.step();
      if (k == 4) {
        auto const expected = static_cast<double>(r.memory->expected()->step.count());
        passes_when_read = static_cast<swap::time::rep>(1.2 * expected / static_cast<double>(clock_ns - began));
      }
      if (k == 18) passes_when_read = static_cast<swap::time::rep>(static_cast<double>(passes_when_read) * lately);
    }
    passes_when_read = 0;
    return r.memory->stats();
  };
  swap::pager_stats const s = after(2);
  CHECK(s.steps_by_schedule > 100);
  CHECK(s.steps_host_bound == 0);
  CHECK(s.plans_kept == 1);
  CHECK(s.plans_made == 1);
  CHECK(after(1).steps_host_bound > 0);
}

TEST_CASE("then whether they take less when they only wait for what is mapped") {
  swap::pager_stats const late = held_up({.plain = 1.2, .waiting = 1.08, .host_bound = 1.2, .later = 1.2}).second;
  CHECK(late.steps_host_bound == 30);
  CHECK(late.steps_waiting > 30 + 20);
  CHECK(late.plans_reverted == 1);
}

TEST_CASE("which is given up where they don't") {
  CHECK(held_up({1.2, 1.2, 1.2, 1.2}).second.steps_waiting == 30 + 14);
  CHECK(held_up({1.2, 1.3, 1.2, 1.2}).second.steps_waiting == 30 + 14);
}

TEST_CASE("and where they take less without it once more, after they have settled") {
  CHECK(held_up({.plain = 1.2, .waiting = 1.08, .host_bound = 1.2, .later = 1}).second.steps_waiting == 30 + 20);
}

TEST_CASE("and not at all once another job runs too, until it has gone") {
  swap::program const p = small_cnn(2);
  pager_options o = options(swap::peak_of(swap::loads_of(p)) * 7 / 10 / mib * mib);
  o.clock = read_clock;
  pager_rig r(o);
  paged_program<pager> run(*r.memory, p);
  auto const steps = [&](int n, auto&& beside) {
    for (int k = 0; k < n; ++k) {
      auto const before = r.memory->stats().steps_host_bound;
      run.step();
      beside();
      clock_ns += r.memory->stats().steps_host_bound > before ? 9'000'000 : 12'000'000;
    }
    return r.memory->stats();
  };
  swap::pager_stats const alone = steps(60, [] {});
  CHECK(alone.steps_host_bound > 20);
  swap::job_id const second = r.memory->add_job();
  {
    paged_program<pager> other(*r.memory, p, work, second);
    auto const both = [&] { other.step(); };
    swap::pager_stats const joined = steps(6, both);
    swap::pager_stats const later = steps(60, both);
    CHECK(later.steps_host_bound == joined.steps_host_bound);
    CHECK(later.steps_waiting == joined.steps_waiting);
    CHECK(later.plans_made + later.plans_kept < joined.plans_made + joined.plans_kept + 20);
  }
  r.memory->end_job(second);
  swap::pager_stats const left = r.memory->stats();
  CHECK(steps(60, [] {}).steps_host_bound > left.steps_host_bound + 20);
}

TEST_CASE("steps that take what their schedule says go one way") {
  swap::pager_stats const late = held_up({1.04, 0.5, 0.5, 1.04}).second;
  CHECK(late.steps_host_bound == 0);
  CHECK(late.steps_waiting == 0);
}

TEST_CASE("a limit may be lowered and raised") {
  swap::program const p = small_cnn(2);
  bytes const peak = swap::peak_of(swap::loads_of(p));
  pager_rig r(options(peak));
  paged_program<pager> run(*r.memory, p);
  bytes limit = peak;
  run.after_each = [&] { REQUIRE(r.reserved() <= limit); };
  for (int k = 0; k < 3; ++k) run.step();
  CHECK(r.memory->stats().evictions == 0);
  for (std::uint64_t const percent : {70U, 50U, 90U, 100U}) {
    CAPTURE(percent);
    limit = peak * percent / 100 / mib * mib;
    CHECK(r.memory->set_limit(limit));
    CHECK(r.reserved() <= limit);
    for (int k = 0; k < 4; ++k) run.step();
    std::uint64_t const misses = r.memory->stats().misses;
    run.step();
    CHECK(r.memory->stats().misses == misses);
    REQUIRE(r.memory->expected());
    CHECK(r.memory->expected()->target == limit);
    CHECK((r.memory->expected()->moves == 0) == (percent == 100));
  }
}

TEST_CASE("a limit may be lowered while blocks are on their way back") {
  pager_rig r(options(16 * mib));
  address const first = r.take(8 * mib, 1);
  r.memory->end_operation();
  for (std::uint64_t value : {2U, 3U}) {
    (void)r.take(8 * mib, value);
    r.memory->end_operation();
  }
  r.queues->at_a_look = [] { return std::size_t{0}; };  // a copy is whole when the host waits for it
  r.queues->done_when_awaited = false;
  must(r.memory->access(first, work, true, false));
  r.memory->end_operation();
  REQUIRE(must(r.pool->residency_of(first)) == residency::arriving);
  CHECK(r.memory->set_limit(4 * mib));
  CHECK(r.reserved() <= 4 * mib);
  CHECK(must(r.pool->residency_of(first)) == residency::absent);
}

TEST_CASE("what a return has lacked is there for it when the next operation begins, if it was freed before that") {
  pager_rig r(options(17 * mib));
  bool births = false;
  SUBCASE("") {}
  SUBCASE("by a request") { births = true; }
  address const small = r.take(1 * mib, 9);
  r.memory->end_operation();
  std::uint64_t within = 0;  // returns that have begun in the operation's beginning
  for (int step = 0; step < 6; ++step) {
    r.memory->begin_step();
    address const away = r.take(8 * mib, 1);
    r.memory->end_operation();
    address const one = r.take(8 * mib, 2), other = r.take(8 * mib, 3);
    r.memory->end_operation();
    for (address const at : {one, other}) must(r.memory->access(at, work, true, false));
    r.memory->end_operation();
    std::uint64_t const before = r.memory->stats().planned_in;
    for (address const at : {one, other}) must(r.memory->deallocate(at));
    REQUIRE(r.memory->stats().planned_in == before);
    address passing{};
    if (births) passing = must(r.memory->allocate(64_KiB, work));
    else must(r.memory->access(small, work, true, false));
    within = r.memory->stats().planned_in - before;
    r.memory->end_operation();
    must(r.memory->access(away, work, true, false));
    CHECK(stamped(away, 8 * mib, 1));
    r.memory->end_operation();
    must(r.memory->deallocate(away));
    if (births) must(r.memory->deallocate(passing));
  }
  CHECK(r.memory->stats().steps_by_schedule > 0);
  CHECK(within == 1);
}

TEST_CASE("stopping brings all back, or says how much not") {
  pager_rig r(options(4 * mib));
  std::vector<address> all;
  for (std::uint64_t k = 0; k < 4; ++k) {
    all.push_back(r.take(2 * mib, k));
    (void)r.memory->end_operation();
  }
  swap::pause_outcome const part = r.memory->stop();
  CHECK(part.moved == 4 * mib);
  CHECK(part.stayed == 4 * mib);
  CHECK(part.why.code == errc::out_of_memory);
  CHECK_FALSE(r.memory->allocate(mib, work));
  CHECK(r.memory->set_limit(8 * mib));
  CHECK(r.memory->stop().stayed == 0);
  for (std::uint64_t k = 0; k < 4; ++k) CHECK(stamped(all[k], 2 * mib, k));
  r.memory->go_on();
  CHECK(r.memory->set_limit(6 * mib));
  CHECK(r.reserved() <= 6 * mib);
  for (std::uint64_t k = 0; k < 4; ++k) {
    must(r.memory->access(all[k], work, true, false));
    CHECK(stamped(all[k], 2 * mib, k));
    (void)r.memory->end_operation();
    must(r.memory->deallocate(all[k]));
  }
}

TEST_CASE("pinned blocks stay, groups pause and resume, frozen ones may be written after all") {
  pager_rig r(options(4 * mib));
  address const a = r.take(2 * mib, 1, swap::tag{1});
  address const b = r.take(mib, 2);
  (void)r.memory->end_operation();
  must(r.memory->pin(b, work));
  must(r.memory->set_read_only(a, true));
  address const c = must(r.memory->allocate(3 * mib, work));
  CHECK(r.state(b) == residency::mapped);
  CHECK(r.state(a) == residency::absent);
  CHECK_FALSE(r.memory->allocate(mib, work));
  must(r.memory->deallocate(c));
  (void)r.memory->end_operation();
  must(r.memory->access(a, work, true, true));
  stamp(a, 2 * mib, 3);
  (void)r.memory->end_operation();
  CHECK(r.memory->pause(swap::tag{1}).moved == 2 * mib);
  must(r.memory->access(a, work, true, false));
  CHECK(stamped(a, 2 * mib, 3));
  (void)r.memory->end_operation();
  CHECK(r.memory->pause(swap::tag{1}).moved == 2 * mib);
  CHECK(r.memory->resume(swap::tag{1}).moved == 2 * mib);
  CHECK(stamped(a, 2 * mib, 3));
  must(r.memory->unpin(b));
  for (address x : {a, b}) must(r.memory->deallocate(x));
}

TEST_CASE("jobs take turns by plan: their sum keeps to the limit, and one that joins or leaves changes the plans") {
  std::vector<swap::program> const programs{small_cnn(1, 40), small_cnn(2, 60), small_cnn(3, 30)};
  bytes sum = 0;
  for (swap::program const& p : programs) sum += swap::peak_of(swap::loads_of(p));
  bytes const limit = sum * 38 / 100 / mib * mib;  // the second has to swap for itself
  pager_rig r(options(limit));
  std::vector<swap::job_id> const jobs{swap::job_id{}, r.memory->add_job(), r.memory->add_job(1)};
  std::vector<std::unique_ptr<paged_program<pager>>> run(programs.size());
  std::vector<swap::time> clock(programs.size());
  auto const join = [&](std::size_t k) {
    run[k] = std::make_unique<paged_program<pager>>(*r.memory, programs[k], work, jobs[k]);
    run[k]->after_each = [&] { REQUIRE(r.reserved() <= limit); };
  };
  // Each goes on when its time has come, and waits for its turn.
  auto const go = [&](swap::time until) {
    for (;;) {
      for (auto const& p : run) {
        if (p != nullptr) (void)p->waits();  // all that are about to go have asked
      }
      std::size_t next = programs.size();
      for (std::size_t k = 0; k < programs.size(); ++k) {
        if (run[k] == nullptr || run[k]->waits()) continue;
        if (next == programs.size() || clock[k] < clock[next]) next = k;
      }
      REQUIRE(next < programs.size());
      if (clock[next] >= until) return;
      clock[next] += run[next]->advance() * (next == 1 ? 3 : 2);  // steps of two lengths
    }
  };
  join(0);
  join(1);
  go(swap::time(400'000'000));
  REQUIRE(r.memory->expected(jobs[0]));
  REQUIRE(r.memory->expected(jobs[1]));
  swap::pager_stats const two = r.memory->stats();
  go(swap::time(600'000'000));
  swap::pager_stats const settled = r.memory->stats();
  CHECK(settled.planned_out > two.planned_out);
  CHECK(settled.misses == two.misses);
  CHECK(settled.steps_by_schedule == two.steps_by_schedule + (settled.steps - two.steps));

  clock[2] = clock[0];
  join(2);
  go(swap::time(1'000'000'000));
  REQUIRE(r.memory->expected(jobs[2]));
  swap::pager_stats const three = r.memory->stats();
  CHECK(three.plans_made >= two.plans_made + 3);
  CHECK(three.planned_out > settled.planned_out);
  go(swap::time(1'200'000'000));
  CHECK(r.memory->stats().misses == three.misses);
  run[2].reset();
  r.memory->end_job(jobs[2]);
  go(swap::time(1'600'000'000));
  CHECK(r.memory->stats().plans_made > three.plans_made);
  CHECK(r.memory->stats().steps_by_schedule > three.steps_by_schedule);
}

TEST_CASE("what makes way for another job's step comes back when its own job's next step begins") {
  // A weight that is used at a step's beginning, and steps that take most of the memory.
  swap::program with_weight, large;
  with_weight.operations.assign(6, swap::time(5'000'000));
  with_weight.variables = {
      {.size = 16 * mib, .birth = 0, .death = 6, .carried = true, .accesses = {{0}, {1, true, true}}},
      {.size = 24 * mib, .birth = 3, .death = 5, .accesses = {{3, false, true}, {4}}}};
  large.operations.assign(6, swap::time(5'000'000));
  large.variables = {{.size = 40 * mib, .birth = 0, .death = 6, .accesses = {{0, false, true}, {5}}}};
  pager_rig r(options(48 * mib));
  paged_program<pager> first(*r.memory, with_weight, work), second(*r.memory, large, work, r.memory->add_job());
  for (int k = 0; k < 8; ++k) {
    first.step();
    second.step();
  }
  swap::pager_stats const settled = r.memory->stats();
  CHECK(settled.planned_out > 0);
  for (int k = 0; k < 4; ++k) {
    first.step();
    CHECK(r.state(first.at(0)) != residency::mapped);
    second.step();
  }
  CHECK(r.memory->stats().evictions == settled.evictions);
  CHECK(r.memory->stats().planned_out == settled.planned_out + 4);
  CHECK(r.memory->stats().planned_in == settled.planned_in + 4);
  CHECK(r.memory->stats().misses == settled.misses);
}

TEST_CASE("what the program has made before its jobs took steps is planned for with the job that uses it") {
  pager_rig r(options(48 * mib));
  address const weight = r.take(16 * mib, 7);
  (void)r.memory->end_operation();
  swap::job_id const jobs[] = {r.memory->add_job(), r.memory->add_job()};
  auto const end = [&](swap::job_id job) { r.memory->took(r.memory->end_operation(job), 20'000'000, job); };
  auto const step = [&](swap::job_id job, bytes n) {
    r.memory->begin_step(job);
    if (job == jobs[0]) {
      must(r.memory->access(weight, work, true, false, job));
      CHECK(stamped(weight, 16 * mib, 7));
    }
    end(job);
    address const at = must(r.memory->allocate(n, work, {}, job));
    must(r.memory->access(at, work, false, true, job));
    end(job);
    end(job);
    must(r.memory->deallocate(at));
    end(job);
  };
  auto const round = [&] {
    step(jobs[0], 24 * mib);
    step(jobs[1], 40 * mib);
  };
  for (int k = 0; k < 8; ++k) round();
  swap::pager_stats const settled = r.memory->stats();
  for (int k = 0; k < 4; ++k) round();
  CHECK(r.memory->stats().evictions == settled.evictions);
  CHECK(r.memory->stats().planned_out == settled.planned_out + 4);
  CHECK(r.memory->stats().misses == settled.misses);
  must(r.memory->deallocate(weight));
}

TEST_CASE("jobs' steps are planned again when their operations take another time, and keep plans that do as well") {
  pager_rig r(options(38 * mib));
  swap::job_id const second = r.memory->add_job();
  paged_program<pager> one(*r.memory, small_cnn(1, 40), work);
  paged_program<pager> other(*r.memory, small_cnn(2, 40), work, second);
  auto const round = [&](double slower) {
    one.step(~0u, slower);
    other.step(~0u, slower);
  };
  for (int k = 0; k < 6; ++k) round(1);
  swap::pager_stats const before = r.memory->stats();
  REQUIRE(r.memory->expected());
  swap::time const expected[] = {r.memory->expected()->step, r.memory->expected(second)->step};
  std::uint32_t const moves = r.memory->expected(second)->moves;
  for (int k = 0; k < 20; ++k) round(2);
  swap::pager_stats const after = r.memory->stats();
  CHECK(after.planned_out > before.planned_out);
  CHECK(after.plans_made == before.plans_made);
  CHECK(after.plans_kept >= before.plans_kept + 2);
  CHECK(r.memory->expected()->step > expected[0] * 3 / 2);
  CHECK(r.memory->expected(second)->step > expected[1] * 3 / 2);
  CHECK(r.memory->expected(second)->moves == moves);
}

TEST_CASE("a job that finds no memory while another has its turn waits for the end of that") {
  std::vector<swap::program> const programs{small_cnn(1, 40), small_cnn(2, 40)};
  bytes const limit = 52 * mib;
  pager_options o = options(limit);
  o.patience = std::chrono::minutes(1);
  pager_rig r(o);
  std::vector<std::unique_ptr<paged_program<pager>>> run;
  for (swap::program const& p : programs) {
    swap::job_id const job = run.empty() ? swap::job_id{} : r.memory->add_job();
    run.push_back(std::make_unique<paged_program<pager>>(*r.memory, p, work, job));
  }
  for (int k = 0; k < 4; ++k) {
    for (auto& one : run) one->step();
  }
  (void)run[0]->advance();
  REQUIRE(run[1]->waits());
  address const held = r.take(20 * mib, 1);  // and in use
  swap::job_id const newcomer = r.memory->add_job();
  result<address> at = failure(errc::invalid_argument, "not yet");
  std::thread other([&] { at = r.memory->allocate(limit - 16 * mib, work, {}, newcomer); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  must(r.memory->deallocate(held));
  (void)r.memory->end_operation();
  r.memory->begin_step();
  other.join();
  CHECK(r.reserved() <= limit);
  must(r.memory->deallocate(must(std::move(at))));
}

TEST_CASE("a job that asks for more than there can be is told so while others go on taking turns") {
  pager_options o = options(52 * mib);
  o.patience = std::chrono::minutes(1);
  pager_rig r(o);
  paged_program<pager> first(*r.memory, small_cnn(1, 40), work);
  paged_program<pager> second(*r.memory, small_cnn(2, 40), work, r.memory->add_job());
  for (int k = 0; k < 4; ++k) {
    first.step();
    second.step();
  }
  swap::job_id const newcomer = r.memory->add_job();
  result<address> at = failure(errc::invalid_argument, "not yet");
  std::atomic<bool> told = false;
  std::thread other([&] {
    at = r.memory->allocate(64 * mib, work, {}, newcomer);
    told = true;
  });
  for (int k = 0; k < 2000 && !told; ++k) {
    first.step();
    second.step();
  }
  CHECK(told);
  other.join();
  CHECK(at.error().code == errc::out_of_memory);
}

TEST_CASE("states born in the first step and gradients left over from one to the next are known again in the third") {
  // Layers of a weight and an activation; gradients are freed when the next step has begun, as zero_grad does.
  constexpr std::size_t layers = 8;
  pager_options o = options(34 * mib);
  pager_rig r(o);
  std::vector<address> weights, states, gradients(layers), activations(layers);
  std::vector<std::uint64_t> values(layers, 1);
  for (std::size_t l = 0; l < layers; ++l) {
    weights.push_back(r.take(mib, 1));
    (void)r.memory->end_operation();
  }
  auto const end = [&] { r.memory->took(r.memory->end_operation(), 500'000); };
  auto const use = [&](address at, bytes n, std::uint64_t value, bool writes = false) {
    must(r.memory->access(at, work, true, writes));
    REQUIRE(stamped(at, n, value));
  };
  for (std::uint64_t step = 1; step <= 6; ++step) {
    r.memory->begin_step();
    for (address& g : gradients) {
      if (g != address{}) must(r.memory->deallocate(std::exchange(g, address{})));
    }
    if (step == 1) must(r.memory->deallocate(r.take(3 * mib, 9)));  // looks for the fastest algorithm
    for (std::size_t l = 0; l < layers; ++l) {
      use(weights[l], mib, values[l]);
      activations[l] = r.take(3 * mib, 100 * step + l);
      end();
    }
    for (std::size_t l = layers; l-- > 0;) {
      use(weights[l], mib, values[l]);
      use(activations[l], 3 * mib, 100 * step + l);
      gradients[l] = r.take(mib, 1000 * step + l);
      end();
      must(r.memory->deallocate(activations[l]));
    }
    for (std::size_t l = 0; l < layers; ++l) {
      use(gradients[l], mib, 1000 * step + l);
      use(weights[l], mib, values[l], true);
      stamp(weights[l], mib, values[l] = step + 1);
      if (step == 1) states.push_back(r.take(2 * mib, 1));
      else use(states[l], 2 * mib, step - 1, true);
      stamp(states[l], 2 * mib, step);
      end();
    }
    CHECK(r.reserved() <= o.limit);
    swap::pager_stats const s = r.memory->stats();
    CAPTURE(step);
    CHECK(s.departures == 0);
    if (step >= 3) {
      REQUIRE(r.memory->expected());
      CHECK(r.memory->expected()->moves > 0);
      CHECK(s.planned_out > 0);
    }
  }
  r.memory->begin_step();
  CHECK(r.memory->stats().steps_by_schedule == 4);
  CHECK(r.memory->stats().plans_made == 1);
}

TEST_CASE("what is used no more leaves by schedule for good, and is there all the same for who wants it after all") {
  bool freed_late = false;  // when the next step has begun
  SUBCASE("freed in its step") {}
  SUBCASE("freed when the next one has begun") { freed_late = true; }
  constexpr std::size_t count = 8;
  pager_options const o = options(12 * mib);
  pager_rig r(o);
  std::vector<address> used_up(count), others(count);
  auto const free = [&] {
    for (address& at : used_up) {
      if (at != address{}) must(r.memory->deallocate(std::exchange(at, address{})));
    }
  };
  auto const end = [&] { r.memory->took(r.memory->end_operation(), 500'000); };
  for (std::uint64_t step = 1; step <= 7; ++step) {
    CAPTURE(step);
    r.memory->begin_step();
    swap::pager_stats const before = r.memory->stats();
    bytes const in_before = r.pool->swaps().copied_in;
    free();
    for (std::size_t k = 0; k < count; ++k) {
      used_up[k] = r.take(mib, 100 * step + k);
      end();
    }
    for (std::size_t k = 0; k < count; ++k) {
      others[k] = r.take(mib, k);
      end();
    }
    if (step == 7) {
      must(r.memory->access(used_up[0], work, true, false));
      REQUIRE(stamped(used_up[0], mib, 700));
      end();
    }
    for (address const at : others) must(r.memory->deallocate(at));
    if (!freed_late) free();
    CHECK(r.reserved() <= o.limit);
    swap::pager_stats const s = r.memory->stats();
    if (step < 4) continue;
    CHECK(s.planned_out > before.planned_out);
    CHECK(s.planned_in == before.planned_in);
    if (step == 7) {
      CHECK(r.pool->swaps().copied_in == in_before + mib);
      continue;
    }
    CHECK(s.evictions == before.evictions);
    CHECK(r.pool->swaps().copied_in == in_before);
  }
  free();
}

TEST_CASE("a step with more events than are to be logged goes on demand") {
  pager_options o = options(5 * mib);
  o.most_events = 10;
  pager_rig r(o);
  address const a = r.take(2 * mib, 1);
  (void)r.memory->end_operation();
  address const b = r.take(2 * mib, 2);
  (void)r.memory->end_operation();
  for (int step = 0; step < 5; ++step) {
    r.memory->begin_step();
    for (int i = 0; i < 8; ++i) {
      must(r.memory->access(a, work, true, false));
      must(r.memory->access(b, work, true, false));
      address const c = i % 4 == 3 ? address{} : must(r.memory->allocate(1_KiB, work));
      (void)r.memory->end_operation();
      if (c != address{}) must(r.memory->deallocate(c));
    }
  }
  r.memory->begin_step();
  CHECK(r.memory->stats().steps_not_logged == 5);
  CHECK(r.memory->stats().plans_made == 0);
}
