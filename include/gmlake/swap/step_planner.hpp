#pragma once
/// Decides which steps are planned, when and for what, and which plan is in force: of what came next the last time.
///
/// A step is planned when it is a job's second, or has come twice; and again when what had to leave on demand counts
/// under a plan that meets its target, when operations or copies take another time by now, and when the limit has
/// changed or a job has gone. Each plan is for all jobs whose steps are known, which take turns. Where another would
/// hardly do better than the one there is, that is kept, with its mappings. One that makes a lone job's steps longer
/// than the one before did is given up for that again (`plan_trial`). Where the host seems to hold its steps up, a plan
/// is tried that knows when operations are launched (`step_plan::host_bound`), unless it expects no less than steps
/// take; and then, whether memory that is late is waited for, which is held against not waiting once more when it has
/// settled.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "gmlake/swap/observed_channel.hpp"
#include "gmlake/swap/pager_job.hpp"
#include "gmlake/swap/pager_options.hpp"
#include "gmlake/swap/planning.hpp"
#include "gmlake/swap/simulate.hpp"

namespace gmlake::swap {

class step_planner {
 public:
  using jobs = std::vector<std::unique_ptr<pager_job>>;

  step_planner(jobs& all, pager_options const& options, observed_channel const& link, pager_stats& seen) noexcept
      : jobs_(&all), options_(&options), link_(&link), seen_(&seen) {}

  /// The others are planned again, without it.
  void job_gone() noexcept { ++gone_; }

  /// Files what the job's step has done, and begins the next. Plans to be made, if it is time to: by `start`, without
  /// any lock. Null: none. `counted`: in the pool as it is now.
  [[nodiscard]] std::shared_ptr<planning> end_step(pager_job& j, block_counting const& counted) noexcept {
    step_log& log = j.log;
    bool const any = log.operations() > 0;
    if (any && j.plan != nullptr && log.operations() != j.plan->operations()) {
      ++seen_->departures;
      j.by_plan = false;
    }
    ++seen_->steps;
    if (any && j.by_plan) ++seen_->steps_by_schedule;
    j.trust = any && j.by_plan ? j.trust + 1 : 0;
    if (known_step* const by = any ? j.known.planned(j.plan.get()) : nullptr) {
      if (j.by_plan) by->proof.step_done();
      else by->proof = {};
    }
    if (!log.complete()) ++seen_->steps_not_logged;
    j.others_before = std::exchange(j.others, 0);
    std::shared_ptr<planning> made;
    known_step* const k = any && log.complete() ? j.known.enter(log.fingerprint(), log.operations()) : nullptr;
    if (k != nullptr) {
      if (known_step* const before = j.known.find(j.fingerprint)) before->followed_by = k->fingerprint;
      ++k->seen;
      k->last_seen = log.step();
      for (std::uint32_t i = 0; i < log.operations(); ++i) k->average(i, log.times()[i], options_->smoothing);
      if (options_->clock != nullptr && j.plan != nullptr) k->launches.note(log.launches());
      judge(j, *k);
      if (wants_plan(j, *k)) made = planning_of(j, *k, counted);
    }
    j.fingerprint = k != nullptr ? k->fingerprint : 0;
    j.before_number = j.step_number;
    j.step_number = j.next_number;
    j.evicted = 0;
    if (options_->clock != nullptr) j.began = options_->clock();
    log.begin_step();
    return made;
  }

  void start(std::shared_ptr<planning> const& plans) const noexcept {
    if (options_->in_background) {
      try {
        std::thread([plans] { plans->run(); }).detach();
        return;
      } catch (std::system_error const&) {
        // No thread to be had.
      } catch (std::bad_alloc const&) {
      }
    }
    plans->run();
  }

  /// Takes in plans that are done: each job takes its own up when its next step begins.
  void adopt() noexcept {
    if (being_made_ == nullptr || !being_made_->done()) return;
    std::shared_ptr<planning> const done = std::exchange(being_made_, nullptr);
    planned_steps const& made = done->made();
    if (!made.meets_target) ++seen_->plans_failed;
    for (std::size_t i = 0; i < made.plans.size(); ++i) {
      planning::part const& of = done->of()[i];
      pager_job& j = *(*jobs_)[of.job];
      known_step* const k = j.open && j.life == of.life ? j.known.find(of.fingerprint) : nullptr;
      if (k == nullptr) continue;
      if (takes_no_less(*made.plans[i], *k)) {
        k->host_bound = false;
        ++seen_->plans_kept;
        continue;
      }
      ++seen_->plans_made;
      begin_trial(*k, *made.plans[i], made.plans.size() == 1);
      put_in_force(*k, made.plans[i]);
    }
    if (!made.kept) return;
    for (planning::part const& of : done->of()) keep(of, *made.kept);
  }

