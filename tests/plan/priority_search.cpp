#include "gmlake/plan/priority_search.hpp"

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// With so little work that the suite takes no minutes.
struct brief_search {
  [[nodiscard]] static std::string_view name() noexcept { return "brief priority_search"; }
  [[nodiscard]] static plan::solution pack(plan::problem const& p) {
    return plan::priority_search{{.work = 1'000'000}}.pack(p);
  }
};
static_assert(plan::Packer<brief_search>);

}  // namespace

TEST_CASE_TEMPLATE_INVOKE(packer, brief_search);

TEST_CASE("guillotine cuts are put together again") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {  // known seeds: not every puzzle is solved in any given time
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    plan::problem const p = guillotine(random, 16, 512 * 1000, 1000);
    CHECK(plan::priority_search{{.enough = 512 * 1000}}.pack(p).height == 512 * 1000);
  }
}

TEST_CASE("more work gives nothing worse, and never worse than lowest offset first alone") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  for (int i = 0; i < 5; ++i) {
    plan::problem const p = any_problem(random, 200);
    bytes const alone = plan::lowest_offset{}.pack(p).height;
    CHECK(plan::priority_search{{.work = 5'000'000}}.pack(p).height <= alone);
  }
}
