// What chunk sizes cost and save: every trace in a folder, replayed by `lake` at five scales with several growth
// policies. Prints mean, 90th percentile and worst fragmentation, and the driver's modelled time over all replays.
//
//     gmlake-bench-growth [FOLDER]        default: the traces that come with the project

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/command_line.hpp"
#include "bench/traces.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/grow/adaptive_chunks.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "gmlake/trace/replay.hpp"
#include "gmlake/trace/summary.hpp"

namespace {

using namespace gmlake;
using pool = lake_pool<simulated, simulated_streams>;

struct variant {
  char const* name;
  adaptive_options growth;
};

constexpr adaptive_options by_pool_alone{.largest_for_deficit = 0, .largest_in_run = 0};
constexpr adaptive_options without_deficit{.largest_for_deficit = 0};
constexpr std::array variants = {
    variant{"adaptive_chunks, the default", {}},
    variant{"  without the deficit's share", without_deficit},
    variant{"  without runs either", by_pool_alone},
    variant{"8 MiB throughout", adaptive_options::fixed(8_MiB)},
    variant{"16 MiB throughout", adaptive_options::fixed(16_MiB)},
    variant{"32 MiB throughout", adaptive_options::fixed(32_MiB)},
    variant{"64 MiB throughout", adaptive_options::fixed(64_MiB)},
};

/// Sizes times these, so that each trace is several: which blocks meet which chunk boundaries is chance.
constexpr std::array scales = {0.91, 0.96, 1.0, 1.05, 1.12};
/// Blocks that small keep their size.
constexpr bytes smallest_scaled = 64_KiB;

trace::trace scaled(trace::trace t, double factor) {
  for (trace::event& e : t.events) {
    if (e.kind == trace::event_kind::allocate && e.size > smallest_scaled) {
      e.size = align_down(static_cast<bytes>(static_cast<double>(e.size) * factor), block_alignment);
    }
  }
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = bench::shipped_traces();
  CLI::App app{"What chunk sizes cost and save.", "gmlake-bench-growth"};
  bench::takes_folder(app, folder, "Of traces. Default: those that come with the project");
  if (auto const status = bench::status_of(app, argc, argv)) return *status;
  std::vector<trace::trace> traces;
  for (auto const& path : bench::trace_paths(folder.c_str())) {
    for (double const factor : scales) traces.push_back(scaled(bench::load(path), factor));
  }
  std::printf("%-30s %8s %6s %6s %12s   (%zu replays)\n", "growth", "mean", "p90", "worst", "driver ms", traces.size());
  for (variant const& v : variants) {
    std::vector<double> lost;
    double driver_ms = 0;
    for (trace::trace const& t : traces) {
      auto timeline = std::make_shared<simulated_timeline>();
      pool p(simulated({.capacity = simulated_options::unlimited}), simulated_streams(timeline), {},
             {.growth = adaptive_chunks(v.growth)});
      trace::replay_result const r = trace::replay(t, p, *timeline);
      if (!r.ok()) return std::fprintf(stderr, "a replay failed\n"), 1;
      lost.push_back(100.0 * (1.0 - static_cast<double>(trace::summarize(t).peak_requested) /
                                        static_cast<double>(r.stats.reserved.peak)));
      driver_ms += static_cast<double>(r.stats.driver.total().time.count()) / 1e6;
    }
    std::ranges::sort(lost);
    double const mean = std::accumulate(lost.begin(), lost.end(), 0.0) / static_cast<double>(lost.size());
    std::printf("%-30s %7.2f%% %5.2f%% %5.2f%% %12.1f\n", v.name, mean, lost[lost.size() * 9 / 10], lost.back(),
                driver_ms);
  }
}
