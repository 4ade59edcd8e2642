#include "gmlake/core/alignment.hpp"

#include <limits>
#include <random>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

constexpr bytes most = std::numeric_limits<bytes>::max();

static_assert(align_up(bytes{0}, 512) == 0 && align_down(bytes{0}, 512) == 0);
static_assert(align_up(bytes{1}, 512) == 512 && align_up(bytes{512}, 512) == 512 && align_up(bytes{513}, 512) == 1024);
static_assert(align_down(bytes{511}, 512) == 0 && align_down(bytes{1023}, 512) == 512);
static_assert(align_up(address{3}, 4) == address{4} && align_down(address{3}, 4) == address{});
static_assert(is_aligned(bytes{0}, 512) && is_aligned(4_MiB, 2_MiB) && !is_aligned(3_MiB, 2_MiB));
static_assert(is_aligned(address{1}, 1) && !is_aligned(address{1}, 2));

TEST_CASE("rounding gives the nearest multiple on its side") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 10'000; ++i) {
    bytes const alignment = bytes{1} << (random() % 40);
    bytes const n = random() >> (random() % 64);
    if (!fits_aligned(n, alignment)) continue;
    bytes const up = align_up(n, alignment);
    bytes const down = align_down(n, alignment);
    CHECK((up % alignment == 0 && up >= n && up - n < alignment));
    CHECK((down % alignment == 0 && down <= n && n - down < alignment));
    CHECK(is_aligned(n, alignment) == (n % alignment == 0));
  }
}

TEST_CASE("what would overflow is known beforehand") {
  CHECK(fits_aligned(most, 1));
  CHECK_FALSE(fits_aligned(most, 2));
  CHECK(fits_aligned(most - 511, 512));
  CHECK_FALSE(fits_aligned(most - 510, 512));
  CHECK(align_up(most - 511, 512) == most - 511);
}

}  // namespace
