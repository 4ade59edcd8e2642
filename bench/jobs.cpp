// How long jobs take side by side within shares of their joint peak: the steps that come again in traces, taken in turn
// by a job of each over one pager, on a GPU in emulated time. The same figures on every run.
//
// Every job has a stream, waits for its step's work at the step's end, and begins the next; one host's time is shared
// by all, an operation at a time. All get warm first; then each takes its steps, after which it is a job no more but
// keeps its memory. A guest comes once a third of the first job's steps are done, takes its own, and leaves with all
// its memory. Everything runs without a limit, of which the peak is measured, and within each share of it. The bound:
// the sum of all kernels' times, what each lane must carry whatever the order of steps, or what a job would take alone,
// whichever is the largest.
//
//     gmlake-bench-jobs [--jobs NAME:STEPS...] [--guest NAME:STEPS] [--share X...] [--launch-us T]
//                      [--call-us T] [--link X] [--jitter X] [--read N] [--ungated] [--warm N] [--folder FOLDER]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/command_line.hpp"
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

struct named_job {
  std::string name;
  std::uint32_t steps = 0;
};

struct settings {
  std::string folder = std::string(shipped_traces()) + "/accesses";
  std::vector<named_job> jobs{{"resnet50-mixed", 24}, {"gpt2", 24}, {"opt1.3b-lora-recomputed", 12}};
  std::optional<named_job> guest;
  std::vector<double> shares{0.8, 0.6, 0.5};
  std::uint32_t warm = 12;
  emulated_settings gpu;
};

struct run_figures {
  swap::time took{};
  bytes peak = 0;
  std::uint64_t calls = 0;
  swap::pager_stats seen;
};

/// What a program does in turn.
using repeated_steps = std::vector<swap::program>;

/// What a job runs, and how far it has come.
struct running_job {
  running_job(emulated_machine& on, repeated_steps const& p, settings const& s, std::uint32_t number, swap::job_id id,
              std::uint32_t until)
      : program(std::make_unique<emulated_program>(on, p, s.gpu.habits, stream{4 + number}, id)), steps(until) {}

  std::unique_ptr<emulated_program> program;
  std::uint32_t steps;  ///< that it takes in all
  [[nodiscard]] bool done() const { return program->steps() >= steps; }
};

/// All jobs of a run, by turns of an operation.
class joint_run {
 public:
  joint_run(std::vector<repeated_steps> const& programs, repeated_steps const* guest, settings const& s)
      : programs_(&programs), guest_(guest), settings_(&s), machine_(s.gpu.costs()) {}

  /// `limit`: none, to measure. Errors: the pager's.
  [[nodiscard]] result<run_figures> run(std::optional<bytes> limit) {
    auto& pager = machine_.pager();
    (void)pager.stop();
    for (std::uint32_t j = 0; j < programs_->size(); ++j) {
      jobs_.emplace_back(machine_, (*programs_)[j], *settings_, j, pager.add_job(), settings_->warm);
      if (auto done = jobs_.back().program->begin(); !done) return failure(done.error());
    }
    if (limit) {
      pager.go_on();
      if (!pager.set_limit(*limit)) return failure(errc::out_of_memory, "set_limit");
    }
    if (auto done = until_done(); !done) return failure(done.error());
    machine_.gpu().finish_all();
    run_figures const before = so_far();
    for (std::uint32_t j = 0; j < jobs_.size(); ++j) jobs_[j].steps += settings_->jobs[j].steps;
    awaits_guest_ = guest_ != nullptr;
    lasts_ = true;
    if (auto done = until_done(); !done) return failure(done.error());
    machine_.gpu().finish_all();
    run_figures all = so_far();
    all.took -= before.took;
    all.calls -= before.calls;
    all.seen.evictions -= before.seen.evictions;
    all.seen.planned_out -= before.seen.planned_out;
    all.seen.host_waits -= before.seen.host_waits;
    all.seen.plans_made -= before.seen.plans_made;
    return all;
  }

 private:
  [[nodiscard]] run_figures so_far() {
    return {machine_.gpu().now(), peak_, machine_.gpu().driver_calls(), machine_.pager().stats()};
  }

