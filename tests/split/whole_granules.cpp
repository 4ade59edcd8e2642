#include "gmlake/split/whole_granules.hpp"

#include "gmlake/split/best_fit.hpp"
#include "gmlake/split/tlsf.hpp"
#include "tests/split/split_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
bytes gmlake::test::surely_served<whole_granules<best_fit>>(bytes n) {
  return n;
}
template <>
bytes gmlake::test::surely_served<whole_granules<tlsf>>(bytes n) {
  return size_classes::least(size_classes::all_fit(n));
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(split_policy, whole_granules<best_fit>, whole_granules<tlsf>);
}

template <class Base>
concept Granular = requires { typename whole_granules<Base>; };
static_assert(Granular<whole_granules<tlsf>> && !Granular<int>);

TEST_CASE("large requests are rounded to whole granules, smaller ones as before") {
  using policy = whole_granules<best_fit>;
  CHECK(policy::round(2_MiB, 2_MiB) == 2_MiB);
  CHECK(policy::round(2_MiB + 1, 2_MiB) == 4_MiB);
  CHECK(policy::round(2_MiB - 1, 2_MiB) == 2_MiB);
  CHECK(policy::round(1_MiB + 1, 2_MiB) == 1_MiB + 512);
  CHECK(policy::round(1, 2_MiB) == 512);
}
