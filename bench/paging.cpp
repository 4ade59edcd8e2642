// How near a pager comes to what its schedules expect, and to the bound, end to end: the steps that come again in every
// trace of a folder, in turn over a pager and real pools, within a share of their peak, on a GPU in emulated time. A
// table; the same figures on every run.
//
// The host waits for the compute stream at the end of each step, as a program does that reads its loss. Making a
// schedule takes no time there. Plain: a step without a limit, as recorded. Expected: by the schedule in force at the
// end. The rest is of the last 8 steps: medians of time (x least: over the larger of plain and bound), driver calls
// (access counts by the chunk) and queries whether an event is over; means of the times that the host waited for the
// device, of evictions and misses. Where steps of several kinds take turns, all that is a mean of one of each.
//
//     gmlake-bench-paging [FOLDER] [--steps N] [--share X] [--workspace-mib N] [--launch-us T] [--call-us T]
//                         [--link X] [--jitter X] [--read N] [--ungated]
//                         default: bench/traces/accesses

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bench/command_line.hpp"
#include "bench/support/emulated_gpu.hpp"
#include "bench/support/emulated_program.hpp"
#include "bench/support/emulated_settings.hpp"
#include "bench/traces.hpp"
#include "gmlake/swap/coverage.hpp"
#include "gmlake/swap/machine.hpp"
#include "gmlake/swap/setting.hpp"
#include "gmlake/swap/time_bound.hpp"
#include "gmlake/trace/programs.hpp"
#include "gmlake/trace/typical_step.hpp"

namespace gmlake::bench {
namespace {

constexpr std::uint32_t looked_at = 8;  // of the last steps: the pools have settled by then

struct settings {
  std::string folder = std::string(shipped_traces()) + "/accesses";
  std::uint32_t steps = 96;
  double share = 0.65;  ///< of the peak
  std::optional<std::uint32_t> workspace_mib;
  emulated_settings gpu;
};

/// What one step came to.
struct step_figures {
  swap::time took{};
  std::uint64_t calls = 0;    ///< of the driver's
  std::uint64_t queries = 0;  ///< whether an event is over
  std::uint64_t host_waits = 0;
  std::uint64_t evictions = 0;
  std::uint64_t misses = 0;

  [[nodiscard]] friend step_figures operator-(step_figures const& a, step_figures const& b) noexcept {
    return {a.took - b.took,           a.calls - b.calls,  a.queries - b.queries, a.host_waits - b.host_waits,
            a.evictions - b.evictions, a.misses - b.misses};
  }
  void operator+=(step_figures const& b) noexcept {
    took += b.took;
    calls += b.calls;
    queries += b.queries;
    host_waits += b.host_waits;
    evictions += b.evictions;
    misses += b.misses;
  }
};

/// A program alone on its machine. Its steps outlive it.
class paged_program {
 public:
  paged_program(std::span<swap::program const> steps, emulated_settings const& s)
      : machine_(s.costs()), program_(machine_, steps, s.habits) {}

  /// Without a limit; then the limit holds. Errors: the pager's; `out_of_memory` where too little can leave.
  [[nodiscard]] result<void> begin(bytes limit) {
    (void)machine_.pager().stop();
    if (auto done = program_.begin(); !done) return done;
    machine_.pager().go_on();
    return machine_.pager().set_limit(limit) ? result<void>{} : failure(errc::out_of_memory, "set_limit");
  }

  /// Errors: the pager's; the program can't go on then.
  [[nodiscard]] result<step_figures> step() {
    step_figures const before = so_far();
    if (auto done = program_.step(); !done) return failure(done.error());
    return so_far() - before;
  }

  /// A step's time by the schedule in force.
  [[nodiscard]] std::optional<swap::time> expected() {
    auto const forecast = machine_.pager().expected();
    return forecast ? std::optional(forecast->step) : std::nullopt;
  }

 private:
  [[nodiscard]] step_figures so_far() {
    swap::pager_stats const seen = machine_.pager().stats();
    emulated_gpu const& gpu = machine_.gpu();
    return {gpu.now(), gpu.driver_calls(), gpu.queries(), gpu.host_waits(), seen.evictions, seen.misses};
  }

