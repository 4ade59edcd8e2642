/// Random moves, frees and failures: no byte is wrong, nothing is lost, and nothing is left. From one thread with
/// copies that take their time and fail, and from several at once.

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "gmlake/swap/host_copier.hpp"
#include "gmlake/swap/swap_worker.hpp"
#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::residency;
using swap::tag;

namespace {

struct held {
  address at{};
  bytes size = 0;
  unsigned char value = 0;
  tag group{};
  bool usable = true;  ///< its user has asked for it since it was sent away
  bool read_only = false;
  bool known = true;  ///< its contents were not discarded
  int pins = 0;
};

class walk {
 public:
  walk(std::uint64_t seed, bool faults) : random_(seed), faults_(faults), rig_({.device = 12_MiB, .host = 10_MiB}) {
    rig_.queues->at_a_look = [this] { return below(3); };
    if (!faults) return;
    rig_.queues->copy_fails = [this] { return below(60) == 0; };
    rig_.queues->record_fails = [this] { return below(80) == 0; };
    rig_.queues->reached_fails = [this] { return below(80) == 0; };
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2: allocate(); break;
      case 3: free_one(); break;
      case 4:
      case 5: send_away(); break;
      case 6:
      case 7: bring_back(); break;
      case 8: touch(); break;
      case 9: (void)(below(2) == 0 ? rig_.pool->progress().has_value() : rig_.pool->settle().has_value()); break;
      case 10: pin_or_freeze(); break;
      default: rest();
    }
    if (faults_ && below(40) == 0) rig_.device.calls.arm({.first = below(6), .count = 1 + below(2), .only = {}});
  }

  void finish() {
    rig_.device.calls.disarm();
    rig_.queues->copy_fails = rig_.queues->record_fails = rig_.queues->reached_fails = nullptr;
    while (!all_.empty()) {
      if (use(all_.back())) check(all_.back());
      must(rig_.pool->deallocate(all_.back().at));
      all_.pop_back();
    }
    must(rig_.pool->settle());
    CHECK(rig_.pool->swaps().swappable == 0);
    CHECK(rig_.pool->swaps().absent == 0);
    CHECK(rig_.pool->swaps().on_host == 0);
    CHECK(rig_.on_device->stats().live.now == 0);
    CHECK(rig_.on_host->stats().live.now == 0);
    must(rig_.on_device->trim());
    CHECK(rig_.device.device().live_handles() == 0);
  }
  [[nodiscard]] swap::swap_stats swaps() const { return rig_.pool->swaps(); }
  void sound() { rig_.sound(); }

 private:
  [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  [[nodiscard]] held* some() { return all_.empty() ? nullptr : &all_[below(all_.size())]; }

  void allocate() {
    bytes const n = 64_KiB + below(2_MiB);
    tag const group{static_cast<std::uint32_t>(below(3))};
    result<address> const at = rig_.pool->allocate(n, swap_rig::work, group);
    if (!at) return;
    all_.push_back({.at = *at, .size = n, .value = next(), .group = group});
    rig_.fill(*at, n, all_.back().value);
  }
  void free_one() {
    held* const b = some();
    if (b == nullptr || !rig_.pool->deallocate(b->at)) return;
    *b = all_.back();
    all_.pop_back();
  }
  void send_away() {
    held* const b = some();
    if (b == nullptr) return;
    if (rig_.pool->swap_out(b->at, swap_rig::work)) {
      CHECK(b->pins == 0);
      b->usable = false;
    }
  }
  void bring_back() {
    held* const b = some();
    if (b == nullptr) return;
    if (below(4) == 0) (void)rig_.pool->prefetch(b->at).has_value();
    else if (use(*b)) check(*b);
  }
  [[nodiscard]] bool use(held& b) {
    b.usable = rig_.pool->swap_in(b.at, swap_rig::work).has_value() || b.usable;
    return b.usable;
  }
  void touch() {
    held* const b = some();
    if (b == nullptr || !b->usable) return;
    check(*b);
    if (b->read_only) return;
    b->value = next();
    b->known = true;
    rig_.fill(b->at, b->size, b->value);
  }
  void pin_or_freeze() {
    held* const b = some();
    if (b == nullptr) return;
    if (below(2) == 0) {
      b->read_only = !b->read_only;
      must(rig_.pool->set_read_only(b->at, b->read_only));
    } else if (b->pins > 0) {
      must(rig_.pool->unpin(b->at));
      --b->pins;
    } else if (rig_.pool->pin(b->at, swap_rig::work)) {
      ++b->pins;
      b->usable = true;
      check(*b);
    }
  }
  /// A group sleeps and wakes.
  void rest() {
    if (below(4) != 0) return;
    tag const group{static_cast<std::uint32_t>(below(3))};
    bool const keeping = below(3) != 0;
    (void)rig_.pool->pause(group, keeping);
    for (held& b : all_) {
      if (b.group != group) continue;
      b.usable = rig_.state(b.at) == residency::mapped;
      if (!keeping && !b.usable) b.known = false;
    }
    (void)rig_.pool->resume(group);
  }
  void check(held const& b) {
    if (b.known) REQUIRE(rig_.holds(b.at, b.size, b.value));
  }
  [[nodiscard]] unsigned char next() { return static_cast<unsigned char>(++values_); }

  std::mt19937_64 random_;
  bool faults_;
  swap_rig rig_;
  std::vector<held> all_;
  unsigned values_ = 0;
};

[[nodiscard]] std::uint64_t first_seed() {
  char const* const s = std::getenv("GMLAKE_TEST_SEED");
  return s != nullptr ? std::strtoull(s, nullptr, 10) : 1;
}

}  // namespace

