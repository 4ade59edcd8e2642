#include "gmlake/grow/adaptive_chunks.hpp"

#include "tests/grow/growth_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(growth_policy, adaptive_chunks);

namespace {

constexpr bytes granule = 2_MiB;
constexpr bytes plenty = 1_TiB;
constexpr adaptive_options usual;

/// What a fresh policy answers when much was freed meanwhile, so that no run is under way.
bytes first_answer(growth g, adaptive_options o = {}) {
  g.freed = 2 * g.deficit;
  g.granule = granule;
  return adaptive_chunks{o}.chunk_size(g);
}

}  // namespace

TEST_CASE("chunks grow with the pool, from the smallest size to the largest") {
  CHECK(first_answer({.deficit = 30_MiB, .reserved = 0, .headroom = plenty}) == usual.smallest);
  CHECK(first_answer({.deficit = 30_MiB, .reserved = 40_TiB, .headroom = plenty}) == usual.largest);
  bytes before = 0;
  for (bytes reserved = 0; reserved < 100_GiB; reserved += 1_GiB) {
    CAPTURE(reserved);
    bytes const n = first_answer({.deficit = 30_MiB, .reserved = reserved, .headroom = plenty});
    CHECK(n >= before);
    before = n;
  }
}

TEST_CASE("the closer the limit, the finer the chunks") {
  CHECK(first_answer({.deficit = 30_MiB, .reserved = 60_GiB, .headroom = 0}) == usual.smallest_under_limit);
  bytes before = 0;
  for (bytes headroom = 0; headroom < 20_GiB; headroom += 256_MiB) {
    CAPTURE(headroom);
    bytes const n = first_answer({.deficit = 30_MiB, .reserved = 60_GiB, .headroom = headroom});
    CHECK(n >= before);
    CHECK(n <= std::max(usual.smallest_under_limit, headroom / usual.chunks_in_headroom));
    before = n;
  }
}

TEST_CASE("while growths follow each other, chunks double up to the pool's share; a free starts afresh") {
  adaptive_chunks policy;
  growth g{.deficit = 200_MiB, .reserved = 64_GiB, .headroom = plenty, .freed = 0, .granule = granule};
  bytes const share = g.reserved / usual.runs_a_pool;
  bytes before = policy.chunk_size(g);
  CHECK(before < share);
  for (int i = 0; i < 10; ++i) {
    bytes const n = policy.chunk_size(g);
    CHECK(n == std::min(2 * before, share));
    before = n;
  }
  CHECK(before == share);
  g.freed = g.deficit;
  bytes const again = policy.chunk_size(g);
  CHECK(again < share);
  g.freed = g.deficit / usual.frees_break_run;
  CHECK(policy.chunk_size(g) > again);
}

TEST_CASE("a small pool's run stays small") {
  adaptive_chunks policy;
  growth const g{.deficit = 200_MiB, .reserved = 1_GiB, .headroom = plenty, .freed = 0, .granule = granule};
  for (int i = 0; i < 10; ++i) CHECK(policy.chunk_size(g) == usual.smallest);
}

TEST_CASE("chunks are whole granules, and one at least") {
  adaptive_chunks policy{adaptive_options::fixed(5_MiB)};
  CHECK(policy.chunk_size({.deficit = 1_GiB, .headroom = plenty, .granule = 2_MiB}) == 4_MiB);
  CHECK(policy.chunk_size({.deficit = 1_GiB, .headroom = plenty, .granule = 16_MiB}) == 16_MiB);
}

TEST_CASE("movable blocks get chunks of one size under a limit, however much of it is taken") {
  for (bytes limit : {1_GiB, 7_GiB, 12_GiB, 100_GiB}) {
    CAPTURE(limit);
    bytes const n = first_answer({.deficit = 1_GiB, .reserved = 0, .headroom = limit, .movable = true});
    CHECK(std::has_single_bit(n));
    CHECK(n <= std::max(granule, limit / usual.movable_chunks_in_limit));
    CHECK(n <= usual.largest_movable);
    for (bytes reserved = 0; reserved <= limit; reserved += limit / 16) {
      CHECK(first_answer({.deficit = 30_MiB, .reserved = reserved, .headroom = limit - reserved, .movable = true}) ==
            n);
    }
  }
  CHECK(first_answer({.deficit = 1_GiB, .headroom = plenty, .movable = true}) == usual.largest_movable);
}

TEST_CASE("fixed options give chunks of one size, whatever happens") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  adaptive_chunks policy{adaptive_options::fixed(8_MiB)};
  for (int i = 0; i < 1000; ++i) {
    growth g = gmlake::test::any_growth(random);
    g.granule = 2_MiB;
    REQUIRE(policy.chunk_size(g) == 8_MiB);
  }
}
