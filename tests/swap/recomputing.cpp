/// What of a step is made again instead of moved: which absences are worth it, what the step becomes, and that it is
/// chosen where the channel does not suffice.

#include "gmlake/swap/recomputing.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/plan_step.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::recomputing_test {
namespace {

constexpr channel slow{{time(0), 1'000'000'000}, {time(0), 1'000'000'000}};  // a byte a nanosecond

/// Ten operations of 1,000 ns.
[[nodiscard]] program ten(std::vector<variable> all) { return {std::vector<time>(10, time(1000)), std::move(all)}; }

/// An activation that operation 1 writes and operation 8 reads.
[[nodiscard]] variable activation(bytes size, time recompute) {
  return {.size = size,
          .birth = 1,
          .death = 9,
          .recompute = recompute,
          .accesses = {{1, false, true}, {8, true, false, recompute > time::zero()}}};
}

[[nodiscard]] std::vector<std::uint32_t> variables_of(std::vector<absence> const& all) {
  std::vector<std::uint32_t> v;
  for (absence const& a : all) v.push_back(a.variable);
  return v;
}

/// As deep a network, whose activations take three times an operation's time on the channel each way, and a half to be
/// made again.
[[nodiscard]] program network(std::uint32_t layers, bool recomputable) {
  program p{std::vector<time>(2 * std::size_t{layers}, time(1000)), {}};
  for (std::uint32_t i = 0; i < layers; ++i) {
    std::uint32_t const back = 2 * layers - 1 - i;
    p.variables.push_back({.size = 3000,
                           .birth = i,
                           .death = back + 1,
                           .recompute = recomputable ? time(500) : time::zero(),
                           .accesses = {{i, false, true}, {back, true, false, recomputable}}});
  }
  return p;
}

[[nodiscard]] step_schedule scheduled(program const& p, bytes target) {
  step_program logged;
  logged.program = p;
  logged.who.resize(p.variables.size());
  return schedule_step(one_after_another({logged}), slow, 0, target);
}

}  // namespace

TEST_CASE("worth making again is what takes the device less time than the channel, the cheapest first") {
  std::vector<variable> all{activation(2000, time(1500)), activation(2000, time(500)), activation(2000, time(2000)),
                            activation(2000, time::zero()), activation(6000, time(900))};
  program const p = ten(all);
  REQUIRE(find_fault(p) == nullptr);
  CHECK(variables_of(worth_recomputing(setting(p, slow))) == std::vector<std::uint32_t>{4, 1, 0});
  // What schedulers leave alone for its size stays.
  CHECK(variables_of(worth_recomputing(setting(p, slow, 3000))) == std::vector<std::uint32_t>{4});
}

TEST_CASE("of what is carried only the absence over the step's end can be bridged, of what the host has none") {
  variable weight{.size = 4000,
                  .birth = 0,
                  .death = 10,
                  .carried = true,
                  .recompute = time(100),
                  .accesses = {{2, true, false, true}, {6, true, false, true}}};
  program p = ten({weight});
  std::vector<absence> const worth = worth_recomputing(setting(p, slow));
  REQUIRE(worth.size() == 1);
  CHECK(worth[0] == absence{0, 6, 12});
  recomputed_program const made = recompute(p, worth);
  REQUIRE(find_fault(made.program) == nullptr);
  REQUIRE(made.program.variables.size() == 1);
  variable const& v = made.program.variables[0];
  CHECK_FALSE(v.carried);
  CHECK(v.birth == 2);
  CHECK(v.death == 7);
  CHECK(v.accesses.size() == 2);
  CHECK(made.program.operations[2] == time(1100));
  CHECK(made.discarded == std::vector<absence>{{0, 6, 12}});

  p.variables[0].has_copy = true;
  CHECK(worth_recomputing(setting(p, slow)).empty());
}

