#include "gmlake/stitch/gmlake_limits.hpp"

#include "tests/stitch/stitch_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(stitch_policy, gmlake_limits);

TEST_CASE("fragLimit: smaller requests are never stitched") {
  CHECK_FALSE(gmlake_limits{}.stitches(2_MiB - 1, true));
  CHECK(gmlake_limits{}.stitches(2_MiB, false));
  gmlake_limits const high{{.frag_limit = 512_MiB}};
  CHECK_FALSE(high.stitches(512_MiB - 1, true));
  CHECK(high.stitches(512_MiB, false));
}

TEST_CASE("reuseLimit: an idle stitch serves requests down to its size divided by it") {
  CHECK(gmlake_limits{}.reuses(20_MiB, 2_MiB));
  CHECK_FALSE(gmlake_limits{}.reuses(20_MiB + 512, 2_MiB));
  gmlake_limits const exact{{.reuse_limit = 1.0}};
  CHECK(exact.reuses(20_MiB, 20_MiB));
  CHECK_FALSE(exact.reuses(20_MiB, 20_MiB - 512));
}

TEST_CASE("defragLevel: 1 stitches only once growth has failed") {
  gmlake_limits const late{{.defrag_level = 1}};
  CHECK_FALSE(late.stitches(1_GiB, false));
  CHECK(late.stitches(1_GiB, true));
}

TEST_CASE("whole chunks are taken as given, the last one cut; parts of chunks are left alone") {
  free_memory m(5);
  m.add_whole(8_MiB);
  m.add_whole(2_MiB);
  m.add_whole(32_MiB);
  m.add_tail(64_MiB, 32_MiB);
  m.add_head(64_MiB, 32_MiB);
  std::vector<extent> out;
  CHECK(choose(gmlake_limits{}, m, 20_MiB, out).shortfall == 0);
  REQUIRE(out.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(out[i].of == &m.chunks[i]);
  CHECK(out[2].size == 10_MiB);
  CHECK(choose(gmlake_limits{}, m, 50_MiB, out).shortfall == 8_MiB);
}
