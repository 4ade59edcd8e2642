/// Random programs under random limits, with and without failures, from one thread and from several: no byte is wrong,
/// nothing is lost, and nothing is left.

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gmlake/stream/one_stream.hpp"
#include "gmlake/swap/host_copier.hpp"
#include "gmlake/swap/least_recent.hpp"
#include "gmlake/swap/load.hpp"
#include "gmlake/swap/pager.hpp"
#include "gmlake/swap/swap_worker.hpp"
#include "tests/swap/flaky.hpp"
#include "tests/swap/paged_program.hpp"
#include "tests/swap/programs.hpp"
#include "tests/swap/swap_rig.hpp"
#include "tests/swap/swap_walk.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// With a few operations on some dozens of variables of any size, from some that don't swap up to `largest`.
[[nodiscard]] swap::program random_program(std::uint64_t seed, bytes largest = 2_MiB) {
  std::mt19937_64 random(seed);
  auto const below = [&](std::uint64_t n) { return random() % n; };
  swap::program p = swap::programs::tiny(static_cast<std::uint32_t>(random()), 24, 24);
  for (swap::time& t : p.operations) t = swap::time(static_cast<std::int64_t>(1000 + below(1'000'000)));
  for (swap::variable& v : p.variables) {
    v.size = 16_KiB + below(largest);
    v.has_copy = false;
    if (below(2) == 0) v.recompute = swap::time(static_cast<std::int64_t>(1 + below(200'000)));
  }
  return p;
}

[[nodiscard]] bytes least_of(swap::program const& p) { return least_limit(swap::setting(p, {})); }

/// Calls that fail, one in so many, and copies that take their time.
struct lazy_rig : swap_rig {
  explicit lazy_rig(std::uint64_t seed) : swap_rig({.device = 128_MiB, .host = 96_MiB}), random(~seed) {
    queues->at_a_look = [this] { return below(3); };
  }
  [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(random() % n); }
  void upset() {
    queues->copy_fails = [this] { return below(60) == 0; };
    for (auto* f : {&queues->record_fails, &queues->reached_fails, &queues->wait_fails}) {
      *f = [this] { return below(80) == 0; };
    }
  }
  void fail_calls() {
    watched_device& one = below(4) == 0 ? host : device;
    one.calls.arm({.first = below(6), .count = 1 + below(2), .only = {}});
  }
  void calm() {
    device.calls.disarm();
    host.calls.disarm();
    queues->copy_fails = queues->record_fails = queues->reached_fails = queues->wait_fails = nullptr;
  }
  std::mt19937_64 random;
};

template <class Pager>
void walk(std::uint64_t seed, bool faults, bool background, swap::pager_stats& sum) {
  CAPTURE(seed);
  CAPTURE(faults);
  lazy_rig r(seed);
  std::vector<swap::program> kinds;
  bytes peak = 0, least = 0, carried = 0;
  std::size_t const count = 1 + r.below(3);
  for (std::size_t k = 0; k < count; ++k) {
    kinds.push_back(random_program(seed * 7 + k));
    bytes own = 0;
    for (swap::variable const& v : kinds.back().variables) own += v.carried ? v.size : 0;
    carried += own;
    peak = std::max(peak, swap::peak_of(swap::loads_of(kinds.back())) - own);
    least = std::max(least, least_of(kinds.back()));
  }
  peak += carried;
  bytes limit = std::max(peak * (40 + r.below(50)) / 100, least) + 8_MiB;  // partly used chunks
  swap::pager_options o{.limit = limit, .in_background = background, .ahead = {}, .look_every = {}};
  o.channel.out.bytes_per_second = o.channel.in.bytes_per_second = 1'000'000'000 + r.below(10'000'000'000);
  {
    Pager memory(*r.pool, o);
    std::vector<std::unique_ptr<paged_program<Pager>>> all;
    for (swap::program const& p : kinds) {
      all.push_back(std::make_unique<paged_program<Pager>>(memory, p));
      all.back()->may_fail = faults;
      all.back()->after_each = [&] {
        REQUIRE(r.device.device().created_bytes() <= limit);
        if (all.front()->may_fail && r.below(20) == 0) r.fail_calls();
      };
      if (faults) all.back()->recompute_fails = [&r] { return r.below(10) == 0; };
    }
    if (faults) r.upset();
    for (int k = 0; k < 24; ++k) {
      auto& one = *all[r.below(4) == 0 ? r.below(all.size()) : static_cast<std::size_t>(k) % all.size()];
      auto const end = one.program().operations.size();
      one.step(r.below(12) == 0 ? static_cast<std::uint32_t>(r.below(end)) : ~0u);
      if (r.below(10) == 0 && !one.program().variables.empty()) {
        auto const v = static_cast<std::uint32_t>(r.below(one.program().variables.size()));
        if (one.at(v) != address{}) one.touch(v);
        if (one.at(v) != address{} && r.below(2) == 0) (void)memory.set_read_only(one.at(v), true).has_value();
      }
      r.sound();
    }
    r.calm();
    limit = 128_MiB;
    CHECK(memory.set_limit(limit));
    for (auto& one : all) one->recompute_fails = nullptr;
    CHECK(memory.stop().stayed == 0);
    for (auto& one : all) one->may_fail = false;
    for (auto& one : all) one->step();  // unannounced or not
    sum.planned_out += memory.stats().planned_out;
    sum.planned_in += memory.stats().planned_in;
    sum.evictions += memory.stats().evictions;
    sum.steps_by_schedule += memory.stats().steps_by_schedule;
    sum.departures += memory.stats().departures;
    sum.recomputed += memory.stats().recomputed;
  }
  must(r.pool->settle());
  swap::swap_stats const s = r.pool->swaps();
  CHECK(s.swappable == 0);
  CHECK(s.absent == 0);
  CHECK(s.on_host == 0);
  CHECK(r.on_device->stats().live.now == 0);
}

using pager = swap::pager<swap_rig::pool_type>;
using plain_pager = swap::pager<swap_rig::pool_type, swap::least_recent>;

}  // namespace

TEST_CASE("random programs keep to random limits with every byte right, and when calls fail") {
  swap::pager_stats sum;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 40; ++seed) {
    if (seed % 8 == 7) walk<plain_pager>(seed, seed % 16 == 7, false, sum);
    else walk<pager>(seed, seed % 3 == 0, seed % 5 == 0, sum);
  }
  CHECK(sum.planned_out > 0);
  CHECK(sum.planned_in > 0);
  CHECK(sum.evictions > 100);
  CHECK(sum.steps_by_schedule > 100);
  CHECK(sum.departures > 10);
  CHECK(sum.recomputed > 10);
  MESSAGE("planned out ", sum.planned_out, ", in ", sum.planned_in, ", evictions ", sum.evictions, ", by schedule ",
          sum.steps_by_schedule, ", departures ", sum.departures, ", recomputed ", sum.recomputed);
}

