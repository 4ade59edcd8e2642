/// Random moves, frees and failures: no byte is wrong, nothing is lost, and nothing is left. From one thread with
/// copies that take their time and fail, and from several at once.

#include <atomic>
#include <thread>
#include <vector>

#include "gmlake/stream/one_stream.hpp"
#include "gmlake/swap/host_copier.hpp"
#include "gmlake/swap/swap_worker.hpp"
#include "tests/swap/flaky.hpp"
#include "tests/swap/swap_rig.hpp"
#include "tests/swap/swap_walk.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// Copies that take their time, and calls that fail one at a time.
class lazy_rig : public swap_rig {
 public:
  lazy_rig(swap_rig_options const& o, std::uint64_t seed, bool faults) : swap_rig(o), random_(~seed) {
    queues->at_a_look = [this] { return below(3); };
    if (!faults) return;
    queues->copy_fails = [this] { return below(60) == 0; };
    for (auto* f : {&queues->record_fails, &queues->reached_fails, &queues->wait_fails, &store->write_fails,
                    &store->read_fails}) {
      *f = [this] { return below(80) == 0; };
    }
  }

  void fill(address at, bytes n, unsigned value, stream) { swap_rig::fill(at, n, static_cast<unsigned char>(value)); }
  void expect(address at, bytes n, unsigned value, stream) {
    REQUIRE(swap_rig::holds(at, n, static_cast<unsigned char>(value)));
  }
  void upset(std::mt19937_64& random) {
    watched_device& one = random() % 4 == 0 ? host : device;
    one.calls.arm({.first = random() % 6, .count = 1 + random() % 2, .only = {}});
  }
  void calm() {
    device.calls.disarm();
    host.calls.disarm();
    queues->copy_fails = queues->record_fails = queues->reached_fails = queues->wait_fails = nullptr;
    store->write_fails = store->read_fails = nullptr;
    queues->at_a_look = [] { return std::size_t{1000}; };
  }

 private:
  [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  std::mt19937_64 random_;
};

/// Real pages, copies that are done at once, and parts that fail at random: for threads.
class flaky_rig {
 public:
  using memory = flaky_backend<memfd>;
  using pool_of_device = basic_pool<pool_config<memory>>;
  using pool_of_host = basic_pool<pool_config<memory>>;
  using pool_type =
      swap::swapping_pool<pool_of_device, pool_of_host, flaky_streams<one_stream>, flaky_copier<swap::host_copier>>;

  explicit flaky_rig(unsigned sides)
      : sides_(sides),
        on_device(open(40_MiB, 1), {.small_limit = 4_KiB, .small_chunk = 64_KiB}),
        on_host(open(32_MiB, 2), {.small_limit = 4_KiB, .small_chunk = 64_KiB}),
        pool(std::make_unique<pool_type>(on_device, on_host, flaky_streams(one_stream{}, die(sides_, 3)),
                                         flaky_copier(swap::host_copier{}, die(sides_, 4)),
                                         swap::swap_options{.smallest = 64_KiB})) {}

  void fill(address at, bytes n, unsigned value, stream on) { std::memset(to_pointer(at), byte_of(value, on), n); }
  void expect(address at, bytes n, unsigned value, stream on) {
    if (!all_are(at, n, byte_of(value, on))) ++wrong;
  }
  void upset(std::mt19937_64&) {}
  void calm() { sides_ = 0; }

 private:
  [[nodiscard]] static unsigned char byte_of(unsigned value, stream on) {
    return static_cast<unsigned char>(value * 7 + to_integer(on) * 61);
  }
  [[nodiscard]] memory open(bytes capacity, std::uint64_t seed) {
    return memory(must(memfd::open({.capacity = capacity})), die(sides_, seed));
  }

  std::atomic<unsigned> sides_;

