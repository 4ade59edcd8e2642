#pragma once
/// PlanningPolicy: whether a pool plans, and who makes the plans (`plan_at_once`, `plan_in_background`).
///
/// Pools that plan need "gmlake/pool/planner.hpp", which a preset like `planned` includes.

#include <concepts>
#include <memory>

namespace gmlake::plan {

class plan_job;

/// | expression     | returns | what it does                                                  |
/// | -------------- | ------- | ------------------------------------------------------------- |
/// | `P::enabled`   | `bool`  | false: the pool does without, at no cost                      |
/// | `p.start(job)` | `void`  | sees to it that `job->run()` is called once, on any thread    |
template <class P>
concept PlanningPolicy = std::movable<P> && requires(P& p, std::shared_ptr<plan_job> job) {
  requires std::same_as<decltype(P::enabled), bool const>;
  { p.start(std::move(job)) } noexcept -> std::same_as<void>;
};

/// The pool knows no plans.
struct no_plans {
  static constexpr bool enabled = false;
  void start(std::shared_ptr<plan_job> const&) noexcept {}
};
static_assert(PlanningPolicy<no_plans>);

}  // namespace gmlake::plan
