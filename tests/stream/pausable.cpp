#include "gmlake/stream/pausable.hpp"

#include "gmlake/stream/one_stream.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "tests/stream/stream_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using paused_streams = pausable<simulated_streams>;
static_assert(StreamPolicy<paused_streams> && StreamPolicy<pausable<one_stream>>);

/// A policy over a timeline, and the count that pauses it.
struct scene {
  std::shared_ptr<simulated_timeline> time =
      std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless});
  std::shared_ptr<std::atomic<int>> pauses = std::make_shared<std::atomic<int>>(0);
  paused_streams streams{simulated_streams(time), pauses};
};

constexpr stream a{1};
constexpr stream b{2};

}  // namespace

template <>
std::optional<paused_streams> gmlake::test::make_streams() {
  return scene{}.streams;
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(stream_policy, paused_streams);
}

TEST_CASE("paused, nothing is recorded, waited for or synchronised with, and nothing reaches the policy beneath") {
  scene s;
  auto f = must(s.streams.record(a));
  auto const before = s.time->counts();
  *s.pauses = 1;
  fails_with(s.streams.record(a), errc::not_supported);
  fails_with(s.streams.record(b), errc::not_supported);
  fails_with(s.streams.wait(b, f), errc::not_supported);
  fails_with(s.streams.synchronize(f), errc::not_supported);
  fails_with(s.streams.synchronize_device(), errc::not_supported);
  CHECK_FALSE(must(s.streams.reached(f)));
  auto const after = s.time->counts();
  CHECK(after.records == before.records);
  CHECK(after.queries == before.queries);
  CHECK(after.waits == before.waits);
  CHECK(after.host_waits == before.host_waits);
  CHECK(after.device_syncs == before.device_syncs);
  *s.pauses = 0;
  s.streams.release(f);
}

TEST_CASE("paused, a fence that has been reached is not known to be, until the pause is over") {
  scene s;
  auto f = must(s.streams.record(a));
  s.time->finish_all();
  *s.pauses = 1;
  CHECK_FALSE(must(s.streams.reached(f)));
  *s.pauses = 0;
  CHECK(must(s.streams.reached(f)));
  s.streams.release(f);
}

TEST_CASE("pauses nest: only the last to end lets the streams go on") {
  scene s;
  s.pauses->fetch_add(1);
  s.pauses->fetch_add(1);
  fails_with(s.streams.record(a), errc::not_supported);
  s.pauses->fetch_sub(1);
  fails_with(s.streams.record(a), errc::not_supported);
  s.pauses->fetch_sub(1);
  auto f = must(s.streams.record(a));
  s.streams.release(f);
}

TEST_CASE("fences are released while paused too") {
  scene s;
  auto f = must(s.streams.record(a));
  *s.pauses = 1;
  s.streams.release(f);
  CHECK(s.time->counts().live_fences == 0);
  CHECK(s.time->counts().misuses == 0);
}

TEST_CASE("one count pauses several policies, and a moved policy as well") {
  scene s;
  paused_streams other(simulated_streams(s.time), s.pauses);
  paused_streams moved = std::move(s.streams);
  *s.pauses = 1;
  fails_with(other.record(a), errc::not_supported);
  fails_with(moved.record(b), errc::not_supported);
  *s.pauses = 0;
  for (paused_streams* p : {&other, &moved}) {
    auto f = must(p->record(a));
    p->release(f);
  }
}

TEST_CASE("whether streams run concurrently is the policy's to say, paused or not") {
  auto const pauses = std::make_shared<std::atomic<int>>(0);
  for (int n : {0, 1}) {
    *pauses = n;
    CHECK_FALSE(pausable<one_stream>(one_stream{}, pauses).concurrent());
    CHECK(paused_streams(simulated_streams(std::make_shared<simulated_timeline>()), pauses).concurrent());
  }
}
