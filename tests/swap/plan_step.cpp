#include "gmlake/swap/plan_step.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/step_plan.hpp"

namespace gmlake::swap::plan_step_test {
namespace {

constexpr std::uint32_t none = page::none;

/// Ten operations of 1000 ns: a weight that is away twice, one that stays, what is born in the step and leaves in it,
/// and what comes and goes.
program ten() {
  program p;
  p.operations.assign(10, time(1000));
  p.variables = {{.size = 2000, .birth = 0, .death = 10, .carried = true, .accesses = {{1}, {6}}},
                 {.size = 2000, .birth = 0, .death = 10, .carried = true, .accesses = {{0}}},
                 {.size = 2000, .birth = 1, .death = 9, .accesses = {{1}, {8}}},
                 {.size = 2000, .birth = 3, .death = 6, .accesses = {{3}, {5}}}};
  return p;
}
program const ten_operations = ten();
enum : std::uint32_t { weight, fixed, activation, temporary };

/// A byte a nanosecond each way.
constexpr channel slow{.out = {.latency = time(0), .bytes_per_second = 1'000'000'000},
                       .in = {.latency = time(0), .bytes_per_second = 1'000'000'000}};

step_program logged(program const& p) {
  step_program made;
  made.program = p;
  made.prefixes.assign(p.operations.size(), 0);
  made.who = {{.is = identity::kind::elder, .serial = 1},
              {.is = identity::kind::elder, .serial = 2},
              {.is = identity::kind::born, .number = 0},
              {.is = identity::kind::born, .number = 1}};
  return made;
}
step_plan plan_of(std::vector<planned_out> outs) { return {logged(ten()), {std::move(outs), {}}, {}}; }

bool same(presence const& a, std::uint32_t until, std::uint32_t again, bool dies = false) {
  return a.until == until && a.again == again && a.dies == dies;
}

/// Operations that begin at once one after the other.
outcome unhindered() {
  outcome o;
  for (int i = 0; i <= 10; ++i) o.starts.emplace_back(1000 * i);
  o.total = o.starts.back();
  return o;
}
/// The same where operation 6 is held up for 2000 ns, and the first one of each step for 500.
outcome hindered() {
  outcome o = unhindered();
  for (std::size_t i = 6; i < o.starts.size(); ++i) o.starts[i] += time(2000);
  o.starts.back() += time(500);
  o.total = o.starts.back();
  return o;
}

TEST_CASE("a block that leaves in a step has memory until that is gone, and again when it is on its way back") {
  step_plan const p = plan_of({{.variable = activation, .after = 1, .before = 8, .from = 6, .gone = 4},
                               {.variable = weight, .after = 1, .before = 6, .from = 5, .gone = 3},
                               {.variable = weight, .after = 6, .before = 11, .from = 10, .gone = 8}});
  for (std::uint32_t const i : {0u, 1u}) CHECK(same(p.presence_of(weight, i), 3, 5));
  for (std::uint32_t const i : {2u, 5u, 6u}) CHECK(same(p.presence_of(weight, i), 8, 10));
  CHECK(same(p.presence_of(activation, 1), 4, 6));

  // Beyond its last departure of the step: the first of the next one.
  for (std::uint32_t const i : {7u, 9u}) CHECK(same(p.presence_of(weight, i), 10 + 3, 10 + 5));
}

TEST_CASE("a block that does not leave has memory for its life, and wants it again with the next step's") {
  step_plan const p = plan_of({{.variable = activation, .after = 1, .before = 8, .from = 6, .gone = 4}});
  CHECK(same(p.presence_of(temporary, 3), 6, 13, true));
  CHECK(same(p.presence_of(activation, 2), 9, 11, true));  // it is back, and stays then
  CHECK(same(p.presence_of(fixed, 0), none, none));
  CHECK(same(p.presence_of(weight, 4), none, none));
}

TEST_CASE("movable blocks count for whole chunks, smaller ones for what they are") {
  block_counting const counted{.smallest = 100, .chunk = 64};
  CHECK(counted(99) == 99);
  CHECK(counted(100) == 128);
  CHECK(counted(128) == 128);
  CHECK(counted(129) == 192);

  step_program p = logged(ten());
  p.counted = counted;
  p.program.variables[activation].size = counted(120);
  p.program.variables[temporary].size = counted(90);
  step_plan const plan(p, {}, {});
  CHECK(plan.knows(0, 120));
  CHECK_FALSE(plan.knows(0, 129));
  CHECK(plan.knows(1, 90));
  CHECK_FALSE(plan.knows(1, 91));
}

TEST_CASE("what has left is gone for the first operation that begins when its copy is whole") {
  program const p = ten();
  setting const at(p, slow);
  outcome const o = unhindered();
  move const within{{activation, 1, 8}, 6}, over_end{{weight, 6, 11}, 10};
  CHECK(detail::gone_at(at, within, time(2000), o) == 4);
  CHECK(detail::gone_at(at, within, time(2001), o) == 5);
  CHECK(detail::gone_at(at, within, time(4999), o) == 7);
  CHECK(detail::gone_at(at, over_end, time(7000), o) == 9);
  CHECK(detail::gone_at(at, over_end, time(8000), o) == 10);  // at the step's end
  CHECK(detail::gone_at(at, over_end, time(8500), o) == 11);  // beyond it
  CHECK(detail::gone_at(at, over_end, time(0), o) == 12);     // it begins in the next step only
}

TEST_CASE("where the host has a copy, memory is free when its departure's turn comes") {
  program p = ten();
  p.variables[weight].has_copy = true;
  setting const at(p, slow);
  outcome const o = unhindered();
  move const m{{weight, 1, 6}, 5};
  CHECK(detail::gone_at(at, m, time(2000), o) == 2);
  CHECK(detail::gone_at(at, m, time(2500), o) == 3);
}

TEST_CASE("where operations are held up, what has left is gone by when they begin") {
  program const p = ten();
  setting const at(p, slow);
  outcome const o = hindered();
  move const m{{activation, 1, 8}, 6};
  CHECK(detail::gone_at(at, m, time(3500), o) == 6);
  CHECK(detail::gone_at(at, m, time(6000), o) == 6);
  CHECK(detail::gone_at(at, m, time(6001), o) == 7);
}

TEST_CASE("a way back takes memory from the operation on during which it begins") {
  program const p = ten();
  setting const at(p, slow);
  outcome const o = unhindered();
  move const within{{activation, 1, 8}, 3}, over_end{{weight, 6, 11}, 9};
  CHECK(detail::back_at(at, within, time(3000), o) == 3);
  CHECK(detail::back_at(at, within, time(3999), o) == 3);
  CHECK(detail::back_at(at, within, time(5500), o) == 5);  // others were in its way
  CHECK(detail::back_at(at, over_end, time(9500), o) == 9);
  CHECK(detail::back_at(at, over_end, time(0), o) == 10);
  CHECK(detail::back_at(at, over_end, time(10'000), o) == 10);
  CHECK(detail::back_at(at, over_end, time(700), o) == 10);
  CHECK(detail::back_at(at, over_end, time(1300), o) == 11);
}

TEST_CASE("a way back that begins while an operation is held up takes memory from that one on") {
  program const p = ten();
  setting const at(p, slow);
  outcome const o = hindered();
  move const within{{activation, 1, 8}, 3}, over_end{{weight, 6, 11}, 9};
  CHECK(detail::back_at(at, within, time(5999), o) == 5);
  CHECK(detail::back_at(at, within, time(6000), o) == 6);
  CHECK(detail::back_at(at, within, time(7500), o) == 6);
  CHECK(detail::back_at(at, within, time(8000), o) == 6);
  CHECK(detail::back_at(at, over_end, time(11'500), o) == 9);
  CHECK(detail::back_at(at, over_end, time(12'200), o) == 10);  // while the next step's first is held up
  move const late{{activation, 1, 8}, 8};
  CHECK(detail::back_at(at, late, time(10'500), o) == 8);  // no later than it is accessed
}

TEST_CASE("a way back that began behind the end of the step that is looked at takes memory from the next one on") {
  program const p = ten();
  setting const at(p, slow);
  outcome o = unhindered();  // the last of steps that did not settle
  o.total = time(15'000);
  CHECK(detail::back_at(at, {{weight, 6, 11}, 9}, time(12'000), o) == 10);
  CHECK(detail::back_at(at, {{activation, 1, 8}, 3}, time(12'000), o) == 8);
}

TEST_CASE("a plan says when what leaves is gone and its way back begins, in the job's own operations") {
  joint_program const joint = one_after_another({logged(ten())});
  setting const at(joint.program, slow);
  solution found;
  found.schedule.moves = {{{activation, 1, 8}, 3}, {{weight, 6, 11}, 7}};
  found.schedule.returns = {1, 0};
  REQUIRE(find_fault(joint.program, found.schedule) == nullptr);
  found.outcome = unhindered();
  found.outcome.ways_out = {time(2000), time(7000)};
  found.outcome.ways_back = {time(5500), time(500)};
  step_schedule const chosen{.of = joint, .discarded = {}, .found = found, .meets_target = true};
  planned_moves const moves = detail::moves_of(chosen, at, 0);
  auto const& outs = moves.outs;
  REQUIRE(outs.size() == 2);
  CHECK(outs[0].variable == activation);
  CHECK(outs[0].after == 1);
  CHECK(outs[0].before == 8);
  CHECK(outs[0].from == 5);  // not 3: its way back begins later
  CHECK(outs[0].gone == 4);
  CHECK(outs[1].variable == weight);
  CHECK(outs[1].after == 6);
  CHECK(outs[1].before == 11);
  CHECK(outs[1].from == 10);
  CHECK(outs[1].gone == 9);
  auto const& returns = moves.returns;
  REQUIRE(returns.size() == 2);
  CHECK(returns[0].variable == weight);
  CHECK(returns[0].from == 0);
  CHECK(returns[1].variable == activation);
  CHECK(returns[1].from == 5);
}

TEST_CASE("what moves during other jobs' steps moves at the end of the job's own, or at the next one's beginning") {
  // The second of three jobs: its operations are 10 to 19 of 30.
  joint_program const joint = one_after_another({logged(ten()), logged(ten()), logged(ten())});
  setting const at(joint.program, slow);
  auto const own = [](std::uint32_t v) { return 4 + v; };
  solution found;
  found.schedule.moves = {{{own(activation), 11, 18}, 13}, {{own(weight), 16, 41}, 35}};
  found.schedule.returns = {1, 0};
  REQUIRE(find_fault(joint.program, found.schedule) == nullptr);
  for (int i = 0; i <= 30; ++i) found.outcome.starts.emplace_back(1000 * i);
  found.outcome.total = found.outcome.starts.back();
  found.outcome.ways_out = {time(12'000), time(24'000)};
  found.outcome.ways_back = {time(15'500), time(5000)};
  step_schedule const chosen{.of = joint, .discarded = {}, .found = found, .meets_target = true};
  planned_moves const moves = detail::moves_of(chosen, at, 1);
  REQUIRE(moves.outs.size() == 2);
  CHECK(moves.outs[0].variable == activation);
  CHECK(moves.outs[0].after == 1);
  CHECK(moves.outs[0].before == 8);
  CHECK(moves.outs[0].from == 5);
  CHECK(moves.outs[0].gone == 4);
  CHECK(moves.outs[1].variable == weight);
  CHECK(moves.outs[1].after == 6);
  CHECK(moves.outs[1].before == 11);
  CHECK(moves.outs[1].from == 10);
  CHECK(moves.outs[1].gone == 10);
  REQUIRE(moves.returns.size() == 2);
  CHECK(moves.returns[0].variable == weight);
  CHECK(moves.returns[0].from == 0);
  CHECK(moves.returns[1].from == 5);
  CHECK(detail::moves_of(chosen, at, 0).outs.empty());
  CHECK(detail::moves_of(chosen, at, 2).returns.empty());
}

TEST_CASE("a plan tells what no schedule comes below, where one meets the target") {
  bytes const peak = peak_of(loads_of(ten()));
  setting const at(ten_operations, slow);
  for (bytes const target : {least_limit(at), peak - 1, peak}) {
    CAPTURE(target);
    forecast const f = plan_steps({logged(ten())}, slow, target).plans.front()->expected();
    CHECK(f.least == time_bound(at, target));
    CHECK(f.least >= at.step_time());
    CHECK(f.step >= f.least);
  }
  CHECK(plan_steps({logged(ten())}, slow, least_limit(at) - 1).plans.front()->expected().least == time::zero());
}

TEST_CASE("a plan is made anew only where it does better than the one before, for much the same target") {
  setting const at(ten_operations, slow);
  bytes const target = least_limit(at);
  auto const before = plan_steps({logged(ten())}, slow, target).plans.front();
  program longer = ten();
  for (time& t : longer.operations) t *= 3;
  planned_steps const again = plan_steps({logged(longer)}, slow, target, before.get());
  CHECK(again.plans.empty());
  REQUIRE(again.kept);
  CHECK(again.kept->step >= time_bound(setting(longer, slow), target));
  CHECK(again.kept->step > before->expected().step);
  CHECK(again.kept->moves == before->expected().moves);
  CHECK(plan_steps({logged(longer)}, slow, target, before.get(), -2).plans.size() == 1);
  CHECK(plan_steps({logged(longer)}, slow, target + target / 300, before.get()).kept);
  CHECK(plan_steps({logged(longer)}, slow, target + target / 200, before.get()).plans.size() == 1);
  auto const idle = plan_steps({logged(ten())}, slow, at.peak()).plans.front();
  CHECK(idle->moves().outs.empty());
  CHECK(plan_steps({logged(longer)}, slow, at.peak() - 1, idle.get()).plans.size() == 1);  // it does not meet that
  program other = ten();
  other.variables[activation].accesses = {{1}, {5}, {8}};
  CHECK(plan_steps({logged(other)}, slow, target, before.get()).plans.size() == 1);  // its moves are others
}

TEST_CASE("plans made together are kept together, for the same steps of the same jobs") {
  auto const job = [](std::uint64_t fingerprint, int slower) {
    step_program p = logged(ten());
    p.fingerprint = fingerprint;
    for (time& t : p.program.operations) t *= slower;
    return p;
  };
  bytes const target = peak_of(loads_of(one_after_another({job(1, 1), job(2, 1)}).program)) - 1;
  planned_steps const before = plan_steps({job(1, 1), job(2, 1)}, slow, target);
  REQUIRE(before.plans.size() == 2);
  REQUIRE(before.meets_target);
  CHECK(before.plans[0]->expected().moves + before.plans[1]->expected().moves > 0);
  CHECK(before.plans[0]->source() == before.plans[1]->source());
  for (auto const& one : before.plans) {
    planned_steps const again = plan_steps({job(1, 3), job(2, 3)}, slow, target, one.get());
    CHECK(again.plans.empty());
    REQUIRE(again.kept);
    CHECK(again.kept->step > one->expected().step);
    CHECK(plan_steps({job(2, 3), job(1, 3)}, slow, target, one.get()).plans.size() == 2);
    CHECK(plan_steps({job(1, 3)}, slow, target, one.get()).plans.size() == 1);
  }
}

TEST_CASE("jobs take turns where their steps do not all have room at once") {
  std::vector<step_program> const two{logged(ten()), logged(ten())};
  bytes const all = 2 * peak_of(loads_of(ten()));
  for (bytes const target : {all, all - 1}) {
    planned_steps const made = plan_steps(two, slow, target);
    REQUIRE(made.plans.size() == 2);
    for (auto const& p : made.plans) CHECK(p->takes_turns() == (target < all));
  }
  CHECK_FALSE(plan_steps({logged(ten())}, slow, all / 2 - 1).plans.front()->takes_turns());
}

}  // namespace
}  // namespace gmlake::swap::plan_step_test