 public:
  pool_of_device on_device;
  pool_of_host on_host;
  std::unique_ptr<pool_type> pool;
  std::atomic<int> wrong{0};
};

void walk_alone(swap_rig_options const& o) {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 8; ++seed) {
    CAPTURE(seed);
    bool const faults = seed % 2 == 0;
    CAPTURE(faults);
    lazy_rig rig(o, seed, faults);
    swap_walk<lazy_rig> walk(rig, {.seed = seed, .faults = faults});
    for (int i = 0; i < 1500; ++i) {
      walk.step();
      if (i % 100 == 0) rig.sound();
    }
    CHECK(rig.pool->swaps().departures > 50);
    CHECK(rig.pool->swaps().arrivals > 20);
    rig.calm();
    walk.finish();
    must(rig.pool->settle());
    swap::swap_stats const s = rig.pool->swaps();
    CHECK(s.swappable == 0);
    CHECK(s.absent == 0);
    CHECK(s.in_place == 0);
    CHECK(s.on_host == 0);
    CHECK(s.on_file == 0);
    if (o.file > 0) CHECK(s.filed > 20);
    rig.pool.reset();
    CHECK(rig.on_device->stats().live.now == 0);
    CHECK(rig.on_host->stats().live.now == 0);
    must(rig.on_device->trim());
    must(rig.on_host->trim());
    CHECK(rig.device.device().live_handles() == 0);
    CHECK(rig.host.device().live_handles() == 0);
  }
}

}  // namespace

TEST_CASE("random moves keep every byte") { walk_alone({.device = 12_MiB, .host = 10_MiB}); }

TEST_CASE("random moves keep every byte where absent blocks are served in place, and written there") {
  walk_alone({.device = 12_MiB, .host = 10_MiB, .in_place = true});
}

TEST_CASE("random moves keep every byte where pinned memory is short and a file lies below") {
  walk_alone({.device = 12_MiB, .host = 4_MiB, .file = 6_MiB});
}

TEST_CASE("threads move blocks of one pool at once, while calls fail and a worker ends the moves") {
  for (unsigned const sides : {0u, 50u}) {
    CAPTURE(sides);
    flaky_rig rig(sides);
    std::uint64_t const seed = first_seed();
    CAPTURE(seed);
    {
      swap::swap_worker worker(*rig.pool);
      std::vector<swap_walk<flaky_rig>> walks;
      walks.reserve(4);
      for (unsigned id = 0; id < 4; ++id) {
        walks.emplace_back(rig, swap_walk_options{.seed = seed * 4 + id, .on = stream{id}, .groups_from = id * 3});
      }
      // How much is moved hangs on how often the worker gets to run.
      auto const moved_enough = [&rig, sides] {
        swap::swap_stats const s = rig.pool->swaps();
        return s.departures > 100 && s.arrivals > 50 && (sides == 0 || s.failures > 20);
      };
      std::vector<std::thread> threads;
      threads.reserve(walks.size());
      for (auto& walk : walks) {
        threads.emplace_back([&] {
          for (int i = 0; i < 2500 || (i < 100'000 && !moved_enough()); ++i) {
            walk.step();
            if (i % 8 == 0) worker.wake();
          }
        });
      }
      for (std::thread& t : threads) t.join();
      rig.calm();
      for (auto& walk : walks) walk.finish();
    }
    must(rig.pool->settle());
    swap::swap_stats const s = rig.pool->swaps();
    CHECK(rig.wrong == 0);
    CHECK(s.swappable == 0);
    CHECK(s.absent == 0);
    CHECK(s.on_host == 0);
    CHECK(s.departures > 100);
    CHECK(s.arrivals > 50);
    if (sides > 0) CHECK(s.failures > 20);
    CHECK(rig.on_device.stats().live.now == 0);
    CHECK(rig.on_host.stats().live.now == 0);
    for (char const* const fault : {rig.on_device.validate(), rig.on_host.validate()}) {
      CHECK_MESSAGE(fault == nullptr, fault);
    }
    must(rig.on_device.trim());
    CHECK(rig.on_device.stats().reserved.now == 0);
  }
}
