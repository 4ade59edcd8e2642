#include "gmlake/swap/rehearsal.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/swap/least_stall.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::rehearsal_test {
namespace {

using pool = lake_pool<simulated>;
static_assert(RehearsalPool<pool>);

pool unlimited(bytes limit = no_limit) {
  return pool(simulated({.capacity = simulated_options::unlimited}), {.limit = limit});
}

rehearsal_result rehearse(pool& on, program const& p, solution const& s, std::uint32_t steps = 3,
                          vacating way = vacating::leave) {
  return rehearsal(on, p, s.schedule, changes_of(p, s.schedule, {}, s.outcome), {.way = way}).run(steps);
}

TEST_CASE("a pool reserves about what is planned, in every step anew") {
  program const p = programs::cnn(1, {.blocks = 2});
  setting const at(p, {});
  bytes const limit = at.peak() / 100 * 70;
  auto const planned = least_stall(at, limit).find();
  REQUIRE(planned);
  REQUIRE(planned->outcome.peak <= limit);

  auto without = unlimited();
  solution const none{{}, simulate(p, {}, {})};
  rehearsal_result const plain = rehearse(without, p, none);
  CHECK(plain.reserved_peak >= at.peak());
  CHECK(plain.moved == 0);

  for (vacating const way : {vacating::unmap, vacating::leave}) {
    auto with = unlimited();
    rehearsal_result const r = rehearse(with, p, *planned, 3, way);
    REQUIRE_FALSE(r.failed);
    CHECK(r.steps == 3);
    CHECK(r.moved >= 3 * planned->schedule.moves.size());
    CHECK(r.reserved_peak >= planned->outcome.peak);
    CHECK(r.reserved_peak <= limit + limit / (way == vacating::unmap ? 20 : 16));
    CHECK(r.reserved_peak < at.peak());
    CHECK(with.validate() == nullptr);
  }
}

TEST_CASE("what is away over the step's end begins away, and stays so in a pool that could not hold it all") {
  program p;
  p.operations.assign(100, std::chrono::milliseconds(10));
  for (std::uint32_t k = 0; k < 50; ++k) {
    p.variables.push_back({.size = 64_MiB, .birth = 0, .death = 100, .carried = true, .accesses = {{2 * k}}});
  }
  setting const at(p, {});
  auto const planned = least_stall(at, 320_MiB).find();
  REQUIRE(planned);
  auto small = unlimited(512_MiB);
  rehearsal_result const r = rehearse(small, p, *planned, 5);
  CHECK_FALSE(r.failed);
  CHECK(r.steps == 5);
}

TEST_CASE("a pool that is too small ends the rehearsal where it was asked for too much") {
  program const p = programs::cnn(1, {.blocks = 2});
  auto small = unlimited(4_GiB);
  rehearsal_result const r = rehearse(small, p, {{}, simulate(p, {}, {})});
  REQUIRE(r.failed);
  CHECK(r.failed->code == errc::out_of_memory);
  CHECK(r.at.kind == change_kind::born);
  CHECK(r.steps == 0);
}

}  // namespace
}  // namespace gmlake::swap::rehearsal_test
