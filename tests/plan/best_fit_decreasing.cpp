#include "gmlake/plan/best_fit_decreasing.hpp"

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(packer, plan::best_fit_decreasing);

TEST_CASE("a buffer goes into the smallest gap that suffices, not into the lowest") {
  plan::problem p;
  p.buffers.push_back({0, 9, 4096, 1, 0, 8192});   // above a gap of 8192
  p.buffers.push_back({0, 9, 4096, 1, 0, 13312});  // above a gap of 1024
  p.buffers.push_back({3, 6, 1024, 1, 0, {}});
  CHECK(plan::best_fit_decreasing{}.pack(p).offsets[2] == 12288);
}

TEST_CASE("too little work still gives a valid solution") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  plan::problem const p = demanding(any_problem(random, 400), random, {true, true, true, 5});
  for (std::uint64_t const work : {1u, 1000u, 30'000u}) {
    CHECK(wrong_with(p, plan::best_fit_decreasing{{.work = work}}.pack(p)) == "");
  }
}
