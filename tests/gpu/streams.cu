/// Memory that changes hands between streams: the kernels of whoever had it are never overtaken, and the host waits for
/// none of them.

#include <random>

#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/split/tlsf.hpp"
#include "tests/gpu/device.cuh"

using namespace gmlake;
using namespace gmlake::literals;
using namespace gmlake::test;

namespace {

using lake_of_gpu = lake_config<cuda_vmm, cuda_events>;

constexpr bytes whole = 64_MiB;          ///< of a pool that serves one block at a time
constexpr word long_time = 100'000'000;  ///< for which a stream stays busy; no host is as slow

}  // namespace

TEST_CASE("memory freed on one stream serves another after its kernels, and the host waits for none") {
  with_gpu<basic_pool<lake_of_gpu>> gpu({.limit = whole});
  checker kernels;
  cuda_stream const first, second;
  address const before = must(gpu.pool.allocate(whole, first.name()));
  kernels.write(before, whole, 1, first);
  kernels.delay(long_time, first);
  kernels.check(before, whole, 1, first);
  must(gpu.pool.deallocate(before));

  address const after = must(gpu.pool.allocate(whole, second.name()));
  kernels.write(after, whole, 2, second);
  kernels.check(after, whole, 2, second);
  CHECK(first.busy());
  CHECK(second.busy());
  CHECK(gpu.pool.stats().device_waits == 1);
  CHECK(gpu.pool.stats().host_waits == 0);
  CHECK(kernels.wrong_words() == 0);
}

TEST_CASE("without that order the same kernels find the memory overwritten, so that the test can tell") {
  // This pool takes all work to run in host order.
  lake_pool<cuda_vmm> pool(must(cuda_vmm::open()), {.limit = whole});
  checker kernels;
  cuda_stream const first, second;
  address const before = must(pool.allocate(whole, first.name()));
  kernels.write(before, whole, 1, first);
  kernels.delay(long_time, first);
  kernels.check(before, whole, 1, first);
  must(pool.deallocate(before));
  kernels.write(must(pool.allocate(whole, second.name())), whole, 2, second);
  CHECK(first.busy());
  CHECK(kernels.wrong_words() == whole / sizeof(word));
}

TEST_CASE("memory waits for the kernels of the streams recorded, as well as for its own stream's") {
  with_gpu<basic_pool<lake_of_gpu>> gpu({.limit = whole});
  checker kernels;
  cuda_stream const owner, user, next;
  address const block = must(gpu.pool.allocate(whole, owner.name()));
  kernels.write(block, whole, 1, owner);
  user.follow(owner);
  kernels.delay(long_time, user);
  kernels.check(block, whole, 1, user);
  must(gpu.pool.record_stream(block, user.name()));
  must(gpu.pool.deallocate(block));

  SUBCASE("for another stream") {
    kernels.write(must(gpu.pool.allocate(whole, next.name())), whole, 2, next);
    CHECK(next.busy());
  }
  SUBCASE("for its own stream") { kernels.write(must(gpu.pool.allocate(whole, owner.name())), whole, 2, owner); }
  CHECK(user.busy());
  CHECK(gpu.pool.stats().host_waits == 0);
  CHECK(kernels.wrong_words() == 0);
}

TEST_CASE("a block freed on another stream than its own waits for that one") {
  with_gpu<basic_pool<lake_of_gpu>> gpu({.limit = whole});
  checker kernels;
  cuda_stream const owner, last;
  address const block = must(gpu.pool.allocate(whole, owner.name()));
  kernels.write(block, whole, 1, owner);
  last.follow(owner);
  kernels.delay(long_time, last);
  kernels.check(block, whole, 1, last);
  must(gpu.pool.deallocate(block, last.name()));
  kernels.write(must(gpu.pool.allocate(whole, owner.name())), whole, 2, owner);
  CHECK(last.busy());
  CHECK(gpu.pool.stats().device_waits == 1);
  CHECK(kernels.wrong_words() == 0);
}

