#include "gmlake/stitch/no_stitch.hpp"

#include "tests/stitch/stitch_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(stitch_policy, no_stitch);

TEST_CASE("nothing is ever stitched, and everything is missing") {
  CHECK_FALSE(no_stitch{}.stitches(1_TiB, true));
  CHECK_FALSE(no_stitch{}.reuses(2_MiB, 2_MiB));
  free_memory m(1);
  m.add_whole(32_MiB);
  std::vector<extent> out;
  CHECK(choose(no_stitch{}, m, 20_MiB, out).shortfall == 20_MiB);
}
