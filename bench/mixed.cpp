/// A steady state of mixed sizes: one live block in 10^2 to 10^6, chosen at random, is replaced by one of another size.
///
/// At 10^6 blocks neither the blocks' nodes nor the table of addresses fit a cache, so that a pair costs a handful of
/// accesses to memory whatever the algorithm does; how the time grows beyond them is what to look at. Fragmentation is
/// that of random lifetimes, which no training run has.

#include "bench/loaded_pool.hpp"
#include "bench/presets.hpp"

namespace gmlake::bench {
namespace {

template <class Make>
void mixed(benchmark::State& state) {
  auto& with = loaded(Make{}, state.range(0), {.settled = true});
  // Each thread replaces blocks of its own.
  auto const thread = static_cast<std::size_t>(state.thread_index());
  auto const threads = static_cast<std::size_t>(state.threads());
  std::size_t const share = with.live() / threads;
  quick_random random(thread + 1);
  std::size_t k = thread;
  for ([[maybe_unused]] auto _ : state) with.replace(random.below(share) * threads + thread, k += threads);
  if (state.thread_index() == 0) with.report(state);
}

void by_live_blocks(benchmark::internal::Benchmark* b) {
  b->ArgName("live")->RangeMultiplier(10)->Range(100, 1'000'000);
}
/// GMLake looks through all free memory for each stitch.
void by_fewer_live_blocks(benchmark::internal::Benchmark* b) {
  b->ArgName("live")->RangeMultiplier(10)->Range(100, 10'000);
}
void by_threads(benchmark::internal::Benchmark* b) {
  b->ArgName("live")->Arg(10'000)->ThreadRange(2, 8)->UseRealTime();
}

BENCHMARK(mixed<make_lake>)->Name("mixed/lake")->Apply(by_live_blocks);
BENCHMARK(mixed<make_lake_unlocked>)->Name("mixed/lake/unlocked")->Apply(by_live_blocks);
BENCHMARK(mixed<make_lake_tlsf>)->Name("mixed/lake/tlsf")->Apply(by_live_blocks);
BENCHMARK(mixed<make_gmlake>)->Name("mixed/gmlake")->Apply(by_fewer_live_blocks);
BENCHMARK(mixed<make_pytorch>)->Name("mixed/pytorch")->Apply(by_live_blocks);
BENCHMARK(mixed<make_expandable>)->Name("mixed/expandable")->Apply(by_live_blocks);
BENCHMARK(mixed<make_lake>)->Name("mixed/lake")->Apply(by_threads);
BENCHMARK(mixed<make_lake_tlsf>)->Name("mixed/lake/tlsf")->Apply(by_threads);
BENCHMARK(mixed<make_pytorch>)->Name("mixed/pytorch")->Apply(by_threads);

}  // namespace
}  // namespace gmlake::bench

BENCHMARK_MAIN();