TEST_CASE("what a destroyed stream left serves others, after its kernels") {
  with_gpu<basic_pool<lake_of_gpu>> gpu({.limit = 2 * whole});
  checker kernels;
  cuda_stream const next;
  address freed_before{}, freed_after{};
  {
    cuda_stream const gone;
    freed_before = must(gpu.pool.allocate(whole, gone.name()));
    freed_after = must(gpu.pool.allocate(whole, gone.name()));
    kernels.write(freed_before, whole, 1, gone);
    kernels.write(freed_after, whole, 2, gone);
    kernels.delay(long_time, gone);
    kernels.check(freed_before, whole, 1, gone);
    kernels.check(freed_after, whole, 2, gone);
    must(gpu.pool.deallocate(freed_before));
    must(gpu.pool.retire_stream(gone.name()));
  }
  must(gpu.pool.deallocate(freed_after));
  address const block = must(gpu.pool.allocate(2 * whole, next.name()));
  kernels.write(block, 2 * whole, 3, next);
  kernels.check(block, 2 * whole, 3, next);
  CHECK(next.busy());
  CHECK(gpu.pool.stats().host_waits == 0);
  CHECK(kernels.wrong_words() == 0);
  CHECK(gpu.pool.validate() == nullptr);
}

TEST_CASE("a program with one stream records no event") {
  with_gpu<basic_pool<lake_of_gpu>> gpu({.limit = 4 * whole});
  checker kernels;
  cuda_stream const only;
  for (word i = 0; i < 1000; ++i) {
    bytes const size = (1 + i % 7) * 5_MiB;
    address const block = must(gpu.pool.allocate(size, only.name()));
    kernels.write(block, size, i, only);
    kernels.check(block, size, i, only);
    must(gpu.pool.deallocate(block));
  }
  CHECK(gpu.pool.streams().events() == 0);
  CHECK(kernels.wrong_words() == 0);
}

namespace {

/// A program of several streams at random: every block is written on its stream, checked there and on others, checked
/// once more at its end, and freed without waiting for any of that. Streams come and go.
template <PoolConfig Config>
class kernel_walk {
 public:
  struct options {
    std::size_t streams = 4;
    bytes limit = 2_GiB;
    bytes largest = 128_MiB;  ///< request
    int steps = 6000;
  };

  kernel_walk(options const& o, pool_policies<Config> policies, std::uint64_t seed)
      : options_(o), gpu_({.limit = o.limit}, std::move(policies)), streams_(o.streams), random_(seed) {}

  void run() {
    for (int i = 0; i < options_.steps; ++i) {
      step();
      if (i % 64 == 0) REQUIRE(gpu_.pool.validate() == nullptr);
    }
    pool_stats const s = gpu_.pool.stats();
    MESSAGE("stitches ", s.stitches_made, ", hits ", s.stitch_hits, ", evicted ",
            s.stitches_made - s.stitches_live - s.stitches_cached, ", waits on the device ", s.device_waits,
            " and the host ", s.host_waits, ", out of memory ", refusals_);
    CHECK(s.stitches_made > 0);
    CHECK(s.device_waits > 0);
    CHECK(s.reserved.peak <= options_.limit);
    CHECK(kernels_.wrong_words() == 0);
    while (!live_.empty()) deallocate(live_.size() - 1);
    must(gpu_.pool.trim());
    CHECK(gpu_.pool.stats().reserved.now == 0);
    CHECK(kernels_.wrong_words() == 0);
  }

 private:
  struct held {
    address at{};
    bytes size = 0;
    word seed = 0;
    std::size_t on = 0;
    bool orphaned = false;  ///< its stream is gone; `on` has come after it
  };

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  void step() {
    switch (below(64)) {
      case 0:
        if (below(16) == 0) must(gpu_.pool.trim());
        break;
      case 1:
        if (below(4) == 0) replace_stream(below(streams_.size()));
        break;
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7: use_elsewhere(); break;
      default:
        if (live_.empty() || below(100) < 56) allocate();
        else deallocate(below(live_.size()));
    }
  }

