/// `pause` and `resume` of a device's memory against the channel: how fast N GiB of blocks leave for host memory that
/// is pinned already, and come back, unmapping, releasing, creating and mapping included; beside the rate that the same
/// copies reach by themselves. The contents are compared bit by bit, the memory is seen to be the device's in between,
/// and on demand another process takes and uses all of it meanwhile. For a time after its end copies are slower:
/// `--rest-ms` waits before the memory is resumed. Exits with 1 where a check fails or the rate is below the bar, with
/// 77 without a GPU.
///
///     gmlake-bench-pause [--gib=40] [--block-mib=256] [--rounds=3] [--bar=0.85] [--host=mapped|plain]
///                        [--tenant] [--rest-ms=0]

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gmlake/backend/cuda_pinned.hpp"
#include "gmlake/backend/cuda_vmm.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/stream/cuda_events.hpp"
#include "gmlake/swap/calibrate.hpp"
#include "gmlake/swap/cuda_copier.hpp"
#include "gmlake/swap/pin_ahead.hpp"
#include "gmlake/swap/swapping_pool.hpp"

namespace gmlake::bench {
namespace {

using clock = std::chrono::steady_clock;
using device_pool = lake_pool<cuda_vmm, cuda_events>;
using mapped_host = lake_pool<cuda_vmm>;
using plain_host = lake_pool<placed_memory<cuda_pinned>>;

struct settings {
  bytes total = 40_GiB;
  bytes block = 256_MiB;
  int rounds = 3;
  double bar = 0.85;
  bool plain = false;
  bool tenant = false;     ///< another process uses the memory meanwhile
  long rest_ms = 0;        ///< after that process's end
  bytes is_tenant_of = 0;  ///< this is that process, and takes so much
};

[[noreturn]] void fail(char const* what, error const& e) {
  (void)std::fprintf(stderr, "%s: %s: %s (%d)\n", what, e.call, to_string(e.code), e.native);
  std::exit(1);
}
[[noreturn]] void fail(char const* what) {
  (void)std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}
template <class T>
T must(char const* what, result<T> r) {
  if (!r) fail(what, r.error());
  return *std::move(r);
}
inline void must(char const* what, result<void> const& r) {
  if (!r) fail(what, r.error());
}

[[nodiscard]] double seconds_since(clock::time_point began) {
  return std::chrono::duration<double>(clock::now() - began).count();
}
[[nodiscard]] double gib(bytes n) { return static_cast<double>(n) / static_cast<double>(1_GiB); }
[[nodiscard]] double gigabytes(bytes n) { return static_cast<double>(n) * 1e-9; }

/// Fills device memory with words that tell where they belong, and compares, by copies through pinned memory.
template <class Host>
class marker {
 public:
  marker(Host& host, cuda_events& streams, swap::cuda_copier& copies)
      : streams_(&streams), copies_(&copies), pattern_(must("pattern", host.allocate(window + spread, stream{}))) {
    for (address& a : back_) a = must("staging", host.allocate(window, stream{}));
    auto* const words = static_cast<std::uint64_t*>(to_pointer(pattern_));
    for (std::uint64_t i = 0; i < (window + spread) / sizeof(std::uint64_t); ++i) words[i] = mixed(i);
  }

  /// The n bytes at `at` become those of `seed`.
  void write(address at, bytes n, std::uint64_t seed) {
    for (bytes done = 0; done < n; done += window) {
      must("copy", copies_->copy_in(at + done, source(seed, done), std::min(window, n - done)));
    }
    wait(copies_->stream_in());
  }
  /// How many windows of the n bytes at `at` are not those of `seed`.
  [[nodiscard]] std::size_t compare(address at, bytes n, std::uint64_t seed) {
    std::size_t wrong = 0;
    fetch(at, 0, n);
    for (bytes done = 0; done < n; done += window) {
      wait(copies_->stream_out());
      if (done + window < n) fetch(at, done + window, n);
      bytes const size = std::min(window, n - done);
      if (std::memcmp(to_pointer(back_[turn(done)]), to_pointer(source(seed, done)), size) != 0) ++wrong;
    }
    return wrong;
  }

 private:
  static constexpr bytes window = 64_MiB;
  static constexpr bytes spread = 8_MiB;  ///< by which windows begin at different words

