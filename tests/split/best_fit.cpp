#include "gmlake/split/best_fit.hpp"

#include <utility>

#include "tests/split/split_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
bytes gmlake::test::surely_served<best_fit>(bytes n) {
  return n;
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(split_policy, best_fit);
}

TEST_CASE("best fit is the smallest block that suffices, of equals the lowest, then the next such") {
  using key = std::pair<bytes, address>;
  walk_shelf<best_fit>(60, 5000, [](shelf_model<best_fit>& m, std::mt19937_64& random) {
    std::set<std::pair<key, block*>> model;
    for (block* b : m.held) model.insert({{b->size, b->begin}, b});
    bytes const n = any_size(random);
    auto expected = model.lower_bound({{n, address{}}, nullptr});
    for (block* b : fits(m, n)) {
      REQUIRE(expected != model.end());
      REQUIRE(b == expected->second);
      ++expected;
    }
    REQUIRE(expected == model.end());
    auto falling = model.rbegin();
    for (block* b : by_falling_size(m)) REQUIRE(b == (falling++)->second);
  });
}

TEST_CASE("a request is rounded to 512 bytes, whatever the granule") {
  CHECK(best_fit::round(1, 2_MiB) == 512);
  CHECK(best_fit::round(512, 2_MiB) == 512);
  CHECK(best_fit::round(2_MiB + 1, 2_MiB) == 2_MiB + 512);
}
