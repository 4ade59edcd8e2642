/// A channel is measured as it is: with what a transfer costs beside its bytes, and the bytes' rate, each way.

#include "gmlake/swap/calibrate.hpp"

#include <thread>

#include "gmlake/backend/memfd.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/stream/one_stream.hpp"
#include "gmlake/swap/host_copier.hpp"
#include "gmlake/swap/pin_ahead.hpp"
#include "tests/backend/must.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using memory = basic_pool<pool_config<memfd>>;
using namespace std::chrono_literals;

[[nodiscard]] memory pool_of(bytes n) {
  return memory(must(memfd::open({.capacity = n})), pool_options{.small_chunk = 64_KiB});
}

/// A link that takes a latency, and a time a byte; out is slower than in.
struct slow_copier {
  static constexpr std::chrono::nanoseconds latency = 200us;

  [[nodiscard]] stream stream_out() const noexcept { return stream{1}; }
  [[nodiscard]] stream stream_in() const noexcept { return stream{2}; }
  [[nodiscard]] result<void> copy_out(address, address, bytes n) noexcept { return take(n * 2); }
  [[nodiscard]] result<void> copy_in(address, address, bytes n) noexcept { return take(n); }
  [[nodiscard]] static result<void> take(bytes n) noexcept {
    auto const until = std::chrono::steady_clock::now() + latency + std::chrono::nanoseconds(n);  // 1 GB/s
    while (std::chrono::steady_clock::now() < until) {
    }
    return {};
  }
};

struct failing_copier : slow_copier {
  [[nodiscard]] result<void> copy_out(address, address, bytes) noexcept {
    return failure(errc::driver_failure, "copy_out");
  }
};

}  // namespace

TEST_CASE("latency and rate are told apart, each way by itself") {
  memory device = pool_of(64_MiB);
  memory host = pool_of(64_MiB);
  one_stream streams;
  slow_copier copies;
  swap::channel const c =
      must(swap::calibrate(device, host, streams, copies, {.small = 4_KiB, .small_copies = 4, .large = 4_MiB}));
  // A busy machine makes copies longer, never shorter: generous above.
  CHECK(c.in.latency > 150us);
  CHECK(c.in.latency < 50ms);
  CHECK(c.in.bytes_per_second < 1'050'000'000);
  CHECK(c.in.bytes_per_second > 10'000'000);
  CHECK(c.out.bytes_per_second < 525'000'000);
  CHECK(device.stats().live.now == 0);
  CHECK(host.stats().live.now == 0);
}

TEST_CASE("the host's own copies have a rate too") {
  memory device = pool_of(64_MiB);
  memory host = pool_of(64_MiB);
  one_stream streams;
  swap::host_copier copies;
  swap::channel const c = must(swap::calibrate(device, host, streams, copies, {.large = 16_MiB}));
  CHECK(c.out.bytes_per_second > 1'000'000);
  CHECK(c.in.bytes_per_second > 1'000'000);
}

TEST_CASE("a channel that can't be measured costs no memory") {
  memory device = pool_of(64_MiB);
  memory host = pool_of(64_MiB);
  one_stream streams;
  failing_copier copies;
  CHECK(swap::calibrate(device, host, streams, copies, {.large = 1_MiB}).error().code == errc::driver_failure);
  memory none = pool_of(64_KiB);
  swap::host_copier good;
  CHECK(swap::calibrate(device, none, streams, good).error().code == errc::out_of_memory);
  CHECK(device.stats().live.now == 0);
  CHECK(host.stats().live.now == 0);
}

TEST_CASE("a host pool that was pinned ahead takes nothing more from the driver") {
  memory host = pool_of(32_MiB);
  must(swap::pin_ahead(host, 24_MiB));
  CHECK(host.stats().reserved.now >= 24_MiB);
  auto const creations = host.stats().reserved.peak;
  for (int i = 0; i < 6; ++i) (void)must(host.allocate(4_MiB));
  CHECK(host.stats().reserved.peak == creations);
  CHECK(swap::pin_ahead(host, 64_MiB).error().code == errc::out_of_memory);
}