  [[nodiscard]] result<void> until_done() {
    for (;;) {
      bool any = false, left = false;
      swap::time next = swap::time::max();
      for (std::size_t j = 0; j < jobs_.size(); ++j) {
        running_job& job = jobs_[j];
        if (job.done()) continue;
        left = true;
        if (swap::time const until = job.program->idle_until(); until > machine_.gpu().now()) {
          next = std::min(next, until);
          continue;
        }
        if (!job.program->between_steps() && !machine_.pager().may_go(job.program->job())) continue;
        if (auto done = job.program->advance(); !done) return done;
        peak_ = std::max(peak_, machine_.live());
        any = true;
        if (job.done() && lasts_) machine_.pager().end_job(job.program->job());
      }
      if (awaits_guest_ && jobs_.front().program->steps() >= settings_->warm + settings_->jobs.front().steps / 3) {
        awaits_guest_ = false;
        auto const number = static_cast<std::uint32_t>(jobs_.size());
        jobs_.emplace_back(machine_, *guest_, *settings_, number, machine_.pager().add_job(), settings_->guest->steps);
        if (auto done = jobs_.back().program->begin(); !done) return done;
      }
      for (; jobs_.size() > programs_->size() && jobs_.back().done(); jobs_.pop_back()) {
        jobs_.back().program.reset();
      }
      if (!left) return {};
      if (!any) machine_.gpu().idle_until(next);
    }
  }

  std::vector<repeated_steps> const* programs_;
  repeated_steps const* guest_;
  settings const* settings_;
  emulated_machine machine_;
  std::deque<running_job> jobs_;
  bytes peak_ = 0;
  bool lasts_ = false;  ///< those that are done now have taken all their steps
  bool awaits_guest_ = false;
};

/// Empty where there is no such trace.
[[nodiscard]] repeated_steps steps_of(std::string const& folder, std::string const& name) {
  repeated_steps made;
  for (std::string const& path : trace_paths(folder.c_str())) {
    if (name_of(path) != name) continue;
    trace::step_programs const programs = trace::programs_of(load(path));
    if (!programs) return {};
    for (trace::typical_step& s : trace::recurring_steps_of(programs.steps)) made.push_back(std::move(s.program));
  }
  return made;
}

double seconds(swap::time t) { return static_cast<double>(t.count()) / 1e9; }
unsigned long long mib(bytes n) { return static_cast<unsigned long long>(n / 1_MiB); }

struct counted_steps {
  repeated_steps const* of;
  std::uint32_t steps;
};

/// Whatever the order of steps, within the limit. Nothing where some step can't be taken within it.
[[nodiscard]] std::optional<swap::time> bound_of(std::vector<counted_steps> const& all, bytes limit) {
  using swap::time_bound_parts::least_crossing;
  swap::machine const m;
  swap::time work{}, out{}, in{}, alone{};
  for (counted_steps const& p : all) {
    swap::time alone_of{};
    for (std::uint32_t k = 0; k < p.of->size(); ++k) {
      swap::setting const at((*p.of)[k], m.channel);
      if (limit < swap::least_limit(at)) return std::nullopt;
      auto const steps = static_cast<std::uint32_t>((p.steps + p.of->size() - 1 - k) / p.of->size());
      work += at.step_time() * steps;
      alone_of += swap::time_bound(at, limit) * steps;
      out += m.channel.out.time_of(least_crossing(at, limit, true)) * steps;
      in += m.channel.in.time_of(least_crossing(at, limit, false)) * steps;
    }
    alone = std::max(alone, alone_of);
  }
  return std::max({work, out, in, alone});
}

void print_failure(error const& e) { std::printf(" failed: %s: %s\n", e.call, to_string(e.code)); }

void row(run_figures const& unlimited, result<run_figures> const& limited, swap::time bound) {
  if (!limited) return print_failure(limited.error());
  double const took = seconds(limited->took);
  swap::pager_stats const& seen = limited->seen;
  std::printf(" %8.2f %8.3f %8.3f %8llu %8llu %8llu %8llu %8llu\n", took, took / seconds(unlimited.took),
              took / seconds(bound), static_cast<unsigned long long>(limited->calls),
              static_cast<unsigned long long>(seen.planned_out), static_cast<unsigned long long>(seen.evictions),
              static_cast<unsigned long long>(seen.host_waits), static_cast<unsigned long long>(seen.plans_made));
}

