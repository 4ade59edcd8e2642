/// What the driver's calls that map memory take beside copies, each way and without any, in one piece and in pieces
/// that let them in between; and whether they hold up another thread that queues work meanwhile, or it them. In
/// microseconds, and what the copies carry without mappings and with them. Then what it takes to copy a single number
/// each way, and 64 MiB in, behind a gigabyte of such copies. Exits with 77 without a GPU.
///
///     gmlake-bench-mapping [--mib=8] [--rounds=200]

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmlake/backend/cuda_pinned.hpp"
#include "gmlake/backend/cuda_vmm.hpp"
#include "gmlake/stream/cuda_events.hpp"
#include "gmlake/swap/cuda_copier.hpp"

namespace gmlake::bench {
namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void fail(error const& e) {
  (void)std::fprintf(stderr, "%s: %s (%d)\n", e.call, to_string(e.code), e.native);
  std::exit(e.code == errc::no_driver ? 77 : 1);
}
template <class T>
T must(result<T> r) {
  if (!r) fail(r.error());
  return *std::move(r);
}
void must(result<void> const& r) {
  if (!r) fail(r.error());
}

/// In microseconds.
class times {
 public:
  template <class Call>
  void add(Call call) {
    auto const began = clock::now();
    call();
    all_.push_back(std::chrono::duration<double, std::micro>(clock::now() - began).count());
  }
  /// Precondition: there is one.
  [[nodiscard]] double quantile(double q) {
    auto const nth = all_.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(all_.size() - 1));
    std::ranges::nth_element(all_, nth);
    return *nth;
  }

 private:
  std::vector<double> all_;
};

/// A handle, at an address.
struct mapped {
  handle memory{};
  address at{};
};

[[nodiscard]] mapped map(cuda_vmm& device, bytes n) {
  mapped const m{must(device.create(n)), must(device.reserve(n, device.granularity()))};
  must(device.map(m.at, n, m.memory));
  must(device.set_access(m.at, n, access::read_write));
  return m;
}

/// Does something over and over in a thread of its own, as long as it lives.
template <class Work>
class beside {
 public:
  explicit beside(Work work)
      : thread_([this, work = std::move(work)]() mutable {
          while (!over_.load(std::memory_order_relaxed)) work();
        }) {}
  beside(beside const&) = delete;
  beside& operator=(beside const&) = delete;
  ~beside() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

enum class way : std::uint8_t { none, in, in_in_one, out, out_in_one };

/// Keeps the link busy one way; there are always two copies under way. Adds the bytes of those that are over to a
/// count.
class traffic {
 public:
  traffic(way w, std::atomic<bytes>& carried)
      : way_(w),
        carried_(&carried),
        device_(must(cuda_vmm::open())),
        copies_(must(swap::cuda_copier::open({.gated = w != way::in_in_one && w != way::out_in_one}))) {
    there_ = map(device_, size).at;
    here_ = must(host_.allocate(size));
  }
  traffic(traffic&&) = default;

  void operator()() {
    if (way_ == way::none) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto const now = queue();
    if (auto before = std::exchange(before_, now); before.event != nullptr) {
      await(before);
      *carried_ += size;
    }
  }

  /// Another copy, and what is over when it is.
  cuda_events::fence queue() {
    if (way_ == way::none) return must(streams_.record(copies_.stream_in()));
    bool const in = way_ == way::in || way_ == way::in_in_one;
    must(in ? copies_.copy_in(there_, here_, size) : copies_.copy_out(here_, there_, size));
    return must(streams_.record(in ? copies_.stream_in() : copies_.stream_out()));
  }
  void await(cuda_events::fence& f) {
    must(streams_.synchronize(f));
    streams_.release(f);
  }

  static constexpr bytes size = 64_MiB;

 private:
  way way_;
  std::atomic<bytes>* carried_;
  cuda_vmm device_;
  cuda_pinned host_ = must(cuda_pinned::open());
  cuda_events streams_ = must(cuda_events::open());
  swap::cuda_copier copies_;
  address there_{}, here_{};
  cuda_events::fence before_;
};

/// Queues little copies within the device, and times that.
class queueing {
 public:
  explicit queueing(times& into) : into_(&into), device_(must(cuda_vmm::open())) {
    at_ = map(device_, device_.granularity()).at;
  }

  void operator()() {
    for (int i = 0; i < 8; ++i) {
      into_->add([this] { must(copies_.copy_in(at_, at_ + 4_KiB, 256)); });
    }
    auto now = must(streams_.record(copies_.stream_in()));
    must(streams_.synchronize(now));
    streams_.release(now);
  }

 private:
  times* into_;
  cuda_vmm device_;
  cuda_events streams_ = must(cuda_events::open());
  swap::cuda_copier copies_ = must(swap::cuda_copier::open());
  address at_{};
};

/// What mapping and giving back a handle takes, call by call.
struct mapping_times {
  times create, map, access_to, unmap, release;