  /// Of what came next, the last time, or of what comes most often: a wrong one is left soon. Null where none is known.
  [[nodiscard]] std::shared_ptr<step_plan const> next_plan(pager_job& j) const noexcept {
    known_step const* const last = j.known.find(j.fingerprint);
    known_step const* next = last != nullptr ? j.known.find(last->followed_by) : nullptr;
    if (next == nullptr || next->plan == nullptr) next = j.known.most_seen();
    return next != nullptr ? next->plan : nullptr;
  }

  /// What a job's plan in force comes to.
  [[nodiscard]] forecast const& expected(pager_job& j) const noexcept {
    known_step const* const k = j.known.find(j.plan->fingerprint());
    return k != nullptr && k->plan == j.plan ? k->expected : j.plan->expected();
  }

 private:
  static constexpr double limit_changed = 0.02;    ///< by that share, it is worth other plans
  static constexpr double held_up = 1.05;          ///< by the host, a step that takes so much of what is expected
  static constexpr std::size_t looks = 3;          ///< at steps by a plan that knows when operations are launched
  static constexpr double worth_planning = 0.002;  ///< of a step's time; the first steps by another plan take long

  [[nodiscard]] static bool differ(double a, double b, double share) noexcept { return std::abs(a - b) > share * b; }

  /// Whether what left on demand, and comes back, keeps the channel for so much of a step: little, as the host waits
  /// too.
  [[nodiscard]] bool takes_long(bytes evicted, time step) const noexcept {
    time const both = link_->now().out.time_of(evicted) + link_->now().in.time_of(evicted);
    return evicted > 0 && static_cast<double>(both.count()) > worth_planning * static_cast<double>(step.count());
  }

  /// Whether a plan that knows when operations are launched expects no less than steps take by the one without.
  [[nodiscard]] static bool takes_no_less(step_plan const& plan, known_step const& k) noexcept {
    if (!plan.host_bound() || k.plan == nullptr || k.plan->host_bound()) return false;
    return k.trial.took() > time::zero() && plan.expected().step >= k.trial.took();
  }

  /// The step is to go by another plan from now on; `alone`: which is not made together with other jobs'.
  static void begin_trial(known_step& k, step_plan const& plan, bool alone) noexcept {
    plan_trial::way const* const before = k.trial.before();
    if (before != nullptr && before->plan->host_bound() == plan.host_bound()) k.waits = before->waits;
    bool const otherwise = k.plan != nullptr && k.plan->host_bound() != plan.host_bound();
    if (!k.renewed || !alone) k.trial.begin();
    else if (otherwise) k.trial.begin(k.way(), plan_trial::shorter, looks);
    else k.trial.begin(k.way());
    if (otherwise) k.waits = plan.host_bound();
  }
  static void put_in_force(known_step& k, std::shared_ptr<step_plan const> plan) noexcept {
    k.proof = k.plan != nullptr ? k.proof.of_another(*k.plan, *plan) : plan_proof();
    k.plan = std::move(plan);
    k.waiting_tried = k.waits;
    k.not_waiting_tried = false;
    k.expected = k.plan->expected();
  }

  /// A plan made anew would do no better than the one there is.
  void keep(planning::part const& of, forecast const& now) noexcept {
    pager_job& j = *(*jobs_)[of.job];
    known_step* const k = j.open && j.life == of.life ? j.known.find(of.fingerprint) : nullptr;
    if (k == nullptr || k->plan == nullptr) return;
    k->expected.step = now.step;
    k->expected.stalled = now.stalled;
    k->expected.peak = now.peak;
    k->expected.least = now.least;
    ++seen_->plans_kept;
  }

  /// A step of this kind has ended.
  void judge(pager_job const& j, known_step& k) const noexcept {
    if (options_->clock == nullptr || !j.by_plan || k.plan == nullptr || j.plan != k.plan) return;
    if (j.waits) ++seen_->steps_waiting;
    if (j.plan->host_bound()) ++seen_->steps_host_bound;
    if (std::optional<plan_trial::way> before = k.trial.step_took(options_->clock() - j.began)) {
      k.waits = before->waits;
      k.host_bound = before->plan->host_bound();
      if (before->plan == k.plan) return;
      ++seen_->plans_reverted;
      put_in_force(k, std::move(before->plan));
      k.expected = before->expected;
    } else if (!k.host_bound_tried && k.launches.known() && is_held_up(j, k)) {
      k.host_bound = k.host_bound_tried = true;
    } else if (k.host_bound != k.plan->host_bound()) {
      // It is being planned so.
    } else if (!k.waits && !k.waiting_tried && is_held_up(j, k)) {
      k.trial.begin(k.way(), plan_trial::shorter);
      k.waits = k.waiting_tried = true;
    } else if (k.waits && !k.not_waiting_tried && k.trial.took() > time::zero()) {
      k.trial.begin(k.way(), plan_trial::shorter);
      k.waits = false;
      k.not_waiting_tried = true;
    }
  }

