#include "gmlake/plan/buffer_order.hpp"

#include <algorithm>
#include <set>

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE("every order has each buffer once but the fixed ones") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  plan::problem const p = demanding(any_problem(random, 300), random, {.fixed = true, .wraps = true});
  plan::lifespans const lives(p);
  std::size_t const fixed = static_cast<std::size_t>(
      std::ranges::count_if(p.buffers, [](plan::buffer const& b) { return b.fixed.has_value(); }));
  std::set<std::string_view> names;
  for (plan::priority const by : plan::priorities) {
    CAPTURE(plan::name_of(by));
    names.insert(plan::name_of(by));
    plan::buffer_order const in = plan::ordered(p, lives, by);
    CHECK(std::set<std::uint32_t>(in.begin(), in.end()).size() == p.buffers.size() - fixed);
    CHECK(std::ranges::none_of(in, [&](std::uint32_t i) { return p.buffers[i].fixed.has_value(); }));
  }
  CHECK(names.size() == plan::priorities.size());
}

TEST_CASE("orders are by what their names say, ties by size and then by index") {
  plan::problem p;
  p.buffers.push_back({0, 3, 100, 1, 0, {}});
  p.buffers.push_back({1, 9, 10, 1, 0, {}});
  p.buffers.push_back({4, 7, 200, 1, 0, {}});
  p.buffers.push_back({4, 7, 200, 1, 0, {}});
  plan::lifespans const lives(p);
  auto const by = [&](plan::priority how) { return plan::ordered(p, lives, how); };
  CHECK(by(plan::priority::size) == plan::buffer_order{2, 3, 0, 1});
  CHECK(by(plan::priority::lifetime) == plan::buffer_order{1, 0, 2, 3});
  CHECK(by(plan::priority::birth) == plan::buffer_order{0, 1, 2, 3});
  CHECK(by(plan::priority::death) == plan::buffer_order{1, 2, 3, 0});
}
