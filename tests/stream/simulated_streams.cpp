#include "gmlake/stream/simulated_streams.hpp"

#include "tests/stream/stream_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
std::optional<simulated_streams> gmlake::test::make_streams() {
  return simulated_streams(std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless}));
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(stream_policy, simulated_streams);
}

TEST_CASE("the owner of the timeline advances what the policy sees") {
  auto const timeline = std::make_shared<simulated_timeline>(timeline_options{.lag = 2});
  simulated_streams s(timeline);
  CHECK(s.concurrent());
  CHECK(s.timeline() == timeline);
  auto f = must(s.record(stream{1}));
  timeline->advance();
  CHECK_FALSE(must(s.reached(f)));
  timeline->advance();
  CHECK(must(s.reached(f)));
  s.release(f);
}
