#include "gmlake/plan/validate.hpp"

#include <optional>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "tests/plan/naive.hpp"

namespace {
using namespace gmlake;
using plan::rule;
using plan::validate;
using test::alive;

/// Two that live at once, and one after them in the first one's place.
plan::problem three() {
  plan::problem p;
  p.buffers = {alive(0, 4, 8), alive(1, 8, 4), alive(4, 6, 8)};
  return p;
}
plan::solution of_three() { return {{0, 8, 0}, 12}; }

void breaks(plan::problem const& p, plan::solution const& s, rule r, std::size_t first = plan::fault::nobody,
            std::size_t second = plan::fault::nobody) {
  auto const broken = validate(p, s);
  REQUIRE(broken);
  CAPTURE(std::string(plan::to_string(broken->broken)));
  CHECK(broken->broken == r);
  CHECK(broken->first == first);
  CHECK(broken->second == second);
}

TEST_CASE("a solution is valid, as is nothing at all") {
  CHECK_FALSE(validate(three(), of_three()));
  CHECK_FALSE(validate({}, plan::solution{}));
}

TEST_CASE("each rule that is broken is named, with who breaks it") {
  plan::problem p = three();
  plan::solution s = of_three();
  SUBCASE("size zero") { p.buffers[1].size = 0, breaks(p, s, rule::size, 1); }
  SUBCASE("sizes overflow") { p.buffers[2].size = ~bytes{0} - 3, breaks(p, s, rule::size, 2); }
  SUBCASE("an empty lifetime") { p.buffers[2].upper = 4, breaks(p, s, rule::lifetime, 2); }
  SUBCASE("born after the period") { p.buffers[1].upper = 3, p.period = 4, breaks(p, s, rule::lifetime, 2); }
  SUBCASE("longer than the period") { p.period = 6, breaks(p, s, rule::lifetime, 1); }
  SUBCASE("an alignment that is no power of two") { p.buffers[0].alignment = 3, breaks(p, s, rule::alignment, 0); }
  SUBCASE("alignment zero") { p.buffers[0].alignment = 0, breaks(p, s, rule::alignment, 0); }
  SUBCASE("an alignment not kept") { p.buffers[1].alignment = 16, breaks(p, s, rule::alignment, 1); }
  SUBCASE("a fixed offset not aligned") {
    p.buffers[0].alignment = 8, p.buffers[0].fixed = 4, breaks(p, s, rule::alignment, 0);
  }
  SUBCASE("a fixed offset not kept") { p.buffers[1].fixed = 16, breaks(p, s, rule::fixed, 1); }
  SUBCASE("an offset too few") { s.offsets.pop_back(), breaks(p, s, rule::count); }
  SUBCASE("an offset too many") { s.offsets.push_back(0), breaks(p, s, rule::count); }
  SUBCASE("too high") { s.height = 13, breaks(p, s, rule::height); }
  SUBCASE("too low") { s.height = 11, breaks(p, s, rule::height); }
  SUBCASE("an end that overflows") { s.offsets[1] = ~bytes{0}, breaks(p, s, rule::height, 1); }
  SUBCASE("two share a byte") { s = {{0, 7, 0}, 11}, breaks(p, s, rule::share, 0, 1); }
  SUBCASE("a byte of one that began later") { s = {{0, 8, 1}, 12}, breaks(p, s, rule::share, 1, 2); }
  SUBCASE("twice the same") { p.buffers = {alive(0, 1, 1), alive(0, 1, 1)}, breaks(p, {{0, 0}, 1}, rule::share, 0, 1); }
  SUBCASE("streams meet within the gap") {
    p.buffers[2].stream = 1, p.stream_gap = 1;
    breaks(p, s, rule::gap, 0, 2);
  }
  SUBCASE("streams that never share") {
    p.buffers = {alive(0, 1, 1, 0), alive(900, 901, 1, 1)}, p.stream_gap = plan::problem::never;
    breaks(p, {{0, 0}, 1}, rule::gap, 0, 1);
  }
}

TEST_CASE("a gap that is just wide enough is kept") {
  plan::problem p;
  p.stream_gap = 3;
  p.buffers = {alive(0, 2, 1, 0), alive(5, 6, 1, 1)};
  CHECK_FALSE(validate(p, {{0, 0}, 1}));
  p.stream_gap = 4;
  CHECK(validate(p, {{0, 0}, 1}));
}

TEST_CASE("what wraps lives on in the next step") {
  plan::problem p;
  p.period = 10;
  p.buffers = {alive(8, 13, 1), alive(2, 5, 1)};
  breaks(p, {{0, 0}, 1}, rule::share, 0, 1);
  p.buffers[1].lower = 3;
  CHECK_FALSE(validate(p, {{0, 0}, 1}));
  p.buffers[1].stream = 1;
  p.stream_gap = 1;
  breaks(p, {{0, 0}, 1}, rule::gap, 0, 1);
  p.buffers[0].upper = 12;
  CHECK_FALSE(validate(p, {{0, 0}, 1}));
  p.buffers[1].upper = 8;
  breaks(p, {{0, 0}, 1}, rule::gap, 1, 0);
}

TEST_CASE("a buffer may live as long as the period, alone") {
  plan::problem p;
  p.period = plan::problem::never;
  p.buffers = {alive(7, 7, 4)};
  p.buffers[0].upper = plan::problem::never;
  CHECK_FALSE(validate(p, {{0}, 4}));
}

TEST_CASE("the validator agrees with a naive one") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  int valid = 0;
  for (auto kind : test::all_kinds()) {
    kind.most_buffers = 9;
    for (int i = 0; i < 3000; ++i) {
      plan::problem const p = test::random_problem(random, kind);
      plan::solution s;
      bytes const room = 1 + random() % 40;
      for (plan::buffer const& b : p.buffers) {
        s.offsets.push_back(b.fixed ? *b.fixed : random() % room / b.alignment * b.alignment);
        s.height = std::max(s.height, s.offsets.back() + b.size);
      }
      REQUIRE(!validate(p, s) == test::naively_valid(p, s));
      valid += !validate(p, s);
    }
  }
  CHECK(valid > 1000);
}

}  // namespace