  emulated_machine machine_;
  emulated_program program_;
};

/// The lower one of an even number. Precondition: not empty.
template <class Of>
auto median(std::vector<step_figures> const& all, Of of) {
  std::vector<std::decay_t<std::invoke_result_t<Of, step_figures>>> figures(all.size());
  std::ranges::transform(all, figures.begin(), of);
  auto const middle = figures.begin() + static_cast<std::ptrdiff_t>((figures.size() - 1) / 2);
  std::ranges::nth_element(figures, middle);
  return *middle;
}

double mean(std::vector<step_figures> const& all, std::uint64_t step_figures::* of) {
  auto const add = [of](double sum, step_figures const& f) { return sum + static_cast<double>(f.*of); };
  return std::accumulate(all.begin(), all.end(), 0.0, add) / static_cast<double>(all.size());
}

/// A step with all memory that it wants, as recorded.
swap::time plain_step(swap::program const& p, emulated_costs const& costs) {
  emulated_gpu gpu(costs);
  for (swap::time const t : p.operations) gpu.launch(t);
  gpu.finish(emulated_gpu::compute);
  return gpu.now();
}

/// A round, that is a step of each kind, as far as can be told before the program runs.
struct round_bounds {
  bytes limit = 0;
  bytes least_limit = 0;        ///< that has a schedule
  swap::time plain{}, bound{};  ///< in all
  swap::time least{};           ///< of each step the larger