  /// Whether a lone job's steps take longer than their schedule does: the host may be what holds them up.
  [[nodiscard]] bool is_held_up(pager_job const& j, known_step const& k) const noexcept {
    if (!k.expected.fits()) return false;
    auto const beside = [&](auto const& o) { return o.get() != &j && o->open && o->plan != nullptr; };
    if (std::ranges::any_of(*jobs_, beside)) return false;
    return static_cast<double>(k.trial.took().count()) > held_up * static_cast<double>(k.expected.step.count());
  }

  [[nodiscard]] bool wants_plan(pager_job const& j, known_step& k) const noexcept {
    if (!options_->schedules || options_->limit == no_limit || being_made_ != nullptr) return false;
    if (k.plan == nullptr) return k.seen >= 2 || j.log.step() == 2;
    if (k.planned_among != gone_ || k.host_bound != k.plan->host_bound()) return true;
    if (differ(static_cast<double>(options_->limit), static_cast<double>(k.planned_for), limit_changed)) {
      k.overdraft = 0;
      return true;
    }
    if (k.seen < k.plan_again_at) return false;
    // A plan's first steps find what the step before has left, and its mappings have to be made.
    std::uint32_t const first = options_->leave_mapped ? plan_proof::steps_unmapped + 1 : 1;
    bool const settled = j.plan == k.plan && j.trust > first && k.proof.steps() > first;
    if (settled && j.plan->expected().fits() && takes_long(j.evicted, j.plan->expected().step)) {
      bytes const more = std::clamp(j.evicted, options_->limit / 64, options_->limit / 16);
      k.overdraft = std::min(k.overdraft + more, options_->limit / 4);
      return true;
    }
    if (drifted(link_->now().out, k.planned_over.out) || drifted(link_->now().in, k.planned_over.in)) return true;
    return k.planned_with > time::zero() &&
           differ(static_cast<double>(k.sum().count()), static_cast<double>(k.planned_with.count()), options_->drift);
  }
  [[nodiscard]] bool drifted(lane const& now, lane const& then) const noexcept {
    return differ(static_cast<double>(now.bytes_per_second), static_cast<double>(then.bytes_per_second),
                  options_->drift);
  }

  /// What schedules may use: less what is not the pages', what is ahead, and what has turned out to be missing.
  [[nodiscard]] bytes target(bytes overdraft) const noexcept {
    double const seconds = static_cast<double>(options_->ahead.count()) / 1e9;
    bytes less = static_cast<bytes>(seconds * static_cast<double>(options_->channel.out.bytes_per_second)) + overdraft;
    bytes others = 0;
    for (auto const& j : *jobs_) {
      if (j->open) others = std::max({others, j->others, j->others_before});
    }
    less += others;
    return options_->limit > less ? options_->limit - less : 0;
  }

  /// Of this step, and of what the other jobs do.
  [[nodiscard]] std::shared_ptr<planning> planning_of(pager_job& j, known_step& k,
                                                      block_counting const& counted) noexcept {
    try {
      k.program = std::make_shared<step_program const>(j.log.program(counted));
      std::vector<planning::part> of;
      std::vector<step_program> programs;
      std::shared_ptr<step_plan const> before = k.plan;  // if the others' were made together with it
      if (k.plan != nullptr && k.host_bound != k.plan->host_bound()) before = nullptr;
      bytes overdraft = 0;
      for (auto& other : *jobs_) {
        known_step* const its = other.get() == &j ? &k : other->known.last_seen();
        bool const fits = its == &k || (its != nullptr && its->times.size() > 1 && k.times.size() > 1);
        if (!other->open || !fits) continue;
        overdraft += its->overdraft;
        if (before != nullptr && (its->plan == nullptr || its->plan->source() != before->source())) before = nullptr;
        of.push_back({other->index, other->life, its->fingerprint});
        programs.push_back(*its->program);
        programs.back().program.operations = its->filled_times(options_->unmeasured);
        its->renewed = its->planned_for == options_->limit && its->planned_among == gone_;
        if (!its->renewed) its->host_bound = its->host_bound_tried = false;
        if (its != &k) its->host_bound = k.host_bound = false;
        its->planned_for = options_->limit;
        its->planned_among = gone_;
        its->planned_with = its->sum();
        its->planned_over = link_->now();
        its->plan_again_at = its->seen + (std::uint64_t{1} << std::min(++its->plans, 10U));
      }
      if (k.host_bound) programs.front().program.launched = k.launches.since_first();
      return being_made_ = std::make_shared<planning>(std::move(of), std::move(programs), link_->now(),
                                                      target(overdraft), std::move(before), options_->better);
    } catch (std::bad_alloc const&) {
      return nullptr;
    }
  }

  jobs* jobs_;
  pager_options const* options_;
  observed_channel const* link_;
  pager_stats* seen_;
  std::shared_ptr<planning> being_made_;
  std::uint64_t gone_ = 0;  ///< jobs
};

}  // namespace gmlake::swap
