#pragma once
/// A thread of its own makes each plan, which the pool takes up at the end of a later step. The thread touches nothing
/// but its job, so that nobody need wait for it, at exit either.

#include <new>
#include <system_error>
#include <thread>

#include "gmlake/plan/plan_job.hpp"
#include "gmlake/plan/planning_policy.hpp"

namespace gmlake::plan {

struct plan_in_background {
  static constexpr bool enabled = true;
  void start(std::shared_ptr<plan_job> const& job) noexcept {
    try {
      std::thread([job] { job->run(); }).detach();
    } catch (std::system_error const&) {
      // No thread to be had: the job is never done, and the pool goes on without a plan.
    } catch (std::bad_alloc const&) {
    }
  }
};
static_assert(PlanningPolicy<plan_in_background>);

}  // namespace gmlake::plan
