#pragma once
/// Makes plans for steps that have been logged. What their schedules can't do is left to demand. Several jobs are
/// planned side by side.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/swap/schedule_step.hpp"
#include "gmlake/swap/side_by_side.hpp"
#include "gmlake/swap/step_plan.hpp"

namespace gmlake::swap {

struct planned_steps {
  std::vector<std::shared_ptr<step_plan const>> plans;  ///< by job
  bool meets_target = false;
};

namespace detail {

/// From operations of a common step to one job's own.
class own_operations {
 public:
  own_operations(joint_program const& of, std::uint32_t job, std::uint32_t operations)
      : runs_(of.runs[job]), n_(operations), steps_(of.steps[job]) {
    std::uint32_t step = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (i > 0 && runs_[i] < runs_[i - 1]) ++step;
      step_.push_back(step);
    }
  }
  /// Counted on through the job's steps, and over the common step's end.
  [[nodiscard]] std::int64_t at(std::uint32_t i) const noexcept {
    auto const size = static_cast<std::uint32_t>(runs_.size());
    std::int64_t const round = i / size;
    return (round * steps_ + step_[i % size]) * n_ + runs_[i % size];
  }

 private:
  std::vector<std::uint32_t> const& runs_;
  std::int64_t n_, steps_;
  std::vector<std::int64_t> step_;
};

/// The first operation at whose beginning what moves has left, and its memory is free; counted on over the step's end.
[[nodiscard]] inline std::uint32_t gone_at(setting const& at, move const& m, time way_out, outcome const& o) noexcept {
  time const over = way_out + at.out_time(m.away);
  auto const next = std::ranges::lower_bound(o.starts, over % o.total);
  auto i = static_cast<std::uint32_t>(next - o.starts.begin() + over / o.total * at.size());
  while (i <= m.away.after) i += at.size();
  return i;
}

/// The operation before which a block's way back begins in the simulation, where other transfers hold it up: it takes
/// memory from then on, not when it might begin at the earliest. Counted on like `from`.
[[nodiscard]] inline std::uint32_t back_at(setting const& at, move const& m, time way_back, outcome const& o) noexcept {
  // Where steps did not settle, the last one may have ended before that.
  std::span const starts(o.starts.data(), at.size());
  auto const after = std::ranges::upper_bound(starts, way_back % o.total);
  auto i = static_cast<std::uint32_t>(after - starts.begin());
  if (i > 0 && starts[i - 1] + at.program().operations[i - 1] > way_back % o.total) --i;
  while (i < m.from) i += at.size();
  return std::min(i, m.away.before);
}

/// What of a joint schedule is one job's.
[[nodiscard]] inline std::vector<leg> legs_of(step_schedule const& made, setting const& at, std::uint32_t job,
                                              std::uint32_t operations) {
  joint_program const& of = made.of;
  solution const& found = made.found;
  schedule const& s = found.schedule;
  own_operations const own(of, job, operations);
  std::vector<leg> legs(of.steps[job]);
  std::int64_t const n = operations;
  auto const leg_at = [&](std::int64_t i) -> leg& { return legs[static_cast<std::size_t>(i / n) % legs.size()]; };
  std::vector<std::uint32_t> from(s.moves.size());
  auto const is_own = [&](absence const& a) { return of.origins[a.variable].job == job; };
  auto const out_of = [&](absence const& a, std::uint32_t back, std::uint32_t gone) {
    std::int64_t const after = own.at(a.after);
    auto const counted_on = [&](std::uint32_t operation) {
      return static_cast<std::uint32_t>(std::max(own.at(operation) - after, std::int64_t{1}) + after % n);
    };
    return planned_out{of.origins[a.variable].variable, static_cast<std::uint32_t>(after % n), counted_on(a.before),
                       counted_on(back), counted_on(gone)};
  };
  for (std::size_t i = 0; i < s.moves.size(); ++i) {
    move const& m = s.moves[i];
    if (!is_own(m.away)) continue;
    from[i] = back_at(at, m, found.outcome.ways_back[i], found.outcome);
    leg_at(own.at(m.away.after))
        .outs.push_back(out_of(m.away, from[i], gone_at(at, m, found.outcome.ways_out[i], found.outcome)));
  }
  for (absence const& a : made.discarded) {
    if (!is_own(a)) continue;
    planned_out out = out_of(a, a.before, a.after + 1);
    out.discards = true;
    auto& outs = leg_at(own.at(a.after)).outs;
    // It waits for no copy before it.
    outs.insert(std::ranges::find_if(outs, [&](planned_out const& o) { return o.after > out.after; }), out);
  }
  for (std::uint32_t const r : s.returns) {
    move const& m = s.moves[r];
    if (!is_own(m.away)) continue;
    std::int64_t const before = own.at(m.away.before);
    std::int64_t const begins = std::max(own.at(from[r]), own.at(m.away.after) + 1);
    leg_at(before).returns.push_back({of.origins[m.away.variable].variable, begins - before / n * n});
  }
  return legs;
}

}  // namespace detail

/// For jobs that run at once, in one pool; their operations' times are set, and each has two operations at least.
/// Blocks too small to be movable stay. Throws `std::bad_alloc`.
[[nodiscard]] inline planned_steps plan_steps(std::vector<step_program> const& jobs, channel const& c, bytes target) {
  constexpr std::uint32_t most_steps = 4;  // of the longest, in a common step: more take long to plan
  std::vector<program> programs;
  programs.reserve(jobs.size());
  for (step_program const& p : jobs) programs.push_back(p.program);
  bytes const smallest = jobs.empty() ? 0 : jobs.front().counted.smallest;
  step_schedule const chosen = schedule_step(side_by_side(programs, most_steps).join(), c, smallest, target);
  joint_program const& joint = chosen.of;
  solution const& best = chosen.found;
  setting const at(joint.program, c, smallest);
  planned_steps made{.plans = {}, .meets_target = chosen.meets_target};
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    auto const n = static_cast<std::uint32_t>(programs[j].operations.size());
    std::vector<leg> legs = detail::legs_of(chosen, at, j, n);
    forecast expected{.step = best.outcome.total / joint.steps[j],
                      .stalled = best.outcome.stalled / joint.steps[j],
                      .peak = best.outcome.peak,
                      .target = target};
    for (move const& m : best.schedule.moves) {
      if (joint.origins[m.away.variable].job != j) continue;
      ++expected.moves;
      expected.in += at.size_of(m.away);
      if (!at.program().variables[m.away.variable].has_copy) expected.out += at.size_of(m.away);
    }
    for (absence const& a : chosen.discarded) {
      if (joint.origins[a.variable].job == j) ++expected.recomputed;
    }
    made.plans.push_back(std::make_shared<step_plan const>(jobs[j], std::move(legs), expected));
  }
  return made;
}

}  // namespace gmlake::swap
