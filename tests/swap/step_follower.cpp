#include "gmlake/swap/step_follower.hpp"

#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::step_follower_test {
namespace {

/// Pages of a pool in which there are none.
struct no_pages {
  template <std::invocable<page&> F>
  void each(F&&) const {}
  template <std::invocable<page&> F>
  void rekey(page& p, F&& change) {
    change(p);
  }
  [[nodiscard]] page* find(address) const { return nullptr; }
  [[nodiscard]] bool send(page&, bool, vacating, bool) { return false; }
  [[nodiscard]] bool begin_return(page& p, foresight const&) {
    ++asked;
    if (p.number == lacks) return false;
    begun.push_back(p.number);
    return true;
  }
  [[nodiscard]] std::uint64_t awaited(page const& p) const { return waits.at(p.number); }
  [[nodiscard]] bool awaits_copy(page const& p) const { return p.number == leaves; }
  [[nodiscard]] bytes live() const { return in_use; }
  void foresee(page const&, foresight const&) {}
  bool look(bool) { return false; }
  void unmap_absent(std::uint32_t job) { unmapped.push_back(job); }

  std::vector<std::uint32_t> unmapped, begun;
  std::vector<std::uint64_t> waits;  ///< by number
  std::uint32_t leaves = ~0U;        ///< whose copy out is under way
  std::uint32_t lacks = ~0U;         ///< for which there is no memory
  int asked = 0;                     ///< whether there is
  bytes in_use = 9000;
};

/// Of so many operations, with a block that is born before the second one and dies before the last.
[[nodiscard]] std::shared_ptr<step_plan const> plan_of(std::uint32_t operations, bool in_turns,
                                                       planned_moves moves = {}, time each = time(1000)) {
  step_program made;
  made.program.operations.assign(operations, each);
  made.program.variables = {{.size = 2000, .birth = 1, .death = operations - 1, .accesses = {{1}, {operations - 2}}}};
  made.prefixes.assign(operations, 0);
  made.who = {{.is = identity::kind::born, .number = 0}};
  return std::make_shared<step_plan const>(made, std::move(moves), forecast{}, in_turns);
}

struct follower_rig {
  explicit follower_rig(std::vector<std::shared_ptr<step_plan const>> const& plans) {
    for (std::uint32_t i = 0; i < plans.size(); ++i) {
      jobs.push_back(std::make_unique<pager_job>(i, 0, options));
      jobs[i]->plan = plans[i];
    }
    follower.step_begun(*jobs[0], plans[0]);
  }
  /// Of the block that the first job makes next.
  [[nodiscard]] foresight birth() const { return follower.of_birth(*jobs[0], 2000); }

