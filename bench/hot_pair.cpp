/// The hot pair: deallocate a block and allocate one of the same size, found at once, beside 10^2 to 10^6 live blocks.
///
/// `gap`: the block lies between live ones; the gap that it leaves is the best fit, exactly. `cut`: it is cut from a
/// larger free block and joined with it again. `unlocked` has a null mutex: the difference is what locking costs, which
/// `locking` also shows by itself. With more threads than cores the locked figures are the scheduler's.

#include <mutex>

#include "bench/loaded_pool.hpp"
#include "bench/presets.hpp"

namespace gmlake::bench {
namespace {

template <class Make>
void gap(benchmark::State& state) {
  auto& with = loaded(Make{}, state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    address& hot = with.hot(state.thread_index());
    expect(with.pool().deallocate(hot).has_value(), "a block can't be freed");
    hot = allocate_from(with.pool(), hot_size);
  }
  if (state.thread_index() == 0) with.report(state);
}

template <class Make>
void cut(benchmark::State& state) {
  auto& with = loaded(Make{}, state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    address const hot = allocate_from(with.pool(), hot_size);
    expect(with.pool().deallocate(hot).has_value(), "a block can't be freed");
  }
  if (state.thread_index() == 0) with.report(state);
}

/// What two turns of an uncontended lock cost, one for each half of a pair.
void locking(benchmark::State& state) {
  static std::mutex mutex;
  for ([[maybe_unused]] auto _ : state) {
    for (int half = 0; half < 2; ++half) {
      std::scoped_lock const lock(mutex);
      benchmark::ClobberMemory();
    }
  }
}

void by_live_blocks(benchmark::internal::Benchmark* b) {
  b->ArgName("live")->RangeMultiplier(10)->Range(100, 1'000'000);
}
/// GMLake looks through all free memory for each stitch, so that a pool of a million blocks takes minutes to fill.
void by_fewer_live_blocks(benchmark::internal::Benchmark* b) {
  b->ArgName("live")->RangeMultiplier(10)->Range(100, 100'000);
}
void by_threads(benchmark::internal::Benchmark* b) {
  b->ArgName("live")->Arg(10'000)->ThreadRange(2, loaded_pool<lake_pool<simulated>>::most_threads)->UseRealTime();
}

BENCHMARK(locking);
BENCHMARK(gap<make_lake>)->Name("gap/lake")->Apply(by_live_blocks);
BENCHMARK(gap<make_lake_unlocked>)->Name("gap/lake/unlocked")->Apply(by_live_blocks);
BENCHMARK(gap<make_lake_tlsf>)->Name("gap/lake/tlsf")->Apply(by_live_blocks);
BENCHMARK(gap<make_lake_tlsf_unlocked>)->Name("gap/lake/tlsf/unlocked")->Apply(by_live_blocks);
BENCHMARK(gap<make_gmlake>)->Name("gap/gmlake")->Apply(by_fewer_live_blocks);
BENCHMARK(gap<make_pytorch>)->Name("gap/pytorch")->Apply(by_live_blocks);
BENCHMARK(gap<make_expandable>)->Name("gap/expandable")->Apply(by_live_blocks);
BENCHMARK(cut<make_lake>)->Name("cut/lake")->Apply(by_live_blocks);
BENCHMARK(cut<make_lake_unlocked>)->Name("cut/lake/unlocked")->Apply(by_live_blocks);
BENCHMARK(cut<make_lake_tlsf_unlocked>)->Name("cut/lake/tlsf/unlocked")->Apply(by_live_blocks);
BENCHMARK(cut<make_pytorch>)->Name("cut/pytorch")->Apply(by_live_blocks);
BENCHMARK(gap<make_lake>)->Name("gap/lake")->Apply(by_threads);
BENCHMARK(gap<make_lake_tlsf>)->Name("gap/lake/tlsf")->Apply(by_threads);
BENCHMARK(gap<make_pytorch>)->Name("gap/pytorch")->Apply(by_threads);

}  // namespace
}  // namespace gmlake::bench

BENCHMARK_MAIN();
