#pragma once
/// Plans are made by the request that ends a step, which waits: replays are the same each time.

#include "gmlake/plan/plan_job.hpp"
#include "gmlake/plan/planning_policy.hpp"

namespace gmlake::plan {

struct plan_at_once {
  static constexpr bool enabled = true;
  void start(std::shared_ptr<plan_job> const& job) noexcept { job->run(); }
};
static_assert(PlanningPolicy<plan_at_once>);

}  // namespace gmlake::plan
