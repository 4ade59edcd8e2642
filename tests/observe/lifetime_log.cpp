#include "gmlake/observe/lifetime_log.hpp"

#include "tests/observe/observer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(observer, lifetime_log);

TEST_CASE("blocks are told by their addresses, streams by their first mention") {
  lifetime_log log;
  log.deallocated({.at = address{9}});  // born before
  log.mark("step");
  log.allocated({.at = address{512}, .requested = 5, .size = 512, .on = stream{77}});
  log.allocated({.at = address{1024}, .requested = 600, .size = 1024, .on = stream{5}});
  log.deallocated({.at = address{512}, .size = 512, .on = stream{5}});
  log.mark("backward");
  log.allocated({.at = address{512}, .size = 512, .on = stream{77}});
  auto const& all = log.lifetimes().all();
  REQUIRE(all.size() == 3);
  CHECK(all[0].size == 512);
  CHECK(all[0].stream == 0);
  CHECK(all[0].death == 2);
  CHECK(all[0].birth_phase == 1);
  CHECK(all[1].stream == 1);
  CHECK(all[2].birth_phase == 2);
  CHECK(all[2].death == plan::step_request::stays);
  CHECK_FALSE(log.stopped());
  log.clear();
  CHECK(log.lifetimes().all().empty());
}