  pager_options options;
  pager_stats seen;
  no_pages pages;
  step_follower<no_pages>::jobs jobs;
  step_follower<no_pages> follower{pages, jobs, seen};
};

TEST_CASE("what is left mapped is unmapped when a step begins, unless it and two before it follow their like") {
  auto const sends = [](std::uint32_t after) {
    return planned_moves{.outs = {{.variable = 0, .after = after, .before = 8, .from = 6, .gone = 4}}, .returns = {}};
  };
  auto const first = plan_of(10, false, sends(1)), alike = plan_of(10, false, sends(1)),
             other = plan_of(10, false, sends(2));
  follower_rig r({first});
  pager_job& j = *r.jobs[0];
  known_step* const k = j.known.enter(first->fingerprint(), 10);
  REQUIRE(k != nullptr);
  k->plan = first;
  for (int i = 0; i < 2; ++i) k->proof.step_done();
  j.trust = 2;
  for (std::size_t unmapped : {1U, 2U, 2U}) {  // the first of its kind has begun
    j.left_mapped = true;
    r.follower.step_begun(j, first);
    CHECK(j.proof.holds(0));
    CHECK(r.pages.unmapped.size() == unmapped);
  }
  r.pages.unmapped.clear();
  k->proof = k->proof.of_another(*first, *alike);
  k->plan = alike;
  r.follower.step_begun(j, alike);
  CHECK(j.proof.holds(0));
  k->proof = k->proof.of_another(*alike, *other);
  k->plan = other;
  r.follower.step_begun(j, other);
  CHECK_FALSE(j.proof.holds(0));
  CHECK(r.pages.unmapped.empty());  // what is away by the plan before is so between the accesses that it is proven for
  SUBCASE("another kind") { r.follower.step_begun(j, nullptr); }
  SUBCASE("departed") {
    j.trust = 0;
    r.follower.step_begun(j, other);
  }
  CHECK(r.pages.unmapped == std::vector<std::uint32_t>{0});
  r.follower.step_begun(j, nullptr);
  CHECK(r.pages.unmapped.size() == 1);  // nothing is left mapped since
}

TEST_CASE("alone, what comes again in the next step comes so many operations later") {
  foresight const f = follower_rig({plan_of(10, false)}).birth();
  CHECK(f.now == 1);
  CHECK(f.until == 9 + 2);  // freed behind what returns when the operation before its death has ended
  CHECK(f.again == 11 + 1);
}

TEST_CASE("what leaves has gone when the operation begins that may have its memory") {
  planned_moves moves;
  moves.outs = {{.variable = 0, .after = 1, .before = 8, .from = 6, .gone = 4}};
  follower_rig const r({plan_of(10, false, std::move(moves))});
  foresight const f = r.birth();
  CHECK(f.now == 1);  // the first operation begins
  CHECK(f.until == 4 + 1);
  CHECK(f.again == 6 + 1);
}

TEST_CASE("what is free within ten milliseconds of work is waited for") {
  auto const plan = [](time each) { return plan_of(10, false, {}, each); };
  CHECK(follower_rig({plan(time(4'000'000))}).birth().soon == 1 + 2);
  CHECK(follower_rig({plan(time(5'000'000))}).birth().soon == 1 + 2);
  CHECK(follower_rig({plan(time(11'000'000))}).birth().soon == 1);
  CHECK(follower_rig({plan(time(1000))}).birth().soon == 1 + 10);  // the step's end
  CHECK(follower_rig({plan(time(4'000'000)), plan(time(1000))}).birth().soon == 1 + 2 * 2);
}

TEST_CASE("what is born in the first two milliseconds of a turn had better not wait") {
  auto const births = [](bool in_turns, time each, int operations) {
    follower_rig r({plan_of(10, in_turns, {}, each)});
    for (int i = 0; i < operations; ++i) r.jobs[0]->log.end_operation();
    return r.birth().at_once;
  };
  CHECK(births(true, time(11'000'000), 0));
  CHECK_FALSE(births(true, time(11'000'000), 1));
  CHECK(births(true, time(1'000'000), 2));
  CHECK_FALSE(births(true, time(1'000'000), 3));
  CHECK_FALSE(births(false, time(1'000'000), 0));
}

TEST_CASE("where jobs take turns, a step runs alone and the next one comes behind the others'") {
  foresight const f = follower_rig({plan_of(10, true), plan_of(100, true), plan_of(7, true)}).birth();
  CHECK(f.until == 9 + 2);
  CHECK(f.again == 11 + 107 + 1);
}

TEST_CASE("where jobs run at the same time, each does so much of all that is done") {
  foresight const f = follower_rig({plan_of(10, false), plan_of(100, false)}).birth();
  CHECK(f.until == 2 * 9 + 2);
  CHECK(f.again == 2 * 11 + 1);
}

TEST_CASE("what a step of one kind makes comes again behind those of other kinds, if they come in turn") {
  auto const again = [](bool in_turns, bool returns) {
    follower_rig r({plan_of(10, in_turns), plan_of(100, in_turns)});
    pager_job& j = *r.jobs[0];
    std::uint64_t const own = j.plan->fingerprint();
    for (std::uint64_t const kind : {own, own + 1, own + 2}) REQUIRE(j.known.enter(kind, kind == own ? 10 : 20));
    j.known.find(own)->plan = j.plan;
    j.known.find(own)->followed_by = own + 1;
    j.known.find(own + 1)->followed_by = own + 2;
    j.known.find(own + 2)->followed_by = returns ? own : own + 1;
    r.follower.step_begun(j, j.plan);
    return r.birth().again;
  };
  CHECK(again(true, true) == 11 + 20 + 20 + 3 * 100 + 1);
  CHECK(again(false, true) == 2 * (11 + 20 + 20) + 1);
  CHECK(again(true, false) == 11 + 100 + 1);
}

TEST_CASE("what a turn makes that no plan foresees is gone when the turn is over") {
  follower_rig r({nullptr, plan_of(100, true)});
  CHECK(r.birth().until == foresight::never);
  CHECK_FALSE(r.birth().dies);
  r.jobs[0]->turn = turn::taken;
  CHECK(r.birth().until == r.birth().now);
  CHECK(r.birth().dies);
}

TEST_CASE(
    "jobs that are over take none of that time, and those without a plan what their last step did, if it is known") {
  follower_rig r({plan_of(10, true), plan_of(100, true), nullptr});
  r.jobs[1]->open = false;
  r.follower.step_begun(*r.jobs[0], r.jobs[0]->plan);
  CHECK(r.birth().again == 11 + 1);
  REQUIRE(r.jobs[2]->known.enter(5, 30));
  r.jobs[2]->fingerprint = 5;  // of its last step
  r.follower.step_begun(*r.jobs[0], r.jobs[0]->plan);
  CHECK(r.birth().again == 11 + 30 + 1);
}

/// Five blocks that are away once the first of four operations has ended. Behind it four return, the first for the
/// third operation and the others for the last; behind the second one the fifth.
struct returning_rig : follower_rig {
  /// `first`: the operation before which the first of them returns at the earliest.
  explicit returning_rig(bool host_bound = false, std::int64_t first = 1) : follower_rig({nullptr}) {
    step_program made;
    made.program.operations.assign(4, time(1000));
    if (host_bound) made.program.launched.assign(4, time(0));
    planned_moves moves;
    for (std::uint32_t v = 0; v < 5; ++v) {
      made.program.variables.push_back({.size = 2000, .birth = 0, .death = 4, .accesses = {{0}, {v == 0 ? 2U : 3U}}});
      made.who.push_back({.is = identity::kind::born, .number = v});
      moves.returns.push_back({.variable = v, .from = v == 4 ? 2 : v == 0 ? first : 1, .due = v == 0 ? 2U : 3U});
    }
    step_log like(1000);
    std::vector<page> twins(5);
    for (page& p : twins) like.born(p);
    for (int i = 0; i < 4; ++i) {
      like.end_operation();
      made.prefixes.push_back(like.prefix());
    }
    follower.step_begun(job(), std::make_shared<step_plan const>(made, std::move(moves), forecast{}));
    for (page& p : away) job().log.born(p);
  }
  /// What has begun to return by the end of the next operation.
  [[nodiscard]] std::vector<std::uint32_t> const& next() {
    job().log.end_operation();
    follower.operation_ended(job());
    return pages.begun;
  }
  [[nodiscard]] pager_job& job() { return *jobs[0]; }

