#include "gmlake/plan/portfolio.hpp"

#include <chrono>

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// A portfolio as a packer, with so little work that the suite takes no minutes.
struct brief_portfolio {
  [[nodiscard]] static std::string_view name() noexcept { return "brief portfolio"; }
  [[nodiscard]] static plan::solution pack(plan::problem const& p) {
    return plan::portfolio{{.work = 1'000'000}}.pack(p).solution;
  }
};
static_assert(plan::Packer<brief_portfolio>);

}  // namespace

TEST_CASE_TEMPLATE_INVOKE(packer, brief_portfolio);

TEST_CASE("a portfolio is never above the packers in it, nor below its bound, and says whose the solution is") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  for (int i = 0; i < 10; ++i) {
    plan::problem const p = demanding(any_problem(random, 200), random, {.alignment = true, .fixed = true});
    plan::packed const found = plan::portfolio{{.work = 20'000'000}}.pack(p);
    CHECK(wrong_with(p, found.solution) == "");
    CHECK(found.solution.height >= found.bound);
    CHECK(found.bound >= peak_live(p));
    CHECK(found.solution.height <= plan::lifetime_sweep{}.pack(p).height);
    CHECK(found.solution.height <= plan::lowest_offset{}.pack(p).height);
    CHECK(found.solution.height <= plan::best_fit_decreasing{}.pack(p).height);
    CHECK(found.solution.height <= plan::grouped{}.pack(p).height);
    CHECK_FALSE(found.packer.empty());
  }
}

TEST_CASE("stacks and cut rectangles are packed to the bound") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {  // known seeds: not every puzzle is solved in any given time
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    for (plan::problem const& p : {any_stack(random, 500), guillotine(random, 16, 512 * 1000, 1000)}) {
      plan::packed const found = plan::portfolio{}.pack(p);
      CHECK(found.solution.height == found.bound);
      CHECK(found.bound == peak_live(p));
    }
  }
}

TEST_CASE("without time the cheapest packer still gives a valid solution") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  plan::problem const p = demanding(any_problem(random, 500), random, {true, true, true, 5});
  CHECK(wrong_with(p, plan::portfolio{{.seconds = 0}}.pack(p).solution) == "");
}

TEST_CASE("a hundred thousand buffers take seconds") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  plan::problem p;
  for (int i = 0; i < 100'000; ++i) {
    plan::buffer b = any_buffer(random, 2000);
    b.lower += 2 * static_cast<plan::instant>(i);
    b.upper += 2 * static_cast<plan::instant>(i);
    p.buffers.push_back(b);
  }
  auto const begin = std::chrono::steady_clock::now();
  plan::packed const found = plan::portfolio{}.pack(p);
  auto const took = std::chrono::steady_clock::now() - begin;
  CHECK(found.solution.offsets.size() == p.buffers.size());
  CHECK(found.solution.height >= found.bound);
  CHECK(static_cast<double>(found.solution.height) < 1.5 * static_cast<double>(found.bound));
  CHECK(took < std::chrono::seconds(120));  // 1 or 2 where nothing else runs; sanitizers are slow
}
