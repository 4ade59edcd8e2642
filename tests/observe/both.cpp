#include "gmlake/observe/both.hpp"

#include "tests/observe/observer_suite.hpp"

using namespace gmlake;

namespace gmlake::test {
using counting_log = both<counters, event_log>;
using log_in_front = both<event_log, event_log>;
using nested = both<both<counters, no_observer>, event_log>;
TEST_CASE_TEMPLATE_INVOKE(observer, counting_log, log_in_front, nested);
}  // namespace gmlake::test

static_assert(CountingObserver<gmlake::test::nested>);
static_assert(!CountingObserver<both<event_log, counters>>, "the first one counts");

template <class A, class B>
concept Both = requires { typename both<A, B>; };
static_assert(Both<counters, counters> && !Both<counters, int> && !Both<int, counters>);

TEST_CASE("both begin as they were made") {
  both<counters, event_log> o(counters{}, event_log{{.most = 0}});
  o.allocated({.requested = 1, .size = 512});
  CHECK(o.first().seen().allocations == 1);
  CHECK(o.second().stopped());
}
