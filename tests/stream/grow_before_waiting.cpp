#include "gmlake/stream/grow_before_waiting.hpp"

#include "tests/stream/wait_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(wait_policy, grow_before_waiting);

TEST_CASE("streams are kept apart while the device has memory") {
  CHECK_FALSE(grow_before_waiting{}.before_stitching());
  CHECK_FALSE(grow_before_waiting{}.before_growing());
}
