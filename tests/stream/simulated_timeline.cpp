#include "gmlake/stream/simulated_timeline.hpp"

#include "tests/backend/must.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {
constexpr stream a{1};
constexpr stream b{2};
constexpr stream c{3};
constexpr timeline_options never{.lag = timeline_options::endless};
}  // namespace

TEST_CASE("a fence is reached a lag after it was recorded, and not before") {
  simulated_timeline t({.lag = 10});
  auto early = must(t.record(a));
  t.advance(5);
  auto late = must(t.record(b));
  t.advance(4);
  CHECK_FALSE(must(t.reached(early)));
  t.advance();
  CHECK(must(t.reached(early)));
  CHECK_FALSE(must(t.reached(late)));
  t.advance(5);
  CHECK(must(t.reached(late)));
  CHECK(t.now() == 15);
}

TEST_CASE("without a lag, a fence is reached at once") {
  simulated_timeline t({.lag = 0});
  auto f = must(t.record(a));
  CHECK(must(t.reached(f)));
}

TEST_CASE("finishing all reaches what was recorded before, and nothing after") {
  simulated_timeline t(never);
  auto before = must(t.record(a));
  t.advance(1'000'000'000);
  CHECK_FALSE(must(t.reached(before)));
  t.finish_all();
  auto after = must(t.record(a));
  CHECK(must(t.reached(before)));
  CHECK_FALSE(must(t.reached(after)));
}

TEST_CASE("waiting for a fence reaches its stream's up to it, and no other stream's") {
  simulated_timeline t(never);
  auto first = must(t.record(a));
  auto other = must(t.record(b));
  auto second = must(t.record(a));
  auto third = must(t.record(a));
  must(t.synchronize(second));
  CHECK(must(t.reached(first)));
  CHECK(must(t.reached(second)));
  CHECK_FALSE(must(t.reached(third)));
  CHECK_FALSE(must(t.reached(other)));
}

TEST_CASE("what a stream queued is ordered before what it does next, and before nothing else") {
  simulated_timeline t(never);
  auto const p = t.queued(a);
  CHECK(t.ordered(p, a));
  CHECK_FALSE(t.ordered(p, b));
  auto f = must(t.record(a));
  CHECK_FALSE(t.ordered(p, b));
  CHECK_FALSE(t.ordered(f, b));
}

TEST_CASE("a wait orders what was queued before the fence, and not what came after it") {
  simulated_timeline t(never);
  auto const before = t.queued(a);
  auto f = must(t.record(a));
  auto const after = t.queued(a);
  must(t.wait(b, f));
  CHECK(t.ordered(before, b));
  CHECK(t.ordered(f, b));
  CHECK_FALSE(t.ordered(after, b));
  CHECK_FALSE(t.ordered(before, c));
  CHECK_FALSE(t.ordered(t.queued(b), a));  // one way only
}

TEST_CASE("order passes through a chain of waits") {
  simulated_timeline t(never);
  auto const p = t.queued(a);
  auto f = must(t.record(a));
  must(t.wait(b, f));
  auto g = must(t.record(b));
  must(t.wait(c, g));
  CHECK(t.ordered(p, c));
}

TEST_CASE("a fence recorded before its stream waited passes no order on") {
  simulated_timeline t(never);
  auto const p = t.queued(a);
  auto f = must(t.record(a));
  auto early = must(t.record(b));
  must(t.wait(b, f));
  must(t.wait(c, early));
  CHECK(t.ordered(p, b));
  CHECK_FALSE(t.ordered(p, c));
}

TEST_CASE("what a stream learnt is not lost in a later wait") {
  simulated_timeline t(never);
  auto const p = t.queued(a);
  auto const q = t.queued(b);
  auto f = must(t.record(a));
  auto g = must(t.record(b));
  must(t.wait(c, f));
  must(t.wait(c, g));
  CHECK(t.ordered(p, c));
  CHECK(t.ordered(q, c));
}

TEST_CASE("work that is done is not ordered until the host asked") {
  simulated_timeline t({.lag = 10});
  auto const p = t.queued(a);
  auto f = must(t.record(a));
  t.advance(100);
  CHECK_FALSE(t.ordered(p, b));
  REQUIRE(must(t.reached(f)));
  CHECK(t.ordered(p, b));
  CHECK_FALSE(t.ordered(t.queued(a), b));
}

TEST_CASE("a question whose answer was no orders nothing") {
  simulated_timeline t(never);
  auto const p = t.queued(a);
  auto f = must(t.record(a));
  REQUIRE_FALSE(must(t.reached(f)));
  CHECK_FALSE(t.ordered(p, b));
}

TEST_CASE("the host learns with a fence what its stream had waited for") {
  simulated_timeline t(never);
  auto const p = t.queued(a);
  auto f = must(t.record(a));
  must(t.wait(b, f));
  auto g = must(t.record(b));
  must(t.synchronize(g));
  CHECK(t.ordered(p, c));
  CHECK(must(t.reached(f)));
}

TEST_CASE("waiting for the device orders all that was queued, recorded or not, and nothing later") {
  simulated_timeline t(never);
  auto const unrecorded = t.queued(a);
  must(t.synchronize_device());
  CHECK(t.ordered(unrecorded, b));
  CHECK_FALSE(t.ordered(t.queued(a), b));
}

TEST_CASE("a destroyed stream can't be recorded or made to wait, and the device can still be waited for") {
  simulated_timeline t(never);
  auto const p = t.queued(a);
  auto f = must(t.record(b));
  must(t.destroy(a));
  fails_with(t.record(a), errc::driver_failure);
  fails_with(t.wait(a, f), errc::driver_failure);
  must(t.synchronize_device());
  CHECK(t.ordered(p, b));
}

TEST_CASE("a captured stream can't be recorded or made to wait until its capture ends") {
  simulated_timeline t(never);
  auto f = must(t.record(a));
  must(t.set_captured(a, true));
  fails_with(t.record(a), errc::not_supported);
  fails_with(t.wait(a, f), errc::not_supported);
  must(t.wait(b, f));
  must(t.set_captured(a, false));
  static_cast<void>(must(t.record(a)));
  must(t.wait(a, f));
  CHECK(t.counts().records == 2);
  CHECK(t.counts().waits == 2);
}

TEST_CASE("calls and live fences are counted") {
  simulated_timeline t(never);
  auto f = must(t.record(a));
  auto g = must(t.record(b));
  CHECK(t.counts().live_fences == 2);
  static_cast<void>(must(t.reached(f)));
  must(t.wait(b, f));
  must(t.synchronize(g));
  must(t.synchronize_device());
  t.release(f);
  auto const& n = t.counts();
  CHECK(n.records == 2);
  CHECK(n.queries == 1);
  CHECK(n.waits == 1);
  CHECK(n.host_waits == 1);
  CHECK(n.device_syncs == 1);
  CHECK(n.live_fences == 1);
  CHECK(n.misuses == 0);
}

TEST_CASE("a fence that was released, moved from or never recorded is refused and counted") {
  simulated_timeline t(never);
  auto f = must(t.record(a));
  t.release(f);
  fails_with(t.reached(f), errc::invalid_argument);
  fails_with(t.wait(b, f), errc::invalid_argument);
  fails_with(t.synchronize(f), errc::invalid_argument);
  t.release(f);
  CHECK(t.counts().misuses == 4);
  CHECK(t.counts().live_fences == 0);

  auto g = must(t.record(a));
  auto const moved = std::move(g);
  fails_with(t.reached(g), errc::invalid_argument);
  CHECK_FALSE(must(t.reached(moved)));
  simulated_timeline::fence empty;
  fails_with(t.reached(empty), errc::invalid_argument);
  CHECK(t.counts().misuses == 6);
}
