/// What learns and makes plans stops where host memory runs out, says so, and has lost nothing but the plan.

#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/plan/learner.hpp"
#include "gmlake/plan/plan_in_background.hpp"
#include "tests/host_memory/scarcity.hpp"

using namespace gmlake;
using namespace gmlake::test;
using plan::step_log;

namespace {

/// Calls `f` with every allocation failing.
template <class F>
decltype(auto) without_memory(F&& f) {
  struct to_the_end {
    to_the_end() noexcept { run_short({.first = 0, .count = shortage::endless}); }
    ~to_the_end() { run_short({}); }
    scarce host_memory;
  } const shortage_here;
  return f();
}

/// Ten buffers that live all together.
[[nodiscard]] plan::plan ten() {
  plan::plan p{.requests = {}, .period = 20};
  for (plan::instant i = 0; i < 10; ++i) p.requests.push_back({.size = 1_MiB, .birth = i, .death = 10 + i});
  return p;
}

void repeat_marked(plan::learner& l, int steps) {
  for (int s = 0; s < steps; ++s) {
    l.mark_step();
    for (bytes i = 1; i <= 40; ++i) {
      CHECK_FALSE(l.next());
      l.freed(l.allocated(512 * i, 0), 512 * i);
    }
  }
}

}  // namespace

TEST_CASE("a log that finds no room stops, and knows what is live") {
  step_log log;
  std::uint64_t const first = log.allocated(512, 0);
  while (log.end() < 4096) (void)log.allocated(512, 0);
  CHECK(without_memory([&] { return log.allocated(1024, 0); }) == step_log::unlogged);
  CHECK(log.stopped());
  CHECK(log.allocated(1024, 0) == step_log::unlogged);  // it would leave a gap
  CHECK(log.end() == 4096);
  CHECK(log.live() == 4096 * 512 + 2048);
  log.freed(step_log::unlogged, 1024);
  log.freed(first, 512);
  CHECK(log.live() == 4095 * 512 + 1024);
  CHECK(log.now() == 4100);
}

TEST_CASE("cleared, a log that has stopped goes on") {
  step_log log;
  CHECK(without_memory([&] { return log.allocated(512, 0); }) == step_log::unlogged);
  log.clear(log.live());
  CHECK_FALSE(log.stopped());
  CHECK(log.allocated(512, 0) == 0);
  CHECK(log.live() == 1024);
}

TEST_CASE("a learner that finds no memory is quiet, and learns again after a restart") {
  plan::learner l;
  without_memory([&] { repeat_marked(l, 1); });
  repeat_marked(l, 4);
  l.restart(0, true);
  repeat_marked(l, 2);
  l.mark_step();
  CHECK(l.next());
}

TEST_CASE("a step that there is no memory for is offered another time") {
  plan::learner l;
  repeat_marked(l, 2);
  l.mark_step();
  CHECK_THROWS_AS(without_memory([&] { (void)l.next(); }), std::bad_alloc);
  for (bytes i = 1; i <= 40; ++i) l.freed(l.allocated(512 * i, 0), 512 * i);
  l.mark_step();
  CHECK(l.next());
}

TEST_CASE("a job makes its track or none, whichever allocation fails") {
  bool made = false;
  for (std::uint64_t n = 0; !made; n += 1 + n / 8) {
    CAPTURE(n);
    auto job = std::make_unique<plan::plan_job>(ten(), std::vector<plan::segment>{{address{1_MiB}, 10_MiB, 0}});
    std::int64_t const before = unfreed();
    std::uint64_t const already = refusals();
    run_short({.first = n});
    {
      scarce const host_memory;
      job->run();
    }
    run_short({});
    CHECK(job->done());
    std::unique_ptr<plan::track> const track = job->take();
    made = refusals() == already;
    CHECK((track != nullptr) == made);
    if (!made) CHECK(unfreed() <= before);
  }
}

TEST_CASE("without memory for a thread a job is let go") {
  auto const job = std::make_shared<plan::plan_job>(ten(), std::vector<plan::segment>{});
  without_memory([&] { plan::plan_in_background{}.start(job); });
  CHECK_FALSE(job->done());
  CHECK(job.use_count() == 1);
}
