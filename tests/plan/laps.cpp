#include "gmlake/plan/laps.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "gmlake/plan/pack_plan.hpp"
#include "gmlake/plan/plan_rules.hpp"

using namespace gmlake;
using gmlake::plan::in_laps;
using gmlake::plan::step_request;

namespace {

/// A step of a hundred events: a block that is freed `life` events after its birth at the beginning, and one that the
/// step frees itself.
gmlake::plan::plan step_with(plan::instant life, bytes size = 1_MiB) {
  return {.requests = {{.size = size, .birth = 0, .death = life}, {.size = 2_MiB, .birth = 1, .death = 90}},
          .period = 100};
}

}  // namespace

TEST_SUITE("laps") {
  TEST_CASE("a step that leaves nothing beyond the next one is a plan as it is") {
    for (plan::instant const life : {plan::instant{50}, plan::instant{98}}) {
      gmlake::plan::plan const p = in_laps(step_with(life));
      CHECK(p.laps == 1);
      CHECK(p.period == 100);
      CHECK(p.requests.size() == 2);
      CHECK(p.requests[0].death == life);
    }
  }
  TEST_CASE("a block that outlives the next step has another place in each lap, and comes round") {
    for (std::uint32_t laps = 2; laps <= plan::most_laps; ++laps) {
      CAPTURE(laps);
      gmlake::plan::plan const p = plan::packed_plan(in_laps(step_with(100 * (laps - 1) + 1)));
      CHECK(p.laps == laps);
      CHECK(p.period == 100 * laps);
      REQUIRE(p.requests.size() == 2 * laps);
      CHECK(plan::find_fault(p) == nullptr);
      CHECK(p.bound == (laps - 1) * 1_MiB + 2_MiB);
      CHECK(p.height <= laps * 1_MiB + 2_MiB);
      for (std::uint32_t lap = 0; lap < laps; ++lap) {
        CHECK(p.requests[2 * lap].birth == 100 * lap);
        CHECK(p.requests[2 * lap].death == p.requests[2 * lap].birth + 100 * (laps - 1) + 1);
        for (std::uint32_t other = 0; other < lap; ++other) {
          CHECK(p.requests[2 * lap].offset != p.requests[2 * other].offset);
        }
      }
      CHECK(plan::fingerprint(plan::first_lap(p)) == plan::fingerprint(step_with(0).requests));
      for (std::size_t next = 0; next <= p.requests.size(); ++next) {
        CHECK(plan::between_laps(p, next) == (next % 2 == 0 && next > 0 && next < p.requests.size()));
      }
    }
  }
  TEST_CASE("one that goes about when a successor comes has room for a few events more") {
    CHECK(in_laps(step_with(99)).laps == 1);
    CHECK(in_laps(step_with(100)).laps == 2);
    CHECK(in_laps(step_with(195)).laps == 2);
    CHECK(in_laps(step_with(196)).laps == 3);
  }
  TEST_CASE("small blocks, and those that live through more steps, are not worth laps, and stay") {
    for (gmlake::plan::plan const& step : {step_with(150, plan::least_carried - 512),
                                           step_with(100 * plan::most_laps + 1), step_with(step_request::stays)}) {
      gmlake::plan::plan const p = in_laps(step);
      CHECK(p.laps == 1);
      CHECK(p.requests[0].death == step_request::stays);
      CHECK(p.requests[1].death == 90);
    }
    gmlake::plan::plan const p = in_laps(step_with(150), 1);
    CHECK(p.laps == 1);
    CHECK(p.requests[0].death == step_request::stays);
  }
}