TEST_CASE("a variable is split where it is made again, and the operation that wants it takes longer") {
  variable v = activation(5000, time(300));
  v.accesses = {{1, false, true}, {4, true, false, true}, {8, true, true, true}};
  program const p = ten({activation(10, time::zero()), v, activation(20, time::zero())});
  std::vector<absence> const worth = worth_recomputing(setting(p, slow));
  REQUIRE(worth.size() == 2);
  recomputed_program const made = recompute(p, worth);
  REQUIRE(find_fault(made.program) == nullptr);
  CHECK(made.of == std::vector<std::uint32_t>{0, 1, 1, 1, 2});
  CHECK(made.discarded == std::vector<absence>{{1, 1, 4}, {2, 4, 8}});
  auto const lives = [&](std::uint32_t i, std::uint32_t birth, std::uint32_t death, std::uint32_t operation) {
    variable const& part = made.program.variables[i];
    return part.birth == birth && part.death == death && part.accesses.size() == 1 &&
           part.accesses[0].operation == operation && part.size == 5000;
  };
  CHECK(lives(1, 1, 2, 1));
  CHECK(lives(2, 4, 5, 4));
  CHECK(lives(3, 8, 9, 8));
  for (std::uint32_t i = 0; i < 10; ++i) CHECK(made.program.operations[i] == time(i == 4 || i == 8 ? 1300 : 1000));

  recomputed_program const one = recompute(p, std::vector<absence>{{1, 4, 8}});
  REQUIRE(find_fault(one.program) == nullptr);
  CHECK(one.of == std::vector<std::uint32_t>{0, 1, 1, 2});
  CHECK(one.program.variables[1].accesses.size() == 2);
  CHECK(one.program.operations[4] == time(1000));
}

TEST_CASE("where the channel does not suffice, what can be made again is, and steps are shorter") {
  bytes const peak = peak_of(loads_of(network(12, false)));
  bytes const target = peak / 2;
  step_schedule const moved = scheduled(network(12, false), target);
  step_schedule const made = scheduled(network(12, true), target);
  CHECK(moved.discarded.empty());
  REQUIRE(moved.meets_target);
  REQUIRE(made.meets_target);
  CHECK(moved.found.outcome.stalled > time::zero());
  CHECK_FALSE(made.discarded.empty());
  CHECK(made.found.outcome.peak <= target);
  CHECK(made.found.outcome.total < moved.found.outcome.total);
  CHECK(made.of.origins.size() == made.of.program.variables.size());
}

TEST_CASE("where swapping takes no time, nothing is made again") {
  program p = network(12, true);
  for (time& t : p.operations) t *= 10;
  bytes const target = peak_of(loads_of(p)) * 3 / 4;
  step_schedule const made = scheduled(p, target);
  CHECK(made.meets_target);
  CHECK(made.discarded.empty());
  CHECK_FALSE(made.found.schedule.moves.empty());
}

TEST_CASE("a plan discards a block as soon as its operation has ended, and has no way back for it") {
  step_program p;
  p.program = network(12, true);
  p.prefixes.assign(p.program.operations.size(), 1);
  for (std::uint32_t v = 0; v < p.program.variables.size(); ++v) {
    p.who.push_back({identity::kind::born, v, v, address{}});
  }
  planned_steps const made = plan_steps({p}, slow, peak_of(loads_of(p.program)) / 2);
  REQUIRE(made.plans.size() == 1);
  planned_moves const& l = made.plans[0]->moves();
  std::size_t discards = 0;
  for (planned_out const& o : l.outs) {
    auto const back = std::ranges::count(l.returns, o.variable, &planned_return::variable);
    if (!o.discards) {
      CHECK(back == 1);
      continue;
    }
    ++discards;
    CHECK(back == 0);
    CHECK(o.after == o.variable);  // which wrote it
    CHECK(o.gone == o.after + 1);
    CHECK(o.before == 23 - o.variable);
    CHECK(o.from == o.before);
  }
  CHECK(discards > 0);
  CHECK(made.plans[0]->expected().recomputed == discards);
}

}  // namespace gmlake::swap::recomputing_test
