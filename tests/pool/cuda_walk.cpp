#if __has_include(<cuda.h>)

/// Walks over pools of a GPU's memory, with its events between streams: every block is filled and compared from the
/// host. No kernel runs; what kernels see is tests/gpu's affair.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/backend/cuda_vmm.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/split/tlsf.hpp"
#include "gmlake/stream/cuda_events.hpp"
#include "tests/backend/must.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// The two default streams; others would take the runtime to create.
constexpr std::array<stream, 2> streams{stream{}, stream{2}};

template <PoolConfig Config>
class cuda_walk {
 public:
  static constexpr bytes limit = bytes{512} << 20;
  static constexpr bytes largest = bytes{48} << 20;  ///< request

  cuda_walk(cuda_vmm device, cuda_events events, std::uint64_t seed)
      : pool_(std::move(device), std::move(events), {.limit = limit}), random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      if (live_.empty() || below(100) < 55) allocate();
      else deallocate(below(live_.size()));
      if (!live_.empty() && below(8) == 0) must(pool_.record_stream(live_[below(live_.size())].at, some_stream()));
      if (below(200) == 0) must(pool_.trim());
      if (i % 32 == 0) REQUIRE(pool_.validate() == nullptr);
    }
    CHECK(pool_.stats().stitches_made > 0);
    CHECK(pool_.stats().reserved.peak <= limit);
    while (!live_.empty()) deallocate(live_.size() - 1);
    must(pool_.trim());
    CHECK(pool_.stats().reserved.now == 0);
    CHECK(pool_.stats().stitches_cached == 0);
    CHECK(pool_.validate() == nullptr);
  }

 private:
  struct held {
    address at{};
    bytes size = 0;
    std::uint64_t seed = 0;
  };

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  stream some_stream() { return streams[below(streams.size())]; }

  void allocate() {
    bytes const size = below(1 + (largest >> below(16)));
    result<address> got = pool_.allocate(size, some_stream());
    for (; !got && !live_.empty(); got = pool_.allocate(size, some_stream())) {
      REQUIRE(got.error().code == errc::out_of_memory);
      deallocate(below(live_.size()));
    }
    held const b{must(std::move(got)), size, random_()};
    must(pool_.backend().write(b.at, pattern(b)));
    live_.push_back(b);
  }

  void deallocate(std::size_t i) {
    held const b = live_[i];
    live_[i] = live_.back();
    live_.pop_back();
    std::vector<std::byte> found(b.size);
    must(pool_.backend().read(found, b.at));
    auto const expected = pattern(b);
    CHECK((found.empty() || std::memcmp(found.data(), expected.data(), found.size()) == 0));
    must(below(4) == 0 ? pool_.deallocate(b.at, some_stream()) : pool_.deallocate(b.at));
  }

  /// A block's bytes: no two blocks agree anywhere for long.
  std::span<std::byte const> pattern(held const& b) {
    words_.resize(b.size / sizeof(std::uint64_t) + 1);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = (b.seed ^ i) * 0x9e3779b97f4a7c15;
    return std::as_bytes(std::span(words_)).first(b.size);
  }

  basic_pool<Config> pool_;
  std::mt19937_64 random_;
  std::vector<held> live_;
  std::vector<std::uint64_t> words_;
};

using lake_on_cuda = lake_config<cuda_vmm, cuda_events>;

}  // namespace

TEST_CASE_TEMPLATE("walks over a GPU's memory", Config, lake_on_cuda, lake_on_cuda::with_split<tlsf>,
                   gmlake_config<cuda_vmm, cuda_events>) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    auto device = cuda_vmm::open();
    auto events = cuda_events::open();
    if (!device || !events) {
      MESSAGE("skipped: ", describe(device ? events.error() : device.error()));
      return;
    }
    cuda_walk<Config>(*std::move(device), *std::move(events), seed).run(1000);
  }
}

#endif  // cuda.h