  round_bounds(std::span<swap::program const> steps, settings const& s) {
    std::vector<swap::setting> all;
    for (swap::program const& p : steps) {
      swap::setting const& at = all.emplace_back(p, s.gpu.costs().link, swap::smallest_worth_moving);
      limit = std::max(limit, static_cast<bytes>(s.share * static_cast<double>(at.peak())));
      least_limit = std::max(least_limit, swap::least_limit(at));
      plain += plain_step(p, s.gpu.costs());
    }
    if (limit < least_limit) return;
    for (swap::setting const& at : all) {
      swap::time const swapped = swap::time_bound(at, limit);
      bound += swapped;
      least += std::max(plain_step(at.program(), s.gpu.costs()), swapped);
    }
  }
};

/// Sums over rounds of so many steps.
std::vector<step_figures> in_rounds(std::vector<step_figures> const& all, std::size_t steps) {
  std::vector<step_figures> rounds(all.size() / steps);
  for (std::size_t k = 0; k < rounds.size() * steps; ++k) rounds[k / steps] += all[k];
  return rounds;
}

double ms(swap::time t) { return static_cast<double>(t.count()) / 1e6; }
double mib(bytes n) { return static_cast<double>(n) / static_cast<double>(1_MiB); }

/// What can be told before the program runs.
void begin_row(std::string const& name, round_bounds const& of, double steps) {
  std::printf("%-20s %9.0f %8.1f", name.c_str(), mib(of.limit), ms(of.plain) / steps);
}

/// `expected`: of each kind of step, in some order.
void end_row(std::vector<step_figures> const& rounds, round_bounds const& of,
             std::vector<std::optional<swap::time>> const& expected) {
  auto const steps = static_cast<double>(expected.size());
  double const took = ms(median(rounds, &step_figures::took));
  std::printf(" %8.1f", ms(of.bound) / steps);
  if (std::ranges::all_of(expected, [](auto const& t) { return t.has_value(); })) {
    auto const add = [](double sum, auto const& t) { return sum + ms(*t); };
    std::printf(" %8.1f", std::accumulate(expected.begin(), expected.end(), 0.0, add) / steps);
  } else {
    std::printf(" %8s", "-");
  }
  std::printf(" %8.1f %8.3f %8.0f %8.0f %8.1f %8.1f %8.1f\n", took / steps, took / ms(of.least),
              static_cast<double>(median(rounds, &step_figures::calls)) / steps,
              static_cast<double>(median(rounds, &step_figures::queries)) / steps,
              mean(rounds, &step_figures::host_waits) / steps, mean(rounds, &step_figures::evictions) / steps,
              mean(rounds, &step_figures::misses) / steps);
}

/// `steps`: a round.
void row(std::string const& name, std::span<swap::program const> steps, settings const& s) {
  round_bounds const of(steps, s);
  begin_row(name, of, static_cast<double>(steps.size()));
  if (of.limit < of.least_limit) {
    std::printf(" no schedule: %.0f MiB can't be away\n", mib(of.least_limit));
    return;
  }
  paged_program running(steps, s.gpu);
  if (auto const done = running.begin(of.limit); !done) {
    std::printf(" failed before the first step: %s: %s\n", done.error().call, to_string(done.error().code));
    return;
  }
  std::vector<step_figures> last;
  std::vector<std::optional<swap::time>> expected(steps.size());
  for (std::uint32_t k = 0; k < s.steps; ++k) {
    auto const figures = running.step();
    if (!figures) {
      std::printf(" failed in step %u: %s: %s\n", k + 1, figures.error().call, to_string(figures.error().code));
      return;
    }
    if (k + looked_at >= s.steps) last.push_back(*figures);
    expected[k % steps.size()] = running.expected();
  }
  end_row(in_rounds(last, steps.size()), of, expected);
}

/// What lives for one operation that reads and writes other things is its workspace: no larger than that, as where
/// memory is short cuDNN takes algorithms that want less of it. Kernels take as long as recorded.
void cap_workspaces(swap::program& p, bytes most) {
  for (swap::variable& v : p.variables) {
    if (!v.carried && v.accesses.empty() && v.death == v.birth + 1) v.size = std::min(v.size, most);
  }
}

/// How many rows were printed.
std::size_t table(settings const& s) {
  char title[40];
  (void)std::snprintf(title, sizeof title, "paging at %.4g", s.share);
  std::printf("%-20s %9s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", title, "limit MiB", "plain ms", "bound ms",
              "expected", "step ms", "x least", "calls", "queries", "waits", "evicted", "misses");
  std::size_t rows = 0;
  for (std::string const& path : trace_paths(s.folder.c_str())) {
    trace::step_programs const programs = trace::programs_of(load(path));
    if (!programs) {
      (void)std::fprintf(stderr, "%s: %s\n", path.c_str(), programs.error.c_str());
      continue;
    }
    std::vector<swap::program> steps;
    for (trace::typical_step& t : trace::recurring_steps_of(programs.steps)) steps.push_back(std::move(t.program));
    if (steps.empty()) continue;
    for (swap::program& p : steps) {
      if (s.workspace_mib) cap_workspaces(p, *s.workspace_mib * 1_MiB);
    }
    if (steps.size() > looked_at) {
      (void)std::fprintf(stderr, "%s: %zu kinds of steps, of which %u are looked at\n", path.c_str(), steps.size(),
                         looked_at);
      continue;
    }
    row(name_of(path), steps, s);
    (void)std::fflush(stdout);
    ++rows;
  }
  return rows;
}

/// The settings, or the status to exit with.
std::variant<settings, int> parse(int argc, char** argv) {
  settings s;
  CLI::App app{"Repeats recorded steps over a pager within a share of their peaks, on a GPU in emulated time.",
               "gmlake-bench-paging"};
  takes_folder(app, s.folder, "Of traces with accesses");
  app.add_option("--steps", s.steps, "Steps of each trace, of which the last 8 are looked at. Default: 96")
      ->type_name("N")
      ->check(CLI::Range(looked_at, 1'000'000U));
  app.add_option("--share", s.share, "Limit, as a share of the peak. Default: 0.65")
      ->type_name("X")
      ->check(between(0.01, 1));
  app.add_option("--workspace-mib", s.workspace_mib, "Operations' workspaces are no larger. Default: as recorded")
      ->type_name("N")
      ->check(CLI::Range(1U, 1'000'000U));
  s.gpu.add_to(app);
  if (auto const status = status_of(app, argc, argv)) return *status;
  return s;
}

int run(int argc, char** argv) {
  auto const parsed = parse(argc, argv);
  if (int const* const status = std::get_if<int>(&parsed)) return *status;
  if (table(std::get<settings>(parsed)) > 0) return 0;
  (void)std::fprintf(stderr, "no trace with accesses\n");
  return 1;
}

}  // namespace
}  // namespace gmlake::bench

int main(int argc, char** argv) { return gmlake::bench::run(argc, argv); }
