#include "gmlake/plan/placed_set.hpp"

#include <utility>

#include "tests/plan/packer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// The gaps for buffer i among those placed, naively.
std::vector<std::pair<bytes, bytes>> gaps_of(plan::problem const& p, std::vector<std::pair<std::size_t, bytes>> placed,
                                             std::size_t i) {
  std::ranges::sort(placed, {}, [](auto const& at) { return at.second; });
  std::vector<std::pair<bytes, bytes>> gaps;
  bytes top = 0;
  for (auto const& [k, offset] : placed) {
    if (!conflict(p, p.buffers[i], p.buffers[k])) continue;
    if (offset > top) gaps.emplace_back(top, offset);
    top = std::max(top, offset + p.buffers[k].size);
  }
  gaps.emplace_back(top, plan::placed_set::unbounded);
  return gaps;
}

}  // namespace

TEST_CASE("the gaps are those between conflicting buffers, and the lowest that suffices is found, for all lifetimes") {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  for (demands const& d : std::initializer_list<demands>{
           {}, {.alignment = true}, {.wraps = true}, {.stream_gap = 3}, {.wraps = true, .stream_gap = 30}}) {
    plan::problem const p = demanding(any_problem(random, 400), random, d);
    plan::lifespans const lives(p);
    plan::placed_set placed(p, lives);
    for (int round = 0; round < 2; ++round) {
      placed.clear();
      std::vector<std::pair<std::size_t, bytes>> model;
      for (std::size_t i = 0; i < p.buffers.size(); ++i) {
        std::vector<std::pair<bytes, bytes>> gaps;
        placed.gaps(i, [&](bytes begin, bytes end) {
          gaps.emplace_back(begin, end);
          return false;
        });
        REQUIRE(gaps == gaps_of(p, model, i));
        auto const first = std::ranges::find_if(gaps, [&](auto const& gap) {
          return align_up(gap.first, p.buffers[i].alignment) + p.buffers[i].size <= gap.second;
        });
        REQUIRE(placed.lowest(i) == align_up(first->first, p.buffers[i].alignment));
        REQUIRE(placed.lowest_for_row(std::vector{static_cast<std::uint32_t>(i)}) == placed.lowest(i));
        bytes const at = align_up(random() % 3 == 0 ? gaps.back().first : gaps.back().first + 512 * (random() % 100),
                                  p.buffers[i].alignment);
        placed.insert(i, at);
        model.emplace_back(i, at);
      }
    }
  }
}

TEST_CASE("lowest is the lowest gap that suffices, aligned; best_fit the smallest; a row's fits all its buffers") {
  plan::problem p;
  p.buffers.push_back({0, 9, 4096, 1, 0, {}});
  p.buffers.push_back({0, 9, 4096, 1, 0, {}});
  p.buffers.push_back({2, 3, 1024, 1024, 0, {}});
  p.buffers.push_back({4, 5, 1024, 1024, 0, {}});
  p.buffers.push_back({4, 5, 4096, 1, 0, {}});
  plan::lifespans const lives(p);
  plan::placed_set placed(p, lives);
  placed.insert(0, 8300);   // above [0, 8300)
  placed.insert(1, 14000);  // above [12396, 14000): 1024-aligned from 13312 on, which is too little
  CHECK(placed.lowest(2) == 0);
  CHECK(placed.best_fit(2) == 0);
  CHECK(placed.best_fit(4) == 0);
  placed.insert(4, 100);
  std::vector<std::uint32_t> const row = {2, 3};
  CHECK(placed.lowest(2) == 0);
  CHECK(placed.lowest(3) == 5120);
  CHECK(placed.lowest_for_row(row) == 5120);
  CHECK(placed.work() > 0);
}
