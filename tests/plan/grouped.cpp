#include "gmlake/plan/grouped.hpp"

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(packer, plan::grouped);

TEST_CASE("buffers of a size whose lives are disjoint become a row") {
  plan::problem p;
  for (plan::instant i = 0; i < 10; ++i) p.buffers.push_back({2 * i, 2 * i + 2, 4096, 1, 0, {}});
  for (plan::instant i = 0; i < 10; ++i) p.buffers.push_back({2 * i + 1, 2 * i + 3, 4096, 1, 0, {}});
  CHECK(plan::grouped{{.parts = 1}}.pack(p).height == 8192);
}

TEST_CASE("small groups lie in time gaps of larger ones") {
  plan::problem p;
  p.buffers.push_back({0, 4, 65536, 1, 0, {}});
  p.buffers.push_back({6, 9, 65536, 1, 0, {}});
  for (int i = 0; i < 32; ++i) p.buffers.push_back({4, 6, 2048, 1, 0, {}});
  CHECK(plan::grouped{}.pack(p).height == 65536);
}

TEST_CASE("phases may be given, cut equally, or be two split at the peak; all give valid solutions") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  plan::problem const p = demanding(any_problem(random, 300), random, {true, true, true, 5});
  for (plan::grouped_options const& o : std::initializer_list<plan::grouped_options>{
           {}, {.parts = 1}, {.parts = 7}, {.boundaries = {3, 50, 299}}, {.work = 1}, {.work = 20'000}}) {
    CHECK(wrong_with(p, plan::grouped{o}.pack(p)) == "");
  }
}

TEST_CASE("the peak is the first instant at which the most lives") {
  plan::problem p;
  CHECK(plan::peak_instant(p) == 0);
  p.buffers.push_back({1, 5, 10, 1, 0, {}});
  p.buffers.push_back({3, 4, 10, 1, 0, {}});
  p.buffers.push_back({4, 5, 10, 1, 0, {}});
  CHECK(plan::peak_instant(p) == 3);
  p.period = 9;
  p.buffers.push_back({8, 11, 50, 1, 0, {}});
  CHECK(plan::peak_instant(p) == 1);
}
