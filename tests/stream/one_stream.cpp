#include "gmlake/stream/one_stream.hpp"

#include "tests/stream/stream_policy_suite.hpp"

using namespace gmlake;

template <>
std::optional<one_stream> gmlake::test::make_streams() {
  return one_stream{};
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(stream_policy, one_stream);
}

TEST_CASE("on one stream nothing is concurrent") { CHECK_FALSE(one_stream{}.concurrent()); }
