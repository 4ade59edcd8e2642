/// Beside allocators of host memory: Boost.Interprocess's `rbtree_best_fit`, mimalloc and jemalloc.
///
/// What can be compared: the time of a hot pair and of mixed sizes, by live blocks, and how much memory is held for
/// what is requested. All serve the same sequence of sizes, a 64th of the other benchmarks', because here the memory
/// is real.
///
/// What can't: the peers keep their books in the memory that they serve (a header before each block, a list through
/// the free ones), which device memory does not allow, and so have a block's record at hand where gmlake looks an
/// address up. mimalloc and jemalloc are for many small blocks: they round sizes up to classes, serve a thread from a
/// cache of its own without a lock, and know neither streams nor a limit on what is held. `rbtree_best_fit` is the
/// nearest relative, best fit with coalescing over one fixed segment, but never grows. None can join memory that is
/// apart. `unlocked` pools stand for what a thread cache saves in locking.

#include <algorithm>
#include <string>

#ifdef GMLAKE_BENCH_MIMALLOC
#include <mimalloc.h>
#endif
#ifdef GMLAKE_BENCH_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#include "bench/loaded_pool.hpp"
#include "bench/presets.hpp"
#include "bench/support/interprocess.hpp"

namespace gmlake::bench {
namespace {

constexpr bytes divisor = 64;

/// An allocator of host memory under the interface of a pool. `Host` has allocate(n), deallocate(p), and held(): the
/// bytes that it has of the system, those of the whole process where it serves all of that; then only the larger
/// numbers of blocks say something.
template <class Host>
class host_pool {
 public:
  using host = Host;

  [[nodiscard]] result<address> allocate(bytes n, stream) noexcept {
    void* const p = host_.allocate(n);
    if (p == nullptr) return failure(errc::out_of_memory, "allocate");
    return to_address(p);
  }
  [[nodiscard]] result<void> deallocate(address a) noexcept {
    host_.deallocate(to_pointer(a));
    return {};
  }
  [[nodiscard]] pool_stats stats() const noexcept {
    pool_stats s;
    s.reserved.add(host_.held());
    return s;
  }

 private:
  Host host_;
};

#ifdef GMLAKE_BENCH_MIMALLOC
struct mimalloc {
  using gives_back = void;
  [[nodiscard]] static void* allocate(bytes n) noexcept { return mi_malloc(n); }
  static void deallocate(void* p) noexcept { mi_free(p); }
  [[nodiscard]] static bytes held() noexcept {
    std::size_t committed = 0;
    mi_process_info(nullptr, nullptr, nullptr, nullptr, nullptr, &committed, nullptr, nullptr);
    return committed;
  }
};
#endif

#ifdef GMLAKE_BENCH_JEMALLOC
struct jemalloc {
  using gives_back = void;
  [[nodiscard]] static void* allocate(bytes n) noexcept { return mallocx(n, 0); }
  static void deallocate(void* p) noexcept { dallocx(p, 0); }
  [[nodiscard]] static bytes held() noexcept {
    std::uint64_t epoch = 1;
    std::size_t held = 0;
    std::size_t size = sizeof(epoch);
    (void)mallctl("epoch", &epoch, &size, &epoch, size);
    size = sizeof(held);
    (void)mallctl("stats.active", &held, &size, nullptr, 0);
    return held;
  }
};
#endif

template <class Host>
struct make_host {
  auto operator()() const { return std::make_unique<host_pool<Host>>(); }
};

/// Peaks, but for an allocator that gives memory back of itself: of that, what is requested and held at the end.
template <class P>
void report(benchmark::State& state, loaded_pool<P>& with) {
  constexpr bool gives_back = requires { typename P::host::gives_back; };
  report_memory(state, gives_back ? with.requested() : with.peak_requested(), with.pool().stats().reserved.peak);
}

template <class Make>
void hot_pair(benchmark::State& state) {
  auto& with = loaded(Make{}, state.range(0), {.divisor = divisor});
  for ([[maybe_unused]] auto _ : state) {
    address& hot = with.hot(0);
    expect(with.pool().deallocate(hot).has_value(), "a block can't be freed");
    hot = allocate_from(with.pool(), hot_size / divisor);
  }
  report(state, with);
}

template <class Make>
void mixed(benchmark::State& state) {
  auto& with = loaded(Make{}, state.range(0), {.divisor = divisor, .settled = true});
  quick_random random(1);
  std::size_t k = 0;
  bytes requested = with.requested();
  bytes most = requested;
  for ([[maybe_unused]] auto _ : state)
    most = std::max(most, requested += with.replace(random.below(with.live()), ++k));
  with.note_requested(most);
  with.note_requested(requested);
  report(state, with);
}

template <class Make>
void add(std::string const& name) {
  for (auto const& [kind, run] : {std::pair("hot_pair/", &hot_pair<Make>), std::pair("mixed/", &mixed<Make>)}) {
    benchmark::RegisterBenchmark((kind + name).c_str(), run)->ArgName("live")->RangeMultiplier(10)->Range(100, 100'000);
  }
}

}  // namespace
}  // namespace gmlake::bench

int main(int argc, char** argv) {
  using namespace gmlake::bench;
  benchmark::Initialize(&argc, argv);
  add<make_lake>("lake");
  add<make_lake_unlocked>("lake/unlocked");
  add<make_lake_tlsf_unlocked>("lake/tlsf/unlocked");
  add<make_host<interprocess>>("interprocess/unlocked");
#ifdef GMLAKE_BENCH_MIMALLOC
  add<make_host<mimalloc>>("mimalloc");
#endif
#ifdef GMLAKE_BENCH_JEMALLOC
  add<make_host<jemalloc>>("jemalloc");
#endif
  benchmark::RunSpecifiedBenchmarks();
}
