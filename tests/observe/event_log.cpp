#include "gmlake/observe/event_log.hpp"

#include <string>

#include "tests/observe/observer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(observer, event_log);

TEST_CASE("marks stand between the events, where they were made") {
  event_log log;
  log.mark("step");
  log.allocated({.at = address{512}, .requested = 5, .size = 512});
  log.mark("backward");
  REQUIRE(log.events().size() == 3);
  CHECK(log.events()[0].what == logged_event::kind::mark);
  CHECK(std::string(log.events()[0].label) == "step");
  CHECK(log.events()[1].what == logged_event::kind::allocated);
  CHECK(std::string(log.events()[2].label) == "backward");
}

TEST_CASE("an operation is given its time when it is known") {
  event_log log{{.most = 4}};
  log.read(address{512});
  log.written(address{1024});
  std::size_t const place = log.operation();
  CHECK(place == 2);
  log.host_copy(address{512});
  log.took(place, std::chrono::nanoseconds(30));
  REQUIRE(log.events().size() == 4);
  CHECK(log.events()[0].what == logged_event::kind::read);
  CHECK(log.events()[0].at == address{512});
  CHECK(log.events()[1].what == logged_event::kind::written);
  CHECK(log.events()[2].requested == 30);
  CHECK(log.events()[3].what == logged_event::kind::host_copy);
  log.took(log.operation(), std::chrono::nanoseconds(1));  // the log is full
  CHECK(log.stopped());
  CHECK(log.events().size() == 4);
}

TEST_CASE("a full log stops, says so, and stays a beginning without a gap") {
  event_log log{{.most = 2}};
  for (bytes n = 1; n <= 2; ++n) log.allocated({.requested = n});
  CHECK_FALSE(log.stopped());
  log.allocated({.requested = 3});
  CHECK(log.stopped());
  CHECK(log.events().size() == 2);
  log.clear();
  CHECK_FALSE(log.stopped());
  CHECK(log.events().empty());
  log.allocated({.requested = 4});
  CHECK(log.events().size() == 1);
}
