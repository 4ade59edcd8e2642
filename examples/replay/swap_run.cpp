#include "swap_run.hpp"

#include <algorithm>
#include <utility>

#include "gmlake/grow/adaptive_chunks.hpp"
#include "gmlake/plan/portfolio.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/swap/autoswap.hpp"
#include "gmlake/swap/least_stall.hpp"
#include "gmlake/swap/lowest_peak.hpp"
#include "gmlake/swap/mix.hpp"
#include "gmlake/swap/peak_bound.hpp"
#include "gmlake/swap/stays.hpp"
#include "gmlake/swap/time_bound.hpp"

namespace gmlake::tools {
namespace {

/// The longest step that is planned for: some 36 years, which leaves room for stalls.
constexpr double longest_step_ns = 0x1p60;
/// Of the planner, for each schedule: half a second or so.
constexpr std::uint64_t packing_work = 250'000'000;

swap::rehearsal_result rehearse(swap_subject const& of, swap::solution const& s, std::optional<bytes> chunk) {
  using pool = lake_pool<simulated>;
  adaptive_options chunks;
  if (chunk) chunks = adaptive_options::fixed(*chunk);
  pool on(simulated({.capacity = simulated_options::unlimited}), {}, pool::policies{.growth = adaptive_chunks(chunks)});
  swap::program const& p = of.step.program;
  return swap::rehearsal(on, p, s.schedule, changes_of(p, s.schedule, of.on.channel, s.outcome)).run();
}

bytes packed(swap_subject const& of, swap::solution const& s) {
  swap::program const& p = of.step.program;
  auto const stays = swap::stays_of(p, changes_of(p, s.schedule, of.on.channel, s.outcome));
  return plan::portfolio({.work = packing_work}).pack(stays).solution.height;
}

}  // namespace

swap_subject_found subject_of(std::string const& name, trace::trace const& t, swap_options const& o) {
  trace::step_programs programs = trace::programs_of(t);
  if (!programs) return {nullptr, programs.error};
  auto step = trace::typical_step_of(programs.steps);
  if (!step) return {nullptr, "no step has operations"};
  auto made = std::make_shared<swap_subject>();
  made->trace = name;
  made->allocations = std::move(programs.steps[step->first].allocations);
  double total = 0;
  for (swap::time const each : step->program.operations) {
    total += static_cast<double>(each.count()) * std::max(1.0, o.on.operation_time);
  }
  if (total > longest_step_ns) return {nullptr, "its steps take too long to plan for"};
  made->step = *std::move(step);
  made->step.program = on(o.on, std::move(made->step.program));
  made->on = o.on;
  swap::setting const at(made->step.program, made->on.channel);  // for bounds, to which every block counts
  if (at.step_time() == swap::time::zero()) return {nullptr, "its operations take no time"};
  made->peak = at.peak();
  made->time = at.step_time();
  made->least_peak = peak_bound(at);
  made->limit = o.limit.of(at.peak());
  made->least_limit = least_limit(at);
  if (made->limit >= made->least_limit) made->least_time = time_bound(at, made->limit);
  return {std::move(made), {}};
}

swap_record run_scheduler(scheduler const& by, std::shared_ptr<swap_subject const> const& of,
                          std::optional<bytes> chunk) {
  swap::setting const at(of->step.program, of->on.channel, swap::smallest_worth_moving);
  swap_record made{.by = by, .of = of, .without_stall = {}, .under_limit = {}};
  auto const rehearsed = [&](swap::solution s, std::optional<swap::score_weights> w = {}) {
    auto pool = rehearse(*of, s, chunk);
    bytes const height = packed(*of, s);
    return swap_schedule{std::move(s), std::move(pool), height, w};
  };
  switch (by.is) {
    case scheduler::kind::lowest_peak: made.without_stall = rehearsed(swap::lowest_peak(at).find()); break;
    case scheduler::kind::least_stall:
      if (auto found = swap::least_stall(at, of->limit).find()) made.under_limit = rehearsed(*std::move(found));
      break;
    case scheduler::kind::score: {
      swap::autoswap const scored(at, by.weights);
      made.without_stall = rehearsed(scored.lowest_peak());
      if (auto found = scored.under(of->limit)) made.under_limit = rehearsed(*std::move(found));
      break;
    }
    case scheduler::kind::mix: {
      swap::mix low = swap::mix_for_peak(at);
      made.without_stall = rehearsed(std::move(low.found), low.weights);
      if (auto fast = swap::mix_under(at, of->limit)) {
        made.under_limit = rehearsed(std::move(fast->found), fast->weights);
      }
      break;
    }
  }
  return made;
}

}  // namespace gmlake::tools
