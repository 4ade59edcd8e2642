/// The sweep over host memory: each allocation that a pool makes fails in turn, alone and with all that follow, while
/// plans are learned, made, claimed, followed, departed from and left. Whatever fails, nothing is lost and nothing
/// changes hands: at worst a request is refused, or there is no plan.

#include "gmlake/stitch/no_stitch.hpp"
#include "tests/host_memory/program.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using lake_here = pool_config<spared_device, spared_streams>::with_growth<fixed_chunks>;
using planned_here = lake_here::with_planning<plan_briefly>;
/// Its arenas consist of many runs.
using planned_in_runs = planned_here::with_stitch<no_stitch>;

constexpr int none = -1;
/// Slots that no step has, nor what comes before.
constexpr std::uint32_t other = 2000;

template <PoolConfig Config>
struct operation {
  std::string name;
  int steps;  ///< before it; `none`: nor what comes before the steps
  std::function<void(program<Config>&)> run;
};

/// The plan is left, and its arena will be held again but for its second run, and begin within a larger one.
template <PoolConfig Config>
void lose_a_run(program<Config>& p) {
  p.widen_first_piece();
  p.trim();
  p.allocate(other, p.largest_piece - granule, 0);
}

/// Beside the beginning, which is not swept over but by itself.
template <PoolConfig Config>
[[nodiscard]] std::vector<operation<Config>> operations() {
  using here = program<Config>&;
  return {
      {"learn, plan and follow", 1, [](here p) { p.steps(4); }},
      {"follow", 4, [](here p) { p.steps(2); }},
      {"depart from the plan", 4,
       [](here p) {
         for (std::size_t i = 0; i < p.one_step().size(); ++i) {
           p.run(i, i + 1);
           std::uint32_t const slot = p.one_step()[i].slot;
           std::uint32_t const odd = other + static_cast<std::uint32_t>(i);
           if (i % 3 == 0) p.allocate(odd, 512 * (1 + i % 50), i % 2);
           if (i % 4 == 0) p.record(slot, 1);
           if (i % 6 == 0) p.record(odd, 2);
           if (i % 7 == 0) p.release(slot, 1);
         }
         p.steps(1);
       }},
      {"leave the plan and take it up again", 4,
       [](here p) {
         p.run(0, 40);
         p.trim();
         p.run(40, p.one_step().size());
         p.steps(2);
       }},
      {"take up a plan whose memory others have", 4,
       [](here p) {
         lose_a_run(p);
         p.steps(3);
       }},
      {"want more than there is beside the plan", 4,
       [](here p) {
         p.run(0, 40);
         for (std::uint32_t i = 0; i < 3; ++i) p.allocate(other + i, 2 * chunk_bytes, i % 2);
         p.steps(1);
       }},
  };
}

/// Runs `op` with allocations failing. Whether none was left to fail.
template <PoolConfig Config>
[[nodiscard]] bool survives(operation<Config> const& op, std::size_t small, shortage const& s) {
  program<Config> p;
  if (op.steps != none) p.begin(small);
  p.steps(op.steps);
  REQUIRE_MESSAGE(p.fault().empty(), p.fault());
  REQUIRE(p.refused() == 0);
  std::uint64_t const before = refusals();
  run_short(s);
  op.run(p);
  run_short({});
  bool const over = refusals() == before;
  if (p.fault().empty()) p.look();
  REQUIRE_MESSAGE(p.fault().empty(), p.fault());
  std::uint64_t const refused = p.refused();
  if (over) CHECK(refused == 0);
  p.steps(2);
  CHECK(p.refused() == refused);
  p.look();
  p.finish();
  REQUIRE_MESSAGE(p.fault().empty(), p.fault());
  return over;
}

/// Making a plan takes thousands of allocations: the later, the more of them are passed over.
constexpr std::uint64_t planning_share = 12;

template <PoolConfig Config>
void sweep(operation<Config> const& op, std::uint64_t count, std::uint64_t share = shortage::endless) {
  bool over = false;
  for (std::uint64_t n = 0; !over; n += 1 + n / share) {
    CAPTURE(op.name);
    CAPTURE(count);
    CAPTURE(n);
    std::int64_t const before = unfreed();
    over = survives<Config>(op, n * 37 % 256, {.first = n, .count = count});
    CHECK(unfreed() == before);
  }
}
template <PoolConfig Config>
void sweep_all(std::uint64_t count) {
  for (operation<Config> const& op : operations<Config>()) sweep(op, count, planning_share);
}

/// Good plans of the program, what comes before its steps first.
template <PoolConfig Config>
[[nodiscard]] std::vector<plan::plan> learned_plans() {
  program<Config> p;
  p.begin(0);
  p.steps(4);
  return p.pool().plans();
}

}  // namespace

TEST_CASE("the sweep follows plans, in one run and in several") {
  program<planned_here> p;
  p.begin(0);
  p.steps(4);
  CHECK(p.pool().plans_seen().placed > 50);
  program<planned_in_runs> q;
  q.begin(0);
  q.steps(4);
  CHECK(q.pool().plans_seen().placed > 50);
  CHECK(q.pool().snapshot().planned.size() >= 3);
}

TEST_CASE_TEMPLATE("any one allocation of a pool's may fail", Config, lake_here, planned_here, planned_in_runs) {
  sweep_all<Config>(1);
}

TEST_CASE_TEMPLATE("host memory may run out and come back", Config, lake_here, planned_here, planned_in_runs) {
  sweep_all<Config>(shortage::endless);
}

TEST_CASE_TEMPLATE("a pool may have no host memory to begin with", Config, lake_here, planned_here) {
  for (std::uint64_t const count : {std::uint64_t{1}, shortage::endless}) {
    sweep<Config>({"begin", none,
                   [](program<Config>& p) {
                     p.begin(20);
                     p.steps(1);
                   }},
                  count);
  }
}

TEST_CASE_TEMPLATE("adopted plans may find no host memory", Config, planned_here, planned_in_runs) {
  std::vector<plan::plan> const plans = learned_plans<Config>();
  REQUIRE(plans.size() == 2);
  for (std::uint64_t const count : {std::uint64_t{1}, shortage::endless}) {
    for (bool const prologue : {true, false}) {
      CAPTURE(prologue);
      sweep<Config>({"adopt", none,
                     [&](program<Config>& p) {
                       p.adopt(prologue ? plans : std::vector(1, plans[1]));
                       p.begin(0);
                       p.steps(2);
                     }},
                    count);
    }
  }
}

TEST_CASE("nodes may run short while an arena is held again that has lost a run") {
  for (std::size_t nodes = 1; nodes < 12; ++nodes) {
    for (std::uint64_t n = 0; n < 6; ++n) {
      CAPTURE(nodes);
      CAPTURE(n);
      operation<planned_in_runs> const op{"", 4, [&](program<planned_in_runs>& p) {
                                            lose_a_run(p);
                                            p.use_up_nodes(nodes);
                                            run_short({.first = n});
                                            p.steps(3);
                                          }};
      (void)survives(op, 0, {});
    }
  }
}
