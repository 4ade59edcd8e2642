#include "gmlake/observe/counters.hpp"

#include "tests/observe/observer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(observer, counters);

TEST_CASE("peaks can start again from what is there now") {
  counters c;
  c.allocated({.requested = 10, .size = 512});
  c.allocated({.requested = 20, .size = 1024});
  c.deallocated({.requested = 20, .size = 1024});
  CHECK(c.seen().requested.peak == 30);
  CHECK(c.seen().live.peak == 1536);
  c.reset_peaks();
  CHECK(c.seen().requested.peak == 10);
  CHECK(c.seen().live.peak == 512);
  CHECK(c.seen().live.now == 512);
}