  /// As many of each magnitude.
  bytes some_size() {
    bytes const most = std::max(bytes{8}, options_.largest >> below(16));
    return align_up(1 + below(most), sizeof(word));
  }
  /// Now and then a kernel runs on for a while.
  word some_time() { return below(6) == 0 ? below(millisecond / 2) : no_time; }

  void allocate() {
    bytes const size = some_size();
    std::size_t const on = below(streams_.size());
    result<address> got = gpu_.pool.allocate(size, streams_[on].name());
    for (; !got && !live_.empty(); got = gpu_.pool.allocate(size, streams_[on].name())) {
      REQUIRE(got.error().code == errc::out_of_memory);
      ++refusals_;
      deallocate(below(live_.size()));
    }
    held const b{must(std::move(got)), size, ++seeds_, on};
    kernels_.write(b.at, b.size, b.seed, streams_[on]);
    live_.push_back(b);
  }

  void use_elsewhere() {
    if (live_.empty()) return;
    held const& b = live_[below(live_.size())];
    std::size_t const on = below(streams_.size());
    if (on != b.on) streams_[on].follow(streams_[b.on]);
    kernels_.check(b.at, b.size, b.seed, streams_[on], some_time());
    must(gpu_.pool.record_stream(b.at, streams_[on].name()));
  }

  void deallocate(std::size_t i) {
    held const b = live_[i];
    live_[i] = live_.back();
    live_.pop_back();
    kernels_.check(b.at, b.size, b.seed, streams_[b.on], some_time());
    std::size_t const last = below(streams_.size());
    if (below(4) != 0) {
      // Work on another stream than the allocating one has to be told.
      if (b.orphaned) must(gpu_.pool.record_stream(b.at, streams_[b.on].name()));
      must(gpu_.pool.deallocate(b.at));
      return;
    }
    if (last != b.on) streams_[last].follow(streams_[b.on]);
    kernels_.check(b.at, b.size, b.seed, streams_[last], some_time());
    must(gpu_.pool.deallocate(b.at, streams_[last].name()));
  }

  /// A stream is destroyed with its work under way, and a new one takes its place.
  void replace_stream(std::size_t i) {
    for (std::size_t k = 0; k < streams_.size(); ++k) {
      if (k != i) streams_[k].follow(streams_[i]);
    }
    must(gpu_.pool.retire_stream(streams_[i].name()));
    cuda_stream fresh;
    fresh.follow(streams_[i]);
    streams_[i] = std::move(fresh);
    for (held& b : live_) b.orphaned = b.orphaned || b.on == i;
  }

  options options_;
  checker kernels_;
  with_gpu<basic_pool<Config>> gpu_;
  std::vector<cuda_stream> streams_;
  std::mt19937_64 random_;
  std::vector<held> live_;
  word seeds_ = 0;
  int refusals_ = 0;
};

template <PoolConfig Config>
void walk(
    typename kernel_walk<Config>::options const& o = {},
    pool_policies<Config> (*policies)() = [] { return pool_policies<Config>{}; }) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    kernel_walk<Config>(o, policies(), seed).run();
  }
}

}  // namespace

TEST_CASE("kernels at random over the default lake") { walk<lake_of_gpu>(); }

TEST_CASE("kernels at random over a lake that keeps hardly a stitch") {
  walk<lake_of_gpu>({.streams = 3}, [] {
    return pool_policies<lake_of_gpu>{.growth = adaptive_chunks(adaptive_options::fixed(2_MiB)),
                                      .evict = lru({.stitches = 4, .mappings = 64, .addresses = 128_MiB})};
  });
}

TEST_CASE("kernels at random over a lake with two streams and a tight limit") {
  walk<lake_of_gpu::with_split<tlsf>>({.streams = 2, .limit = 512_MiB, .largest = 64_MiB});
}

TEST_CASE("kernels at random over GMLake's algorithm") { walk<gmlake_config<cuda_vmm, cuda_events>>(); }