TEST_CASE("random moves keep every byte") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 8; ++seed) {
    CAPTURE(seed);
    bool const faults = seed % 2 == 0;
    CAPTURE(faults);
    walk w(seed, faults);
    for (int i = 0; i < 1500; ++i) {
      w.step();
      if (i % 100 == 0) w.sound();
    }
    CHECK(w.swaps().departures > 50);
    CHECK(w.swaps().arrivals > 20);
    w.finish();
  }
}

TEST_CASE("threads move blocks of one pool at once, while a worker ends the moves") {
  using device_pool = basic_pool<pool_config<memfd>>;
  device_pool device(must(memfd::open({.capacity = 48_MiB})), {.small_limit = 4_KiB, .small_chunk = 64_KiB});
  device_pool host(must(memfd::open({.capacity = 64_MiB})), {.small_limit = 4_KiB, .small_chunk = 64_KiB});
  std::atomic<int> wrong{0};
  {
    swap::swapping_pool pool(device, host, one_stream{}, swap::host_copier{}, {.smallest = 64_KiB});
    swap::swap_worker worker(pool);
    auto const program = [&](unsigned id) {
      std::mt19937_64 random(id);
      for (int round = 0; round < 300; ++round) {
        bytes const n = 64_KiB + random() % 1_MiB;
        result<address> const at = pool.allocate(n, stream{id});
        if (!at) continue;
        auto* const p = static_cast<unsigned char*>(to_pointer(*at));
        auto const value = static_cast<unsigned char>(id * 64 + static_cast<unsigned>(round) % 64);
        std::memset(p, value, n);
        for (std::uint64_t moves = random() % 4; moves > 0; --moves) {
          bool const left = pool.swap_out(*at, stream{id}).has_value();
          worker.wake();
          if (random() % 3 == 0) std::this_thread::yield();
          while (left && !pool.swap_in(*at, stream{id})) std::this_thread::yield();
          if (p[0] != value || p[n / 2] != value || p[n - 1] != value) ++wrong;
        }
        if (random() % 2 == 0) (void)pool.swap_out(*at, stream{id}).has_value();
        if (!pool.deallocate(*at)) ++wrong;
      }
    };
    std::vector<std::thread> threads;
    for (unsigned id = 1; id <= 3; ++id) threads.emplace_back(program, id);
    for (std::thread& t : threads) t.join();
    must(pool.settle());
    CHECK(pool.swaps().swappable == 0);
    CHECK(pool.swaps().on_host == 0);
    CHECK(pool.swaps().departures > 100);
  }
  CHECK(wrong == 0);
  CHECK(device.stats().live.now == 0);
  CHECK(host.stats().live.now == 0);
  CHECK(device.validate() == nullptr);
}
