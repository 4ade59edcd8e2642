#include "gmlake/plan/lifetime_sweep.hpp"

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(packer, plan::lifetime_sweep);

TEST_CASE("a sweep packs a stack to its peak") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  for (int i = 0; i < 20; ++i) {
    plan::problem const p = any_stack(random, 200);
    CHECK(plan::lifetime_sweep{}.pack(p).height == peak_live(p));
  }
}

TEST_CASE("a sweep may start above what is placed") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  plan::problem const p = demanding(any_problem(random, 200), random, {.alignment = true, .stream_gap = 7});
  plan::problem lower = p;
  lower.buffers.resize(100);
  plan::solution s = plan::lifetime_sweep{}.pack(lower);
  s.offsets.resize(200);
  std::vector<std::uint32_t> rest;
  for (std::uint32_t i = 100; i < 200; ++i) rest.push_back(i);
  bytes const base = s.height;
  plan::lifetime_sweep::place(p, rest, base, s);
  CHECK(wrong_with(p, s) == "");
  for (std::uint32_t const i : rest) CHECK(s.offsets[i] >= base);
}
