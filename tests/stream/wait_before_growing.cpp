#include "gmlake/stream/wait_before_growing.hpp"

#include "tests/stream/wait_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(wait_policy, wait_before_growing);

TEST_CASE("the default rather stitches than waits, and rather waits than grows") {
  CHECK_FALSE(wait_before_growing{}.before_stitching());
  CHECK(wait_before_growing{}.before_growing());
}
