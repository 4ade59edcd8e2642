#include "gmlake/plan/lowest_offset.hpp"

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(packer, plan::lowest_offset);

TEST_CASE("a stack is packed to its peak, since one of the orders is that of birth") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  for (int i = 0; i < 20; ++i) {
    plan::problem const p = any_stack(random, 200);
    CHECK(plan::lowest_offset{}.pack(p).height == peak_live(p));
  }
}

TEST_CASE("a height that is enough ends the search, and too little work still gives a valid solution") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  plan::problem const p = demanding(any_problem(random, 400), random, {true, true, true, 5});
  plan::solution const thorough = plan::lowest_offset{}.pack(p);
  for (std::uint64_t const work : {1u, 100u, 10'000u, 100'000u}) {
    plan::solution const s = plan::lowest_offset{{.work = work}}.pack(p);
    CHECK(wrong_with(p, s) == "");
    CHECK(s.height >= thorough.height);
  }
  plan::solution const quick = plan::lowest_offset{{.enough = bytes{1} << 60}}.pack(p);
  CHECK(wrong_with(p, quick) == "");
  CHECK(quick.height >= thorough.height);
}
