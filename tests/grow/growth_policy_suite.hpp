#pragma once
/// What every GrowthPolicy must do. To hold one to it: TEST_CASE_TEMPLATE_INVOKE(growth_policy, gmlake::fixed_chunks);

#include <random>

#include <doctest/doctest.h>

#include "gmlake/core/alignment.hpp"
#include "gmlake/grow/growth_policy.hpp"

namespace gmlake::test {

/// Anything that a pool may ask, from the least to the most.
inline growth any_growth(std::mt19937_64& random) {
  auto const any = [&](int bits) -> bytes { return random() >> (64 - bits + static_cast<int>(random() % 30)); };
  return {.deficit = 1 + any(48),
          .reserved = any(47),
          .headroom = random() % 4 == 0 ? ~bytes{0} : any(47),
          .freed = any(50),
          .granule = 64_KiB << random() % 6};
}

TEST_CASE_TEMPLATE_DEFINE("a growth policy keeps its contract", G, growth_policy) {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);

  SUBCASE("whatever is known, chunks have a size that can be rounded up to granules") {
    G policy{};
    for (int i = 0; i < 20'000; ++i) {
      growth const g = any_growth(random);
      bytes const n = policy.chunk_size(g);
      REQUIRE(n > 0);
      REQUIRE(fits_aligned(n, g.granule));
    }
  }

  SUBCASE("the answer follows from what was asked so far, moved or not") {
    G one{};
    G other{};
    for (int i = 0; i < 1000; ++i) {
      growth const g = any_growth(random);
      REQUIRE(one.chunk_size(g) == other.chunk_size(g));
      if (i % 10 == 0) {
        G moved = std::move(other);
        other = std::move(moved);
      }
    }
  }

  SUBCASE("growths have ranges of their own always or never") {
    G policy{};
    bool const separate = policy.separate();
    for (int i = 0; i < 100; ++i) {
      (void)policy.chunk_size(any_growth(random));
      REQUIRE(policy.separate() == separate);
    }
  }
}

}  // namespace gmlake::test
