#include "gmlake/pool/gaps.hpp"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;

namespace {

using gap_list = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;

[[nodiscard]] constexpr address_run run(std::uintptr_t begin, std::uintptr_t end) {
  return {address{begin}, address{end}};
}
[[nodiscard]] gap_list gaps(std::vector<address_run> const& runs, std::uintptr_t low, std::uintptr_t high) {
  gap_list found;
  each_gap(runs, address{low}, address{high},
           [&](address begin, address end) { found.emplace_back(to_integer(begin), to_integer(end)); });
  return found;
}

}  // namespace

TEST_CASE("runs overlap where they share a byte, not where they touch") {
  CHECK(run(10, 20).overlaps(address{19}, address{25}));
  CHECK(run(10, 20).overlaps(address{5}, address{11}));
  CHECK(run(10, 20).overlaps(address{12}, address{13}));
  CHECK(run(10, 20).overlaps(address{5}, address{25}));
  CHECK_FALSE(run(10, 20).overlaps(address{20}, address{25}));
  CHECK_FALSE(run(10, 20).overlaps(address{5}, address{10}));
}

TEST_CASE("gaps lie before, between and behind runs") {
  CHECK(gaps({}, 10, 20) == gap_list{{10, 20}});
  CHECK(gaps({run(12, 14), run(16, 17)}, 10, 20) == gap_list{{10, 12}, {14, 16}, {17, 20}});
  CHECK(gaps({run(10, 12), run(12, 15)}, 10, 20) == gap_list{{15, 20}});
}

TEST_CASE("what is covered has no gap, nor has what is empty") {
  CHECK(gaps({run(10, 20)}, 10, 20).empty());
  CHECK(gaps({run(10, 14), run(14, 25)}, 10, 20).empty());
  CHECK(gaps({}, 10, 10).empty());
}

TEST_CASE("runs outside don't matter, and one may reach beyond the end") {
  CHECK(gaps({run(2, 10), run(20, 30)}, 10, 20) == gap_list{{10, 20}});
  CHECK(gaps({run(2, 4), run(18, 30), run(35, 40)}, 10, 20) == gap_list{{10, 18}});
}

TEST_CASE("a short run within a longer one leaves no gap behind it") {
  CHECK(gaps({run(10, 16), run(11, 12), run(18, 19)}, 10, 20) == gap_list{{16, 18}, {19, 20}});
}

TEST_CASE("the gaps are what no run covers") {
  std::uint64_t const seed = 7;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    std::uintptr_t const low = random() % 20;
    std::uintptr_t const high = low + random() % 40;
    std::vector<address_run> runs;
    for (std::size_t i = random() % 8; i > 0; --i) {
      std::uintptr_t const begin = random() % 60;
      std::uintptr_t const end = begin + 1 + random() % 8;
      if (begin >= low || end <= low) runs.push_back(run(begin, end));
    }
    std::ranges::sort(runs, {}, &address_run::begin);
    std::vector<bool> covered(80);
    for (address_run const& r : runs) {
      for (std::uintptr_t a = to_integer(r.begin); a < to_integer(r.end); ++a) covered[a] = true;
    }
    gap_list expected;
    for (std::uintptr_t a = low; a < high; ++a) {
      if (covered[a]) continue;
      if (expected.empty() || expected.back().second != a) expected.emplace_back(a, a);
      ++expected.back().second;
    }
    REQUIRE(gaps(runs, low, high) == expected);
  }
}
