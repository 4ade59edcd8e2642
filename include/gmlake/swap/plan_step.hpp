#pragma once
/// Makes plans for steps that have been logged. What their schedules can't do is left to demand. Several jobs are
/// planned for taking turns.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/swap/coverage.hpp"
#include "gmlake/swap/one_after_another.hpp"
#include "gmlake/swap/schedule_step.hpp"
#include "gmlake/swap/step_plan.hpp"
#include "gmlake/swap/time_bound.hpp"

namespace gmlake::swap {

struct planned_steps {
  std::vector<std::shared_ptr<step_plan const>> plans;  ///< by job; none where those before are as good
  bool meets_target = false;
  std::optional<forecast> kept = {};  ///< what those come to, by the times that are known now; its moves are one's
};

namespace detail {

/// From operations of a round, in which each job takes a step, to one job's own; those of others' steps are the next
/// one's beginning to it. Counted on through its steps, and over the round's end.
class own_operations {
 public:
  own_operations(joint_program const& of, std::uint32_t job) noexcept
      : first_(of.first[job]), n_(of.first[job + 1] - first_), all_(of.first.back()) {}

  [[nodiscard]] std::int64_t at(std::uint32_t i) const noexcept {
    return i / all_ * n_ + std::clamp(i % all_ - first_, std::int64_t{0}, n_);
  }

 private:
  std::int64_t first_, n_, all_;
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
[[nodiscard]] inline planned_moves moves_of(step_schedule const& made, setting const& at, std::uint32_t job) {
  joint_program const& of = made.of;
  solution const& found = made.found;
  schedule const& s = found.schedule;
  own_operations const own(of, job);
  planned_moves all;
  std::int64_t const n = of.first[job + 1] - of.first[job];
  std::vector<std::uint32_t> from(s.moves.size());
  auto const is_own = [&](absence const& a) { return of.origins[a.variable].job == job; };
  auto const out_of = [&](absence const& a, std::uint32_t back, std::uint32_t gone) {
    std::int64_t const after = own.at(a.after);
    auto const later = [&](std::uint32_t operation) {
      return static_cast<std::uint32_t>(std::max(own.at(operation), after + 1));
    };
    return planned_out{of.origins[a.variable].variable, static_cast<std::uint32_t>(after), later(a.before), later(back),
                       later(gone)};
  };
  for (std::size_t i = 0; i < s.moves.size(); ++i) {
    move const& m = s.moves[i];
    if (!is_own(m.away)) continue;
    from[i] = at.comes_back(m.away) ? back_at(at, m, found.outcome.ways_back[i], found.outcome)
                                    : at.program().variables[m.away.variable].birth + at.size();
    all.outs.push_back(out_of(m.away, from[i], gone_at(at, m, found.outcome.ways_out[i], found.outcome)));
  }
  for (absence const& a : made.discarded) {
    if (!is_own(a)) continue;
    planned_out out = out_of(a, a.before, a.after + 1);
    out.discards = true;
    // It waits for no copy before it.
    all.outs.insert(std::ranges::find_if(all.outs, [&](planned_out const& o) { return o.after > out.after; }), out);
  }
  for (std::uint32_t const r : s.returns) {
    move const& m = s.moves[r];
    if (!is_own(m.away)) continue;
    std::int64_t const before = own.at(m.away.before);
    std::int64_t const begins = std::max(own.at(from[r]), own.at(m.away.after) + 1);
    all.returns.push_back(
        {of.origins[m.away.variable].variable, begins - before / n * n, static_cast<std::uint32_t>(before % n)});
  }
  return all;
}

/// Targets that differ by less than one part in so many are alike: by what memory beside the schedules' differs by from
/// step to step, which is no reason to upset what they have settled.
inline constexpr bytes alike_within = 256;

/// What the schedule that a plan is of comes to at the target of the one that `found` tells of, if it was made for much
/// the same one and takes hardly longer. Precondition: there is one, of as many operations.
[[nodiscard]] inline std::optional<forecast> as_good(step_plan const& plan, setting const& at, forecast const& found,
                                                     double better) {
  schedule const& s = plan.source()->moves;
  forecast is = plan.expected();
  bytes const apart = std::max(is.target, found.target) - std::min(is.target, found.target);
  if (apart > found.target / alike_within || find_fault(at.program(), s) != nullptr) return {};
  outcome const now = simulate(at.program(), s, at.channel(), found.target);
  if (!now.meets_limit() || !now.settled) return {};
  if (static_cast<double>(now.total.count()) > static_cast<double>(found.step.count()) * (1 + better)) return {};
  is.step = now.total;
  is.stalled = now.stalled;
  is.peak = now.peak;
  is.least = found.least;
  is.target = found.target;
  return is;
}

}  // namespace detail

/// For jobs that run in one pool; their operations' times are set, and each has two operations at least. Blocks too
/// small to be movable stay. `before`: the plan of one of them, made for the same steps of the same jobs, whose
/// operations took another time; and by what share another has to do better (`pager_options::better`). Throws
/// `std::bad_alloc`.
[[nodiscard]] inline planned_steps plan_steps(std::vector<step_program> const& jobs, channel const& c, bytes target,
                                              step_plan const* before = nullptr, double better = 0) {
  bytes const smallest = jobs.empty() ? 0 : jobs.front().counted.smallest;
  joint_program all = one_after_another(jobs);
  time least{};
  if (setting const whole(all.program, c); target >= least_limit(whole)) least = time_bound(whole, target);
  step_schedule const chosen = schedule_step(std::move(all), c, smallest, target);
  joint_program const& joint = chosen.of;
  solution const& best = chosen.found;
  setting const at(joint.program, c, smallest);
  planned_steps made{.plans = {}, .meets_target = chosen.meets_target};
  bool const plain = chosen.discarded.empty();
  std::vector<std::uint64_t> fingerprints(jobs.size());
  std::ranges::transform(jobs, fingerprints.begin(), &step_program::fingerprint);
  bool const again = before != nullptr && before->source() != nullptr && before->source()->fingerprints == fingerprints;
  std::shared_ptr<plan_source const> source;
  if (plain) source = std::make_shared<plan_source const>(plan_source{best.schedule, std::move(fingerprints)});
  bool const in_turns = jobs.size() > 1 && !fit_at_once(jobs, target);
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    forecast expected{.step = best.outcome.total,
                      .stalled = best.outcome.stalled,
                      .least = least,
                      .peak = best.outcome.peak,
                      .target = target};
    for (move const& m : best.schedule.moves) {
      if (joint.origins[m.away.variable].job != j) continue;
      ++expected.moves;
      if (at.comes_back(m.away)) expected.in += at.size_of(m.away);
      if (!at.program().variables[m.away.variable].has_copy) expected.out += at.size_of(m.away);
    }
    for (absence const& a : chosen.discarded) {
      if (joint.origins[a.variable].job == j) ++expected.recomputed;
    }
    if (plain && again && j == 0) made.kept = detail::as_good(*before, at, expected, better);
    if (made.kept) return made;
    made.plans.push_back(
        std::make_shared<step_plan const>(jobs[j], detail::moves_of(chosen, at, j), expected, in_turns, source));
  }
  return made;
}

}  // namespace gmlake::swap
