/// What a stitch costs by the number of its handles: host time, ours and the simulated driver's bookkeeping together,
/// beside what the driver's calls would take (`modelled`, for one H200).
///
/// `make`: the stitch is mapped (reserve, map and set_access); `end`: its block is freed, and with no room for idle
/// stitches it is unmapped at once; `hit`: a cached one serves a pair of allocate and deallocate, at no driver call.

#include <chrono>

#include "bench/loaded_pool.hpp"
#include "gmlake/grow/fixed_chunks.hpp"
#include "gmlake/pool/presets/lake.hpp"

namespace gmlake::bench {
namespace {

constexpr bytes chunk_size = 2_MiB;
using config = lake_config<simulated>::with_growth<fixed_chunks>;
using pool = basic_pool<config>;

/// A pool whose free memory is so many chunks, of which no two are neighbours.
[[nodiscard]] std::unique_ptr<pool> scattered(std::size_t chunks, lru_options idle) {
  auto p = std::make_unique<pool>(simulated{}, pool_options{},
                                  pool::policies{.growth = fixed_chunks(chunk_size), .evict = lru(idle)});
  std::vector<address> every_other;
  for (std::size_t i = 0; i < chunks; ++i) {
    every_other.push_back(allocate_from(*p, chunk_size));
    (void)allocate_from(*p, chunk_size);
  }
  for (address const a : every_other) expect(p->deallocate(a).has_value(), "a block can't be freed");
  return p;
}

using seconds = std::chrono::duration<double>;

/// Times allocation or free of a stitch of state.range(0) handles that is never cached.
void fresh(benchmark::State& state, bool timing_make) {
  auto const handles = static_cast<std::size_t>(state.range(0));
  auto const p = scattered(handles, {.stitches = 0});
  std::chrono::nanoseconds modelled{0};
  std::chrono::nanoseconds taken{0};
  for ([[maybe_unused]] auto _ : state) {
    auto const model_began = p->backend().now();
    auto const began = std::chrono::steady_clock::now();
    address const block = allocate_from(*p, handles * chunk_size);
    auto const made = std::chrono::steady_clock::now();
    auto const model_made = p->backend().now();
    expect(p->deallocate(block).has_value(), "a stitch can't be freed");
    auto const ended = std::chrono::steady_clock::now();
    auto const one = timing_make ? made - began : ended - made;
    state.SetIterationTime(seconds(one).count());
    taken += one;
    modelled += timing_make ? model_made - model_began : p->backend().now() - model_made;
  }
  pool_stats const s = p->stats();
  expect(s.stitches_made == static_cast<std::uint64_t>(state.iterations()), "not every block was stitched anew");
  double const stitches = static_cast<double>(state.iterations());
  state.counters["modelled_ns"] = static_cast<double>(modelled.count()) / stitches;
  state.counters["ns_a_handle"] = static_cast<double>(taken.count()) / stitches / static_cast<double>(handles);
  report_memory(state, s.requested.peak, s.reserved.peak);
}

void make(benchmark::State& state) { fresh(state, true); }
void end(benchmark::State& state) { fresh(state, false); }

void hit(benchmark::State& state) {
  auto const handles = static_cast<std::size_t>(state.range(0));
  auto const p = scattered(handles, {});
  for ([[maybe_unused]] auto _ : state) {
    address const block = allocate_from(*p, handles * chunk_size);
    expect(p->deallocate(block).has_value(), "a stitch can't be freed");
  }
  pool_stats const s = p->stats();
  expect(s.stitches_made == 1, "a block was stitched anew");
  report_memory(state, s.requested.peak, s.reserved.peak);
}

void by_handles(benchmark::internal::Benchmark* b) {
  b->ArgName("handles");
  for (int const n : {2, 8, 32, 128, 512, 2048}) b->Arg(n);
}

BENCHMARK(make)->Apply(by_handles)->UseManualTime();
BENCHMARK(end)->Apply(by_handles)->UseManualTime();
BENCHMARK(hit)->Apply(by_handles);

}  // namespace
}  // namespace gmlake::bench

BENCHMARK_MAIN();
