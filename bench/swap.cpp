// How near swapping comes to what any schedule could do, on recorded accesses: the typical step of every trace in a
// folder, on its own H200 and on a machine with AutoSwap's ratio of compute to channel. Tables, in percent of the peak.
//
//     gmlake-bench-swap [FOLDER]        default: bench/traces/accesses

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "bench/command_line.hpp"
#include "bench/traces.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/swap/autoswap.hpp"
#include "gmlake/swap/changes.hpp"
#include "gmlake/swap/least_stall.hpp"
#include "gmlake/swap/lowest_peak.hpp"
#include "gmlake/swap/machine.hpp"
#include "gmlake/swap/mix.hpp"
#include "gmlake/swap/peak_bound.hpp"
#include "gmlake/swap/rehearsal.hpp"
#include "gmlake/swap/time_bound.hpp"
#include "gmlake/trace/typical_step.hpp"

namespace {

using namespace gmlake;
using swap::setting;

/// Kernels ten times slower, 12 GB/s each way: AutoSwap's GPU over PCIe 3, about.
constexpr swap::lane pcie3{.bytes_per_second = 12'000'000'000};
constexpr swap::machine autoswaps{.channel = {pcie3, pcie3}, .operation_time = 10};
constexpr double limited_to = 0.65;  // of the peak
constexpr unsigned limits = 64;      // that each score is tried under

struct step {
  std::string name;
  trace::typical_step typical;

  /// A CNN at a fixed shape in single precision, as AutoSwap's are.
  [[nodiscard]] bool convolutional() const {
    return !name.ends_with("-changing") && !name.ends_with("-mixed") &&
           std::ranges::any_of(std::vector{"resnet", "vgg", "densenet", "inception"},
                               [&](char const* n) { return name.starts_with(n); });
  }
};

std::vector<step> steps_in(std::string const& folder) {
  std::vector<step> all;
  for (std::string const& path : bench::trace_paths(folder.c_str())) {
    trace::step_programs const programs = trace::programs_of(bench::load(path));
    if (!programs) {
      (void)std::fprintf(stderr, "%s: %s\n", path.c_str(), programs.error.c_str());
      continue;
    }
    if (auto typical = trace::typical_step_of(programs.steps))
      all.push_back({bench::name_of(path), *std::move(typical)});
  }
  return all;
}

/// In percent of the peak.
double saved(setting const& at, bytes peak) {
  return 100 * (1 - static_cast<double>(peak) / static_cast<double>(at.peak()));
}
double ms(swap::time t) { return static_cast<double>(t.count()) / 1e6; }
double mib(bytes n) { return static_cast<double>(n) / static_cast<double>(1_MiB); }

std::string text(swap::score_weights const& w) {
  char out[80];
  (void)std::snprintf(out, sizeof out, "%.2f %.2f %.2f %.2f", w.doa, w.aoa, w.wdoa, w.swdoa);
  return out;
}

/// Saved without stalls: by the search, as the bound allows, and by each score.
void without_stalls(std::vector<step> const& all, swap::machine const& m) {
  std::printf("%-20s %9s %8s %8s %9s %8s | %6s %6s %6s %6s %6s  %s\n", "saved without stalls", "peak MiB", "step ms",
              "saved %", "allowed %", "of it", "DOA", "AOA", "WDOA", "SWDOA", "mix", "its weights");
  double sum = 0, allowed = 0, by_mix = 0;
  int convolutional = 0;
  for (step const& s : all) {
    swap::program const p = on(m, s.typical.program);
    setting const at(p, m.channel, swap::smallest_worth_moving);
    double const most = saved(at, peak_bound(at));
    double const found = saved(at, swap::lowest_peak(at).find().outcome.peak);
    swap::mix const mixed = swap::mix_for_peak(at, limits);
    double const mixed_saved = saved(at, mixed.found.outcome.peak);
    std::printf("%-20s %9.0f %8.1f %8.2f %9.2f %8.3f |", s.name.c_str(), mib(at.peak()), ms(at.step_time()), found,
                most, most > 0 ? found / most : 1);
    for (swap::score_weights const& w : {swap::score_weights{.doa = 1}, {.aoa = 1}, {.wdoa = 1}, {.swdoa = 1}}) {
      std::printf(" %6.2f", saved(at, swap::autoswap(at, w).lowest_peak(limits).outcome.peak));
    }
    std::printf(" %6.2f  %s\n", mixed_saved, text(mixed.weights).c_str());
    (void)std::fflush(stdout);
    if (!s.convolutional()) continue;
    sum += found;
    allowed += most;
    by_mix += mixed_saved;
    ++convolutional;
  }
  if (convolutional > 0) {
    std::printf("%-20s %9s %8s %8.2f %9.2f %8s | %6s %6s %6s %6s %6.2f\n", "mean of the CNNs", "", "",
                sum / convolutional, allowed / convolutional, "", "", "", "", "", by_mix / convolutional);
  }
}

/// How long a step takes under a limit.
void under_limit(std::vector<step> const& all, swap::machine const& m) {
  std::printf("%-20s %9s %8s %8s %8s %8s %8s %8s | %8s %8s %8s %8s %8s  %s\n", "step time at 0.65", "limit MiB",
              "plain ms", "bound ms", "found ms", "x bound", "x plain", "moved GB", "DOA", "AOA", "WDOA", "SWDOA",
              "mix", "its weights");
  for (step const& s : all) {
    swap::program const p = on(m, s.typical.program);
    setting const at(p, m.channel, swap::smallest_worth_moving);
    auto const limit = static_cast<bytes>(limited_to * static_cast<double>(at.peak()));
    std::printf("%-20s %9.0f %8.1f", s.name.c_str(), mib(limit), ms(at.step_time()));
    auto const found = swap::least_stall(at, limit).find();
    if (!found) {
      std::printf(" no schedule: %.0f MiB can't be away\n", mib(swap::least_limit(at)));
      continue;
    }
    double const bound = ms(time_bound(at, limit)), total = ms(found->outcome.total);
    std::printf(" %8.1f %8.1f %8.3f %8.3f %8.2f |", bound, total, total / bound, total / ms(at.step_time()),
                static_cast<double>(found->outcome.moved.out + found->outcome.moved.in) / 1e9);
    for (swap::score_weights const& w : {swap::score_weights{.doa = 1}, {.aoa = 1}, {.wdoa = 1}, {.swdoa = 1}}) {
      auto const by = swap::autoswap(at, w).under(limit);
      if (by) std::printf(" %8.1f", ms(by->outcome.total));
      else std::printf(" %8s", "-");
    }
    auto const mixed = swap::mix_under(at, limit);
    if (mixed) std::printf(" %8.1f  %s\n", ms(mixed->found.outcome.total), text(mixed->weights).c_str());
    else std::printf(" %8s\n", "-");
    (void)std::fflush(stdout);
  }
}

/// What a step costs in driver calls once steps repeat, modelled, in a pool that has no more than the limit, with a
/// schedule for a little less; where the pool is told when blocks come and go, and where not.
void mappings(std::vector<step> const& all) {
  constexpr bytes smallest = 8_MiB;   // as in PyTorch
  constexpr double scheduled = 0.96;  // of the limit
  constexpr std::uint32_t warm = 16, steps = 24;
  std::printf("%-20s %9s %8s | %10s %8s %12s | %10s %8s %12s\n", "mappings at 0.65", "limit MiB", "moves",
              "not told:", "calls ms", "reserved MiB", "told:", "calls ms", "reserved MiB");
  for (step const& s : all) {
    swap::program const& p = s.typical.program;
    swap::machine const m;
    setting const at(p, m.channel, smallest);
    auto const limit = static_cast<bytes>(limited_to * static_cast<double>(at.peak()));
    auto const found = swap::least_stall(at, static_cast<bytes>(scheduled * static_cast<double>(limit))).find();
    if (!found) continue;
    std::printf("%-20s %9.0f %8zu", s.name.c_str(), mib(limit), found->schedule.moves.size());
    for (bool const told : {false, true}) {
      auto const after = [&](std::uint32_t n) {
        lake_pool<simulated> on(simulated({.capacity = simulated_options::unlimited}), {.limit = limit});
        auto const changes = changes_of(p, found->schedule, m.channel, found->outcome);
        swap::rehearsal_options const o{.movable = smallest, .foresee = told};
        swap::rehearsal_result const r = swap::rehearsal(on, p, found->schedule, changes, o).run(n);
        return std::pair(r, on.stats().driver.total());
      };
      auto const [early, before] = after(warm);
      auto const [late, total] = after(steps);
      if (late.failed) {
        std::printf(" | %10s %8s %12s", "failed", "-", "-");
        continue;
      }
      std::printf(" | %10.0f %8.2f %12.0f", static_cast<double>(total.calls - before.calls) / (steps - warm),
                  ms(total.time - before.time) / (steps - warm), mib(late.reserved_peak));
    }
    std::printf("\n");
    (void)std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = std::string(bench::shipped_traces()) + "/accesses";
  CLI::App app{"How near swapping comes to what any schedule could do.", "gmlake-bench-swap"};
  bench::takes_folder(app, folder, "Of traces with accesses. Default: those that come with the project");
  if (auto const status = bench::status_of(app, argc, argv)) return *status;
  std::vector<step> const all = steps_in(folder);
  if (all.empty()) return std::fprintf(stderr, "no trace with accesses\n"), 1;
  std::printf("Kernels ten times slower, 12 GB/s each way\n");
  without_stalls(all, autoswaps);
  std::printf("\nAs recorded on an H200, 55 GB/s each way\n");
  without_stalls(all, {});
  std::printf("\n");
  under_limit(all, {});
  std::printf("\n");
  mappings(all);
}
