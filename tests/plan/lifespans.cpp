#include "gmlake/plan/lifespans.hpp"

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE("spans meet exactly where the problem says that buffers conflict") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  for (demands const& d : std::initializer_list<demands>{
           {}, {.wraps = true}, {.stream_gap = 3}, {.stream_gap = 1000}, {.wraps = true, .stream_gap = 9}}) {
    for (int round = 0; round < 20; ++round) {
      plan::problem const p = demanding(any_problem(random, 60), random, d);
      plan::lifespans const lives(p);
      for (std::size_t i = 0; i < p.buffers.size(); ++i) {
        for (std::size_t k = 0; k < p.buffers.size(); ++k) {
          bool const own = p.buffers[i].stream == p.buffers[k].stream;
          bool const meet = plan::lifespans::meet(own ? lives.own(i) : lives.wide(i), lives.own(k));
          REQUIRE(meet == conflict(p, p.buffers[i], p.buffers[k]));
        }
      }
    }
  }
}

TEST_CASE("a wrapped life is two spans, and as long as both") {
  plan::problem p;
  p.period = 12;
  p.buffers.push_back({9, 15, 1, 1, 0, {}});
  p.buffers.push_back({3, 9, 1, 1, 0, {}});
  plan::lifespans const lives(p);
  CHECK_FALSE(lives.own(0)[1].empty());
  CHECK(lives.own(1)[1].empty());
  CHECK(lives.length(0) == 2);  // of the instants 0, 3, 9 and 12: [9, 12) and [0, 3)
  CHECK(lives.length(1) == 1);
  CHECK_FALSE(lives.streams_matter());
}