/// Whether all traces were there.
bool table(settings const& given) {
  std::vector<repeated_steps> programs;
  std::optional<repeated_steps> guest;
  std::vector<named_job> names = given.jobs;
  if (given.guest) names.push_back(*given.guest);
  for (named_job const& j : names) {
    auto p = steps_of(given.folder, j.name);
    if (p.empty()) {
      (void)std::fprintf(stderr, "no trace of that name with accesses: %s\n", j.name.c_str());
      return false;
    }
    if (programs.size() < given.jobs.size()) programs.push_back(std::move(p));
    else guest = std::move(p);
  }
  std::vector<counted_steps> all;
  for (std::size_t j = 0; j < programs.size(); ++j) all.push_back({&programs[j], given.jobs[j].steps});
  if (guest) all.push_back({&*guest, given.guest->steps});
  auto const run = [&](std::optional<bytes> limit) {
    return joint_run(programs, guest ? &*guest : nullptr, given).run(limit);
  };
  std::printf("%-8s %9s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "share", "limit MiB", "bound s", "s", "x free",
              "x bound", "calls", "planned", "evicted", "waits", "plans");
  auto const unlimited = run(std::nullopt);
  std::printf("%-8s %9s %8s", "-", "-", "-");
  if (!unlimited) {
    print_failure(unlimited.error());
    return true;
  }
  std::printf(" %8.2f\n", seconds(unlimited->took));
  for (double const share : given.shares) {
    auto const limit = static_cast<bytes>(share * static_cast<double>(unlimited->peak));
    std::printf("%-8.3g %9llu", share, mib(limit));
    std::optional<swap::time> const bound = bound_of(all, limit);
    if (bound) {
      std::printf(" %8.2f", seconds(*bound));
      row(*unlimited, run(limit), *bound);
    } else {
      std::printf(" no schedule: more than that can't be away\n");
    }
    (void)std::fflush(stdout);
  }
  return true;
}

/// NAME:STEPS; nothing where it isn't that.
[[nodiscard]] std::optional<named_job> job_named(std::string const& text) {
  auto const colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  named_job made{text.substr(0, colon), 0};
  if (!CLI::detail::lexical_cast(text.substr(colon + 1), made.steps) || made.steps == 0) return std::nullopt;
  return made;
}

/// The settings, or the status to exit with.
std::variant<settings, int> parse(int argc, char** argv) {
  settings given;
  std::vector<std::string> jobs;
  std::string guest;
  constexpr int most_jobs = 8;
  auto const is_job = CLI::Validator(
      [](std::string const& text) { return job_named(text) ? std::string() : "'" + text + "' is not NAME:STEPS"; }, "");
  CLI::App app{"Runs jobs side by side within shares of their joint peak, on a GPU in emulated time.",
               "gmlake-bench-jobs"};
  app.add_option("--jobs", jobs, "Traces, and how many steps of each: 8 at most")
      ->type_name("NAME:STEPS")
      ->check(is_job)
      ->expected(1, most_jobs);
  app.add_option("--guest", guest, "One that comes later and leaves")->type_name("NAME:STEPS")->check(is_job);
  app.add_option("--folder", given.folder, "Of traces with accesses")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  app.add_option("--share", given.shares, "Limits, as shares of the joint peak. Default: 0.8 0.6 0.5")
      ->type_name("X")
      ->check(between(0.01, 1));
  given.gpu.add_to(app);
  app.add_option("--warm", given.warm, "Steps of each job before those that count. Default: 12")
      ->type_name("N")
      ->check(CLI::Range(0U, 1'000'000U));
  if (auto const status = status_of(app, argc, argv)) return *status;
  if (!jobs.empty()) given.jobs.clear();
  for (std::string const& text : jobs) given.jobs.push_back(*job_named(text));
  if (!guest.empty()) given.guest = job_named(guest);
  return given;
}

int run(int argc, char** argv) {
  auto const parsed = parse(argc, argv);
  if (int const* const status = std::get_if<int>(&parsed)) return *status;
  return table(std::get<settings>(parsed)) ? 0 : 1;
}

}  // namespace
}  // namespace gmlake::bench

int main(int argc, char** argv) { return gmlake::bench::run(argc, argv); }
