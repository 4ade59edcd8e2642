#include "gmlake/plan/stream_bound.hpp"

#include "gmlake/plan/lowest_offset.hpp"
#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE("streams' peaks add up as far as they are no more than the gap apart") {
  plan::problem p;
  p.buffers.push_back({0, 2, 1000, 1, 0, {}});
  p.buffers.push_back({5, 6, 700, 1, 1, {}});  // 4 instants after the last at which the other lives
  CHECK(plan::stream_bound(p) == 0);
  p.stream_gap = 3;
  CHECK(plan::stream_bound(p) == 1000);
  CHECK_FALSE(conflict(p, p.buffers[0], p.buffers[1]));
  p.stream_gap = 4;
  CHECK(plan::stream_bound(p) == 1700);
  CHECK(conflict(p, p.buffers[0], p.buffers[1]));
  p.stream_gap = plan::problem::never;
  CHECK(plan::stream_bound(p) == 1700);
  p.buffers[1].stream = 0;
  CHECK(plan::stream_bound(p) == 0);
}

TEST_CASE("no packing is lower than the bound, and the bound is not below the peak") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  for (plan::instant const gap : {plan::instant{1}, plan::instant{10}, plan::instant{100}, plan::problem::never}) {
    for (bool const wraps : {false, true}) {
      for (int i = 0; i < 10; ++i) {
        plan::problem p = demanding(any_problem(random, 100), random, {.wraps = wraps, .stream_gap = gap});
        bytes const bound = plan::stream_bound(p);
        CHECK(bound >= peak_live(p));
        CHECK(bound <= plan::lowest_offset{}.pack(p).height);
      }
    }
  }
}
