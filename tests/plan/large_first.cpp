#include "gmlake/plan/large_first.hpp"

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// With so little work that the suite takes no minutes.
struct brief_large_first {
  [[nodiscard]] static std::string_view name() noexcept { return "brief large_first"; }
  [[nodiscard]] static plan::solution pack(plan::problem const& p) {
    return plan::large_first{{.work = 1'000'000}}.pack(p);
  }
};
static_assert(plan::Packer<brief_large_first>);

/// Cut rectangles with many small buffers between them, which take 1 in 1,000 at most.
plan::problem with_small(std::mt19937_64& random, bytes height) {
  plan::problem p = guillotine(random, 24, height, 1000);
  for (int i = 0; i < 400; ++i) {
    plan::instant const at = random() % 999;
    p.buffers.push_back({.lower = at, .upper = at + 1 + random() % 2, .size = 512 * (1 + random() % 2), .fixed = {}});
  }
  return p;
}

}  // namespace

TEST_CASE_TEMPLATE_INVOKE(packer, brief_large_first);

TEST_CASE("cut rectangles with small buffers between are packed nearly to the bound") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {  // known seeds: not every puzzle is solved in any given time
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    plan::problem const p = with_small(random, 512 * 100'000);
    plan::solution const s = plan::large_first{}.pack(p);
    CHECK(wrong_with(p, s) == "");
    CHECK(static_cast<double>(s.height) <= 1.003 * static_cast<double>(plan::lower_bound(p)));
  }
}

TEST_CASE("what is fixed stays, however small it is") {
  plan::problem p;
  for (std::uint32_t i = 0; i < 40; ++i) {
    p.buffers.push_back({.lower = i, .upper = i + 4, .size = 10'000 + 1000 * (i % 7), .fixed = {}});
  }
  p.buffers.push_back({.lower = 3, .upper = 30, .size = 8, .fixed = 4096});
  plan::solution const s = plan::large_first{}.pack(p);
  CHECK(wrong_with(p, s) == "");
  CHECK(s.height <= plan::lifetime_sweep{}.pack(p).height);
}