  std::vector<page> away = std::vector<page>(5);
};

TEST_CASE("of what one operation waits for, that returns first whose memory is there first") {
  returning_rig r;
  r.pages.waits = {9, 3, 0, 2, 1};
  CHECK(r.next() == std::vector<std::uint32_t>{0, 2, 3, 1});
  CHECK(r.next() == std::vector<std::uint32_t>{0, 2, 3, 1, 4});
}

TEST_CASE(
    "what finds no memory to return to looks again when the next operation begins, if anything has died by then") {
  returning_rig r;
  r.pages.waits = {9, 3, 0, 2, 1};
  r.follower.operation_begins(r.job());
  CHECK(r.pages.asked == 0);
  r.pages.lacks = 2;
  CHECK(r.next() == std::vector<std::uint32_t>{0});
  SUBCASE("found") {
    r.pages.lacks = ~0U;
    r.pages.in_use -= 2000;
    r.follower.operation_begins(r.job());
    CHECK(r.pages.begun == std::vector<std::uint32_t>{0, 2, 3, 1});
    r.follower.operation_begins(r.job());
    CHECK(r.pages.begun.size() == 4);
    CHECK(r.next() == std::vector<std::uint32_t>{0, 2, 3, 1, 4});
  }
  SUBCASE("nothing has died") {
    r.pages.lacks = ~0U;
    r.follower.operation_begins(r.job());
    CHECK(r.pages.begun == std::vector<std::uint32_t>{0});
    CHECK(r.next() == std::vector<std::uint32_t>{0, 2, 4, 3, 1});
  }
  SUBCASE("not found, which is looked for once") {
    r.pages.in_use -= 2000;
    r.follower.operation_begins(r.job());
    int const asked = r.pages.asked;
    r.follower.operation_begins(r.job());
    CHECK(r.pages.asked == asked);
    r.pages.lacks = ~0U;
    CHECK(r.pages.begun == std::vector<std::uint32_t>{0});
    CHECK(r.next() == std::vector<std::uint32_t>{0, 2, 4, 3, 1});
  }
}

TEST_CASE("but not once another step has begun, which may have to wait for its turn") {
  returning_rig r(false, 0);
  r.pages.waits = {9, 3, 0, 2, 1};
  r.pages.lacks = 0;
  CHECK(r.next().empty());
  r.pages.lacks = ~0U;
  r.pages.in_use -= 2000;
  r.follower.step_begun(r.job(), r.job().plan);
  r.follower.operation_begins(r.job());
  CHECK(r.pages.begun.empty());
  r.follower.begin_returns(r.job());
  CHECK(r.pages.begun == std::vector<std::uint32_t>{0});
}

TEST_CASE("where the host is what steps wait for, it waits for no copy out: what comes behind returns later") {
  bool host_bound = true;
  SUBCASE("") {}
  SUBCASE("elsewhere it does") { host_bound = false; }
  returning_rig r(host_bound);
  r.pages.waits = {9, 3, 0, 2, 1};
  r.pages.leaves = 3;
  if (!host_bound) {
    CHECK(r.next() == std::vector<std::uint32_t>{0, 2, 3, 1});
  } else {
    CHECK(r.next() == std::vector<std::uint32_t>{0, 2});
    r.pages.leaves = ~0U;
    CHECK(r.next() == std::vector<std::uint32_t>{0, 2, 4, 3, 1});
  }
}

}  // namespace
}  // namespace gmlake::swap::step_follower_test
