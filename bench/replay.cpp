/// Replays every trace through every preset: events a second, and what the memory came to.
///
///     gmlake-bench-replay [--benchmark_...] [folder of traces]       by default the shipped ones
///
/// The time is that of the events alone, as in `gmlake-replay`: neither reading the trace nor making the pool is in it.

#include "gmlake/trace/replay.hpp"

#include <chrono>

#include "bench/loaded_pool.hpp"
#include "bench/presets.hpp"
#include "bench/traces.hpp"

namespace gmlake::bench {
namespace {

template <class Preset>
void replay(benchmark::State& state, std::string const& path) {
  trace::trace const events = load(path);
  trace::replay_result last;
  double ns_per_op = 0;
  for ([[maybe_unused]] auto _ : state) {
    Preset::with_pool([&](auto& pool, auto& timeline) { last = trace::replay(events, pool, timeline); });
    expect(last.ok(), "the replay failed");
    ns_per_op += last.ns_per_op();
    state.SetIterationTime(std::chrono::duration<double>(last.elapsed).count());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(last.operations) * state.iterations());
  state.counters["ns_per_op"] = ns_per_op / static_cast<double>(state.iterations());
  report_memory(state, last.stats.requested.peak, last.stats.reserved.peak);
}

template <class Preset>
void add(std::string const& name, std::string const& path) {
  benchmark::RegisterBenchmark((name_of(path) + "/" + name).c_str(), replay<Preset>, path)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace gmlake::bench

int main(int argc, char** argv) {
  using namespace gmlake::bench;
  benchmark::Initialize(&argc, argv);
  for (std::string const& path : trace_paths(argc > 1 ? argv[1] : shipped_traces())) {
    add<of_lake>("lake", path);
    add<of_lake_tlsf>("lake/tlsf", path);
    add<of_gmlake>("gmlake", path);
    add<of_pytorch>("pytorch", path);
    add<of_expandable>("expandable", path);
  }
  benchmark::RunSpecifiedBenchmarks();
}