  void measure(bytes n, int rounds) {
    auto device = must(cuda_vmm::open());
    address const at = must(device.reserve(n, device.granularity()));
    for (int i = 0; i < rounds; ++i) {
      handle h{};
      create.add([&] { h = must(device.create(n)); });
      map.add([&] { must(device.map(at, n, h)); });
      access_to.add([&] { must(device.set_access(at, n, access::read_write)); });
      unmap.add([&] { must(device.unmap(at, n)); });
      release.add([&] { must(device.release(h)); });
    }
    must(device.unreserve(at, n));
  }
};

/// What is added to a count while `work` is done, in 10⁹ a second.
template <class Work>
[[nodiscard]] double rate_during(std::atomic<bytes> const& count, Work work) {
  bytes const before = count;
  auto const began = clock::now();
  work();
  return static_cast<double>(count - before) / std::chrono::duration<double, std::nano>(clock::now() - began).count();
}

void row(char const* name, way w, bytes n, int rounds) {
  mapping_times alone, with_other;
  times queued_alone, queued;
  std::atomic<bytes> carried{0};
  beside const busy{traffic(w, carried)};
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until it is
  double const undisturbed = rate_during(carried, [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
  double const disturbed = rate_during(carried, [&] { alone.measure(n, rounds); });
  {
    beside const other{queueing(queued_alone)};
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  {
    beside const other{queueing(queued)};
    with_other.measure(n, rounds);
  }
  std::printf("%-14s", name);
  for (times* t : {&alone.create, &alone.map, &alone.access_to, &alone.unmap, &alone.release, &with_other.access_to}) {
    std::printf(" %8.1f", t->quantile(0.5));
  }
  for (times* t : {&queued_alone, &queued}) {
    for (double const q : {0.5, 0.99, 0.999}) std::printf(" %8.1f", t->quantile(q));
  }
  std::printf(" %8.1f %8.1f\n", undisturbed, disturbed);
  (void)std::fflush(stdout);
}

/// Others' copies behind those that have been queued before.
void others_row(char const* name, way w) {
  constexpr int rounds = 9;
  std::atomic<bytes> carried{0};
  traffic busy(w, carried);
  auto device = must(cuda_vmm::open());
  auto host = must(cuda_pinned::open());
  auto streams = must(cuda_events::open());
  auto copies = must(swap::cuda_copier::open({.gated = false}));
  address const there = map(device, traffic::size).at, here = must(host.allocate(traffic::size));
  times in, out, batch, all;
  auto const over = [&](stream on) {
    auto f = must(streams.record(on));
    must(streams.synchronize(f));
    streams.release(f);
  };
  for (int i = 0; i < rounds; ++i) {
    all.add([&] {
      cuda_events::fence last = busy.queue();
      for (bytes n = traffic::size; n < 1_GiB; n += traffic::size) {
        streams.release(last);
        last = busy.queue();
      }
      in.add([&] { must(copies.copy_in(there, here, sizeof(float))), over(copies.stream_in()); });
      out.add([&] { must(copies.copy_out(here, there, sizeof(float))), over(copies.stream_out()); });
      batch.add([&] { must(copies.copy_in(there, here, traffic::size)), over(copies.stream_in()); });
      busy.await(last);
    });
  }
  std::printf("%-14s %12.1f %12.1f %12.1f %12.1f\n", name, in.quantile(0.5), out.quantile(0.5), batch.quantile(0.5),
              all.quantile(0.5));
  (void)std::fflush(stdout);
}

/// Of `--name=N`.
[[nodiscard]] int number(std::string_view given, std::string_view name) {
  int n = 0;
  auto const text = given.substr(name.size());
  auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (code == std::errc{} && end == text.data() + text.size() && n > 0 && n <= 1'000'000) return n;
  (void)std::fprintf(stderr, "%.*s takes a whole number from 1 to 1000000\n", static_cast<int>(name.size()),
                     name.data());
  std::exit(2);
}

int run(int argc, char** argv) {
  int mib = 8, rounds = 200;
  for (int i = 1; i < argc; ++i) {
    std::string_view const given = argv[i];
    if (given.starts_with("--mib=")) mib = number(given, "--mib=");
    else if (given.starts_with("--rounds=")) rounds = number(given, "--rounds=");
    else {
      (void)std::fprintf(stderr, "unknown option %s; there are --mib=N and --rounds=N\n", argv[i]);
      return 2;
    }
  }
  auto const device = must(cuda_vmm::open());
  bytes const granule = device.granularity();
  bytes const n = (static_cast<bytes>(mib) * 1_MiB + granule - 1) / granule * granule;
  std::printf("handles of %llu MiB, %d rounds: medians; of queueing also 99 and 99.9%%\n",
              static_cast<unsigned long long>(n / 1_MiB), rounds);
  std::printf("%-14s %8s %8s %8s %8s %8s %8s %26s %26s %17s\n", "us beside", "create", "map", "access", "unmap",
              "release", "access*", "queueing alone", "while mapping", "GB/s, mapping");
  row("nothing", way::none, n, rounds);
  row("copies in", way::in, n, rounds);
  row("copies out", way::out, n, rounds);
  row("out, in one", way::out_in_one, n, rounds);
  std::printf("* while another thread queues work\n");
  std::printf("%-14s %12s %12s %12s %12s\n", "us behind", "number in", "then out", "then 64 MiB", "all in all");
  others_row("nothing", way::none);
  others_row("copies in", way::in);
  others_row("in, in one", way::in_in_one);
  others_row("copies out", way::out);
  others_row("out, in one", way::out_in_one);
  return 0;
}

}  // namespace
}  // namespace gmlake::bench

int main(int argc, char** argv) { return gmlake::bench::run(argc, argv); }
