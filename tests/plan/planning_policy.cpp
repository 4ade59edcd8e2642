#include "gmlake/plan/planning_policy.hpp"

#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "gmlake/plan/plan_at_once.hpp"
#include "gmlake/plan/plan_in_background.hpp"

using namespace gmlake::plan;

namespace {

struct may_throw {
  static constexpr bool enabled = true;
  void start(std::shared_ptr<plan_job> const&) {}
};
struct not_told {
  void start(std::shared_ptr<plan_job> const&) noexcept {}
};
struct told_at_run_time {
  bool enabled = true;
  void start(std::shared_ptr<plan_job> const&) noexcept {}
};
struct starts_nothing {
  static constexpr bool enabled = true;
};
static_assert(!PlanningPolicy<may_throw>);
static_assert(!PlanningPolicy<not_told>);
static_assert(!PlanningPolicy<told_at_run_time>);
static_assert(!PlanningPolicy<starts_nothing>);
static_assert(!no_plans::enabled && plan_at_once::enabled && plan_in_background::enabled);

[[nodiscard]] std::shared_ptr<plan_job> some_job() {
  plan p{.requests = {{.size = 512, .birth = 0, .death = 1}}, .period = 2};
  return std::make_shared<plan_job>(std::move(p), std::vector<segment>{});
}

}  // namespace

TEST_CASE("without plans a job is neither run nor kept") {
  std::shared_ptr<plan_job> const job = some_job();
  no_plans{}.start(job);
  CHECK_FALSE(job->done());
  CHECK(job.use_count() == 1);
}

TEST_CASE("a plan made at once is there when the request goes on") {
  std::shared_ptr<plan_job> const job = some_job();
  plan_at_once{}.start(job);
  REQUIRE(job->done());
  CHECK(job->take() != nullptr);
  CHECK(job.use_count() == 1);
}

TEST_CASE("a plan made in the background comes without anybody waiting for it") {
  using namespace std::chrono_literals;
  std::shared_ptr<plan_job> const job = some_job();
  plan_in_background{}.start(job);
  for (int i = 0; i < 10'000 && !job->done(); ++i) std::this_thread::sleep_for(1ms);
  REQUIRE(job->done());
  CHECK(job->take() != nullptr);
}

TEST_CASE("a plan made in the background that nobody awaits any more does no harm") {
  plan_in_background{}.start(some_job());
}