namespace {

/// Real pages, copies that are done at once, and parts that fail at random: for threads.
struct flaky_rig {
  using memory = flaky_backend<memfd>;
  using pool_of_device = basic_pool<pool_config<memory>>;
  using pool_of_host = basic_pool<pool_config<memory>>;
  using pool_type =
      swap::swapping_pool<pool_of_device, pool_of_host, flaky_streams<one_stream>, flaky_copier<swap::host_copier>>;

  flaky_rig()
      : on_device(open(256_MiB, 1), {.small_limit = 4_KiB, .small_chunk = 64_KiB}),
        on_host(open(256_MiB, 2), {.small_limit = 4_KiB, .small_chunk = 64_KiB}),
        pool(on_device, on_host, flaky_streams(one_stream{}, die(sides, 3)),
             flaky_copier(swap::host_copier{}, die(sides, 4)), swap::swap_options{.smallest = 64_KiB}) {}

  [[nodiscard]] memory open(bytes capacity, std::uint64_t seed) {
    return memory(must(memfd::open({.capacity = capacity})), die(sides, seed));
  }

  std::atomic<unsigned> sides{0};
  pool_of_device on_device;
  pool_of_host on_host;
  pool_type pool;
};

}  // namespace

TEST_CASE("jobs on threads of their own share a limit, come and go, while calls fail and a worker ends the moves") {
  std::uint64_t left = 0, waited = 0;
  for (unsigned const sides : {0u, 60u}) {
    CAPTURE(sides);
    flaky_rig r;
    using pager_type = swap::pager<flaky_rig::pool_type>;
    std::uint64_t const seed = first_seed();
    CAPTURE(seed);
    std::vector<swap::program> programs;
    bytes sum = 0, least = 0;
    for (std::uint64_t k = 0; k < 4; ++k) {
      programs.push_back(random_program(seed * 11 + k, 1_MiB));
      sum += swap::peak_of(swap::loads_of(programs.back()));
      least += least_of(programs.back());
    }
    bytes const limit = std::max(sum * 4 / 10, least * 3 / 4) + 2_MiB;
    pager_type memory(r.pool, {.limit = limit, .in_background = true, .ahead = {}, .look_every = {}});
    r.sides = sides;
    {
      swap::swap_worker worker(r.pool);
      std::vector<std::thread> threads;
      for (std::uint32_t k = 0; k < 4; ++k) {
        threads.emplace_back([&, k] {
          for (int life = 0; life < (k == 3 ? 3 : 1); ++life) {
            swap::job_id const job = k == 0 ? swap::job_id{} : memory.add_job(k % 2);
            {
              paged_program<pager_type> run(memory, programs[k], {}, job, true);
              // So that steps interleave whatever the machine: one after the other, they have memory enough.
              run.after_each = [] { std::this_thread::sleep_for(std::chrono::microseconds(20)); };
              for (int s = 0; s < (k == 3 ? 12 : 36); ++s) {
                // Steps begin in one thread and go on in another, as backward passes do.
                auto const some = [&] { run.step(); };
                if (s % 3 == 0) std::thread(some).join();
                else some();
                worker.wake();
              }
            }
            memory.end_job(job);
          }
        });
      }
      for (std::thread& t : threads) t.join();
      r.sides = 0;
    }
    left += memory.stats().evictions + memory.stats().planned_out;
    CHECK(memory.stats().steps >= 4 * 36);
    waited += memory.stats().turns_awaited;
    must(r.pool.settle());
    CHECK(r.pool.swaps().swappable == 0);
    CHECK(r.pool.swaps().on_host == 0);
    CHECK(r.on_device.stats().live.now == 0);
    CHECK(r.on_host.stats().live.now == 0);
    for (char const* const fault : {r.on_device.validate(), r.on_host.validate()}) {
      CHECK_MESSAGE(fault == nullptr, fault);
    }
  }
  CHECK(left > 20);
  CHECK(waited > 0);
}
