/// Pools in the hands of several threads at once. Blocks lie in host memory and each thread fills its own, so that
/// memory handed out twice shows; ThreadSanitizer sees to the rest.

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "gmlake/grow/granule_chunks.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "tests/pool/rig.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

struct held {
  address at{};
  bytes size = 0;
  unsigned char mark = 0;
};

void fill(held const& b) { std::memset(to_pointer(b.at), b.mark, b.size); }
[[nodiscard]] bool intact(held const& b) {
  auto const* const from = static_cast<unsigned char const*>(to_pointer(b.at));
  return b.size == 0 || (from[0] == b.mark && std::memcmp(from, from + 1, b.size - 1) == 0);
}

/// One thread's walk, on a stream of its own; blocks pass to the next thread now and then. Returns how many were found
/// changed.
template <class Pool>
[[nodiscard]] int walk_alone(Pool& pool, std::uint64_t seed, std::size_t thread, int steps, std::mutex& exchange,
                             std::vector<held>& passed_on) {
  std::mt19937_64 random(seed * 1000 + thread);
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  stream const own{thread};
  std::vector<held> live;
  int changed = 0;
  for (int i = 0; i < steps; ++i) {
    std::size_t const what = below(100);
    if (what < 50) {
      bytes const n = below(2) == 0 ? below(2000) : below(below(4) == 0 ? 2 * chunk_bytes : quarter_chunk);
      request r{.size = n, .on = own};
      if (below(50) == 0) r.where = placement::own_chunks;
      auto const got = pool.allocate(r);
      if (!got) continue;
      live.push_back({*got, n, static_cast<unsigned char>(random())});
      fill(live.back());
    } else if (what < 92 && !live.empty()) {
      std::swap(live[below(live.size())], live.back());
      if (!intact(live.back())) ++changed;
      if (!pool.deallocate(live.back().at)) ++changed;
      live.pop_back();
    } else if (what < 94 && !live.empty()) {
      std::scoped_lock const lock(exchange);
      passed_on.push_back(live.back());
      live.pop_back();
      if (passed_on.size() > 4) {
        live.push_back(passed_on.front());
        passed_on.erase(passed_on.begin());
      }
    } else if (what < 96 && !live.empty()) {
      if (!pool.record_stream(live.back().at, stream{below(4)})) ++changed;
    } else if (what == 96) {
      (void)pool.trim();
    } else if (what == 97) {
      if (pool.validate() != nullptr) ++changed;
    } else if (what == 98) {
      if (pool.stats().reserved.now > pool.stats().reserved.peak) ++changed;
      if (pool.snapshot().chunks.size() > 16 * chunk_bytes / granule) ++changed;
    } else {
      pool.set_limit(below(2) == 0 ? ~bytes{0} : 12 * chunk_bytes);
    }
  }
  for (held const& b : live) {
    if (!intact(b)) ++changed;
    if (!pool.deallocate(b.at)) ++changed;
  }
  return changed;
}

template <PoolConfig Config>
void walk_together(std::size_t threads, std::uint64_t seed, int steps) {
  CAPTURE(threads);
  CAPTURE(seed);
  rig_options o;
  o.host_memory = true;
  o.capacity = 16 * chunk_bytes;
  o.cache.stitches = 4;
  o.time.lag = 0;  // what is done on the host is done: contents can be checked
  rig<Config> r(o);
  std::mutex exchange;
  std::vector<held> passed_on;
  r.pool().on_out_of_memory([&](memory_account const&) {
    std::scoped_lock const lock(exchange);
    if (passed_on.empty()) return false;
    held const b = passed_on.back();
    passed_on.pop_back();
    return intact(b) && r.pool().deallocate(b.at).has_value();
  });
  std::atomic<int> changed = 0;
  {
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; ++t) {
      all.emplace_back([&, t] { changed += walk_alone(r.pool(), seed, t, steps, exchange, passed_on); });
    }
    for (std::thread& t : all) t.join();
  }
  for (held const& b : passed_on) {
    if (!intact(b)) ++changed;
    r.give(b.at);
  }
  CHECK(changed == 0);
  r.sound();
  CHECK(r.stats().live.now == 0);
  (void)r.trim();
  CHECK(r.reserved() == 0);
  r.destroy();
}

}  // namespace

TEST_CASE_TEMPLATE("threads share a pool", Config, rig_config<one_stream>, rig_config<simulated_streams>,
                   gmlake_config<borrowed_device>) {
  std::uint64_t const seed = from_environment("GMLAKE_TEST_SEED", 1);
  for (std::size_t threads : {2u, 3u, 8u}) walk_together<Config>(threads, seed, 1500);
}
