#include "gmlake/pool/ranked_extents.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake {
namespace {

struct candidates {
  std::vector<chunk> chunks;
  ranked_extents ranked;

  explicit candidates(std::vector<extent_rank> const& ranks) : chunks(ranks.size()) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      chunks[i].size = 1 + i % 3;
      ranked.add({&chunks[i], 0, chunks[i].size}, ranks[i]);
    }
    ranked.begin();
  }
  [[nodiscard]] std::ptrdiff_t number(chunk const* c) const { return c != nullptr ? c - chunks.data() : -1; }
};

constexpr auto any = [](extent const&) noexcept { return true; };

}  // namespace

TEST_CASE("candidates come in the order of their ranks, and those alike as they were added") {
  candidates all(
      {{.free_from = 5}, {.wanted = true, .when = 1}, {.when = 7}, {.free_from = 1}, {.when = 3}, {.when = 7}});
  for (std::ptrdiff_t const expected : {4, 2, 5, 1, 3, 0})
    CHECK(all.ranked.take_first().of - all.chunks.data() == expected);
  CHECK(all.ranked.empty());
}

TEST_CASE("the best that suits is taken, once, and none that is free only later than one can wait") {
  candidates all({{.free_from = 9}, {.when = 2}, {.when = 1}, {.free_from = 1}});
  auto const of_three = [](extent const& e) noexcept { return e.size == 3; };
  CHECK(all.number(all.ranked.take(of_three)) == 2);
  CHECK(all.ranked.take(of_three) == nullptr);
  CHECK(all.number(all.ranked.take(any, 1)) == 1);
  CHECK(all.number(all.ranked.take(any, 1)) == 3);
  CHECK(all.ranked.take(any, 8) == nullptr);
  CHECK(all.number(all.ranked.take(any)) == 0);
  CHECK(all.ranked.empty());
}

TEST_CASE("whatever is taken in between, it is as from a list that is sorted") {
  std::mt19937 dice(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<extent_rank> ranks(dice() % 40);
    for (extent_rank& r : ranks) r = {.free_from = dice() % 3, .wanted = dice() % 2 == 0, .when = dice() % 5};
    candidates all(ranks);
    std::vector<std::ptrdiff_t> sorted;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].place = i;
      sorted.push_back(static_cast<std::ptrdiff_t>(i));
    }
    std::ranges::sort(sorted, [&](std::ptrdiff_t a, std::ptrdiff_t b) {
      return ranks[static_cast<std::size_t>(a)] < ranks[static_cast<std::size_t>(b)];
    });
    while (!sorted.empty()) {
      bytes const size = 1 + dice() % 4;
      std::uint64_t const latest = dice() % 3;
      auto const suits = [&](std::ptrdiff_t i) {
        auto const n = static_cast<std::size_t>(i);
        return all.chunks[n].size == size && ranks[n].free_from <= latest;
      };
      auto const expected = size == 4 ? sorted.begin() : std::ranges::find_if(sorted, suits);
      chunk const* const got = size == 4
                                   ? all.ranked.take_first().of
                                   : all.ranked.take([&](extent const& e) noexcept { return e.size == size; }, latest);
      REQUIRE(all.number(got) == (expected != sorted.end() ? *expected : -1));
      if (expected != sorted.end()) sorted.erase(expected);
      else if (dice() % 4 == 0) sorted.erase(std::ranges::find(sorted, all.number(all.ranked.take_first().of)));
    }
    CHECK(all.ranked.empty());
  }
}

}  // namespace gmlake
