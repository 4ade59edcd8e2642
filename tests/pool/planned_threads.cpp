/// A planned pool in the hands of several threads, each with a stream and steps of its own, while plans are made in the
/// background. ThreadSanitizer sees to what the model can't.

#include <atomic>
#include <thread>

#include "tests/pool/rig.hpp"
#include "tests/pool/training.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using planned_here = planned_config<borrowed_device, simulated_streams>;

void fill(address at, bytes n, unsigned char mark) { std::memset(to_pointer(at), mark, n); }
[[nodiscard]] bool intact(address at, bytes n, unsigned char mark) {
  auto const* const from = static_cast<unsigned char const*>(to_pointer(at));
  return from[0] == mark && std::memcmp(from, from + 1, n - 1) == 0;
}

/// One thread's steps. Returns how many blocks were found changed or lost.
[[nodiscard]] int train(basic_pool<planned_here>& pool, script const& s, stream on, int steps, unsigned char mark) {
  std::map<std::uint32_t, std::pair<address, bytes>> live;
  int changed = 0;
  auto const give = [&](std::uint32_t slot) {
    auto const i = live.find(slot);
    if (i == live.end()) return;
    if (!intact(i->second.first, i->second.second, mark) || !pool.deallocate(i->second.first)) ++changed;
    live.erase(i);
  };
  for (int k = 0; k < steps; ++k) {
    if (mark == 1) pool.mark_step();
    for (event const& e : s) {
      if (!e.allocates) {
        give(e.slot);
      } else if (auto const got = pool.allocate(e.size, on)) {
        live[e.slot] = {*got, e.size};
        fill(*got, e.size, mark);
      }
    }
    if (k % 10 == 9 && pool.validate() != nullptr) ++changed;
  }
  while (!live.empty()) give(live.begin()->first);
  return changed;
}

}  // namespace

TEST_CASE("threads share a planned pool, and it may go while a plan is being made") {
  for (std::size_t const threads : {1u, 2u, 4u}) {
    CAPTURE(threads);
    rig_options o;
    o.host_memory = true;
    o.time.lag = 0;  // what is done on the host is done: contents can be checked
    rig<planned_here> r(o);
    std::atomic<int> changed = 0;
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        script const s = training_step({.layers = 6, .seed = t + 1, .largest = 60'000});
        changed += train(r.pool(), s, stream{t + 1}, 40, static_cast<unsigned char>(t + 1));
      });
    }
    for (std::thread& t : all) t.join();
    CHECK(changed == 0);
    r.sound();
    CHECK(r.stats().live.now == 0);
    r.destroy();
  }
}

TEST_CASE("one thread gets on a plan that another one makes") {
  rig<planned_here> r;
  script const s = training_step({.layers = 6, .largest = 60'000});
  r.give(r.take(2 * chunk_bytes, stream{1}));
  for (int i = 0; i < 2000 && r.pool().plans_seen().placed == 0; ++i) {
    CHECK(train(r.pool(), {}, stream{1}, 1, 1) == 0);
    std::map<std::uint32_t, address> live;
    for (event const& e : s) {
      if (e.allocates) live[e.slot] = r.take(e.size, stream{1});
      else if (auto const at = live.find(e.slot); at != live.end()) r.give(at->second), live.erase(at);
    }
    for (auto const& [slot, at] : live) r.give(at);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(r.pool().plans_seen().placed > 0);
}