  [[nodiscard]] static std::uint64_t mixed(std::uint64_t z) {  // splitmix64
    z = (z + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  [[nodiscard]] static std::size_t turn(bytes done) { return done / window % 2; }
  [[nodiscard]] address source(std::uint64_t seed, bytes done) const {
    return pattern_ + mixed(seed << 32 | done / window) % (spread / 512) * 512;
  }
  void fetch(address at, bytes done, bytes n) {
    must("copy", copies_->copy_out(back_[turn(done)], at + done, std::min(window, n - done)));
  }
  void wait(stream on) {
    auto f = must("record", streams_->record(on));
    must("synchronize", streams_->synchronize(f));
    streams_->release(f);
  }

  cuda_events* streams_;
  swap::cuda_copier* copies_;
  address pattern_;
  std::array<address, 2> back_{};
};

constexpr bytes beside = 512_MiB;  ///< host memory for the pattern, staging and calibration

/// The process that uses the memory meanwhile: takes it, writes it, looks at it.
template <class Host>
int be_tenant(Host& host, bytes n) {
  auto streams = must("events", cuda_events::open());
  auto copies = must("copier", swap::cuda_copier::open());
  device_pool device(must("device", cuda_vmm::open()), must("events", cuda_events::open()));
  marker<Host> marks(host, streams, copies);
  std::vector<address> blocks;
  bytes const each = 1_GiB;
  for (bytes taken = 0; taken < n; taken += each) blocks.push_back(must("allocate", device.allocate(each)));
  for (std::size_t i = 0; i < blocks.size(); ++i) marks.write(blocks[i], each, 1'000'000 + i);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) wrong += marks.compare(blocks[i], each, 1'000'000 + i);
  std::printf("  tenant: %.0f GiB taken, written and read back, %zu windows wrong\n", gib(blocks.size() * each), wrong);
  return wrong == 0 ? 0 : 1;
}

[[nodiscard]] bool let_tenant_in(settings const& s, bytes n) {
  (void)std::fflush(stdout);
  std::string self = "/proc/self/exe";
  std::string task = "--tenant-of=" + std::to_string(n);
  std::string host = s.plain ? "--host=plain" : "--host=mapped";
  std::array<char*, 4> arguments{self.data(), task.data(), host.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) return false;
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <class Host>
int measure(settings const& s, Host& host) {
  auto streams = must("events", cuda_events::open());
  auto copies = must("copier", swap::cuda_copier::open({.gated = false}));
  device_pool device(must("device", cuda_vmm::open()), must("events", cuda_events::open()));
  auto const free_now = [&] { return must("memory_info", device.backend().memory_info()).free; };

  auto began = clock::now();
  must("pin_ahead", swap::pin_ahead(host, s.total + beside));
  std::printf("%.1f GiB of host memory pinned in %.1f s\n", gib(s.total + beside), seconds_since(began));
  marker<Host> marks(host, streams, copies);
  swap::channel const link = must("calibrate", swap::calibrate(device, host, streams, copies));
  (void)must("trim", device.trim());
  auto const rate = [](swap::lane const& l) { return static_cast<double>(l.bytes_per_second) * 1e-9; };
  std::printf("channel: out %.1f GB/s + %.1f us, in %.1f GB/s + %.1f us\n", rate(link.out),
              static_cast<double>(link.out.latency.count()) * 1e-3, rate(link.in),
              static_cast<double>(link.in.latency.count()) * 1e-3);

  swap::swapping_pool pool(device, host, must("events", cuda_events::open()),
                           must("copier", swap::cuda_copier::open()));
  swap::tag const group{1};
  std::vector<address> blocks;
  for (bytes taken = 0; taken < s.total; taken += s.block) {
    blocks.push_back(must("allocate", pool.allocate(s.block, stream{}, group)));
  }
  bytes const moved = blocks.size() * s.block;
  bool good = true;
  for (int round = 0; round < s.rounds; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      marks.write(blocks[i], s.block, static_cast<std::uint64_t>(round) << 20 | i);
    }
    bytes const before = free_now();
    began = clock::now();
    swap::pause_outcome const paused = pool.pause(group);
    double const out = gigabytes(moved) / seconds_since(began);
    if (paused.stayed > 0) fail("pause", paused.why);
    bytes const meanwhile = free_now();
    bool const returned = meanwhile >= before + moved;
    bool tenant = true;
    if (s.tenant) tenant = let_tenant_in(s, (meanwhile - 2_GiB) / 1_GiB * 1_GiB);  // the rest: its context
    if (s.tenant) std::this_thread::sleep_for(std::chrono::milliseconds(s.rest_ms));
    began = clock::now();
    swap::pause_outcome const resumed = pool.resume(group);
    double const in = gigabytes(moved) / seconds_since(began);
    if (resumed.stayed > 0) fail("resume", resumed.why);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      wrong += marks.compare(blocks[i], s.block, static_cast<std::uint64_t>(round) << 20 | i);
    }
    std::printf(
        "round %d: pause %.1f GB/s (%.0f%%), resume %.1f GB/s (%.0f%%) of %.1f GiB in %zu blocks; free before "
        "%.1f, paused %.1f, resumed %.1f GiB; %s%s\n",
        round, out, 100 * out / rate(link.out), in, 100 * in / rate(link.in), gib(moved), blocks.size(), gib(before),
        gib(meanwhile), gib(free_now()), wrong == 0 ? "bit-equal" : "CONTENTS DIFFER",
        returned ? "" : ", MEMORY NOT RETURNED");
    good = good && wrong == 0 && returned && tenant && out >= s.bar * rate(link.out) && in >= s.bar * rate(link.in);
  }
  std::printf("%s: bar %.0f%% of the channel\n", good ? "passed" : "FAILED", 100 * s.bar);
  return good ? 0 : 1;
}

[[nodiscard]] settings read(int argc, char** argv) {
  settings s;
  for (int i = 1; i < argc; ++i) {
    std::string_view const a = argv[i];
    auto const value = [&](std::string_view name) { return a.starts_with(name) ? argv[i] + name.size() : nullptr; };
    if (char const* const gibs = value("--gib=")) s.total = std::strtoull(gibs, nullptr, 10) * 1_GiB;
    else if (char const* const mibs = value("--block-mib=")) s.block = std::strtoull(mibs, nullptr, 10) * 1_MiB;
    else if (char const* const rounds = value("--rounds="))
      s.rounds = static_cast<int>(std::strtol(rounds, nullptr, 10));
    else if (char const* const bar = value("--bar=")) s.bar = std::strtod(bar, nullptr);
    else if (char const* const ms = value("--rest-ms=")) s.rest_ms = std::strtol(ms, nullptr, 10);
    else if (char const* const n = value("--tenant-of=")) s.is_tenant_of = std::strtoull(n, nullptr, 10);
    else if (a == "--host=plain") s.plain = true;
    else if (a == "--host=mapped") s.plain = false;
    else if (a == "--tenant") s.tenant = true;
    else
      fail(("there is no option " + std::string(a) +
            "\ngmlake-bench-pause [--gib=40] [--block-mib=256] [--rounds=3] [--bar=0.85] [--host=mapped|plain] "
            "[--tenant] [--rest-ms=0]")
               .c_str());
  }
  if (s.total == 0 || s.block == 0) fail("--gib and --block-mib are positive");
  if (s.rest_ms < 0) fail("--rest-ms is not negative");
  return s;
}

template <class Host>
int run(settings const& s, Host& host) {
  return s.is_tenant_of > 0 ? be_tenant(host, s.is_tenant_of) : measure(s, host);
}

int run(settings const& s) {
  if (auto const device = cuda_vmm::open(); !device) {
    std::printf("skipped: takes a GPU; %s\n", device.error().call);
    return 77;
  }
  pool_options const limit{.limit = s.is_tenant_of > 0 ? beside : s.total + beside};
  if (s.plain) {
    plain_host host(placed_memory(must("host", cuda_pinned::open())), limit);
    return run(s, host);
  }
  mapped_host host(must("host", cuda_vmm::open({.lies_on = cuda_vmm_options::location::host})), limit);
  return run(s, host);
}

}  // namespace
}  // namespace gmlake::bench

int main(int argc, char** argv) { return gmlake::bench::run(gmlake::bench::read(argc, argv)); }
