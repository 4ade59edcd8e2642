#include "gmlake/evict/no_evict.hpp"

#include "tests/evict/eviction_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(eviction_policy, no_evict);

TEST_CASE("no stitch is ever one too many, but the oldest goes first where one must") {
  idle_model<no_evict> m(no_evict{}, 3);
  stitch& oldest = m.rest(0);
  m.rest(1);
  m.rest(2);
  CHECK(m.policy.victim({1'000'000'000, 1'000'000'000, ~bytes{0}}) == nullptr);
  CHECK(m.policy.next() == &oldest);
}
