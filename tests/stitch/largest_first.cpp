#include "gmlake/stitch/largest_first.hpp"

#include "tests/stitch/stitch_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(stitch_policy, largest_first);

namespace {

std::vector<extent> chosen(free_memory& from, bytes n) {
  std::vector<extent> out;
  CHECK(choose(largest_first{}, from, n, out).shortfall == 0);
  return out;
}

}  // namespace

TEST_CASE("blocks below the smallest size are not stitched") {
  CHECK_FALSE(largest_first{}.stitches(2_MiB - 512, false));
  CHECK(largest_first{}.stitches(2_MiB, false));
  largest_first const coarse{{.smallest = 64_MiB}};
  CHECK_FALSE(coarse.stitches(32_MiB, true));
  CHECK(coarse.stitches(64_MiB, false));
}

TEST_CASE("any idle stitch that is large enough may serve again") { CHECK(largest_first{}.reuses(1_TiB, 2_MiB)); }

TEST_CASE("the largest chunks go first, and lie in the order of their homes") {
  free_memory m(6);
  for (bytes const size : {4_MiB, 32_MiB, 2_MiB, 64_MiB, 32_MiB, 4_MiB}) m.add_whole(size);
  std::vector<extent> const out = chosen(m, 128_MiB);
  REQUIRE(out.size() == 3);
  CHECK(out[0].of == &m.chunks[1]);
  CHECK(out[1].of == &m.chunks[3]);
  CHECK(out[2].of == &m.chunks[4]);
}

TEST_CASE("of chunks of one size, no more handles are taken than the bytes need") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    free_memory m(20);
    for (int i = 0; i < 20; ++i) m.add_whole(32_MiB);
    bytes const n = (1 + random() % (20 * 32_MiB / 512)) * 512;
    CHECK(chosen(m, n).size() == (n + 32_MiB - 1) / 32_MiB);
  }
}

TEST_CASE("the remainder comes from the tightest part of a chunk in use, be it an end or a beginning") {
  free_memory m(6);
  m.add_whole(32_MiB);
  m.add_whole(32_MiB);
  m.add_tail(32_MiB, 20_MiB);
  m.add_tail(32_MiB, 6_MiB);
  m.add_head(32_MiB, 5_MiB);
  m.add_head(32_MiB, 30_MiB);

  std::vector<extent> out = chosen(m, 36_MiB);  // 4 MiB of the 5 MiB head
  REQUIRE(out.size() == 2);
  CHECK(out[0].whole());
  CHECK(out[1].of == &m.chunks[4]);
  CHECK(out[1].offset == 0);

  out = chosen(m, 38_MiB);  // the 6 MiB tail, to its end
  REQUIRE(out.size() == 2);
  CHECK(out[0].of == &m.chunks[3]);
  CHECK(out[0].offset == 26_MiB);
  CHECK(out[1].whole());
}

TEST_CASE("of a part that is larger than the remainder, the side by the view is taken") {
  free_memory m(2);
  m.add_tail(32_MiB, 20_MiB);
  m.add_whole(32_MiB);
  std::vector<extent> const out = chosen(m, 40_MiB);
  REQUIRE(out.size() == 2);
  CHECK(out[0].offset == 24_MiB);
  CHECK(out[0].size == 8_MiB);
}

TEST_CASE("where no part alone suffices, an end and a beginning do together, before a whole chunk is broken") {
  free_memory m(4);
  m.add_whole(32_MiB);
  m.add_whole(32_MiB);
  m.add_tail(32_MiB, 10_MiB);
  m.add_head(32_MiB, 8_MiB);
  std::vector<extent> out = chosen(m, 48_MiB);
  REQUIRE(out.size() == 3);
  CHECK(out[0].of == &m.chunks[2]);
  CHECK(out[1].whole());
  CHECK(out[2].of == &m.chunks[3]);
  CHECK(out[2].size == 6_MiB);

  out = chosen(m, 52_MiB);  // 20 MiB remain: more than both together
  REQUIRE(out.size() == 2);
  CHECK(out[0].whole());
  CHECK(out[1].size == 20_MiB);
}

TEST_CASE("the smallest chunk that suffices is broken") {
  free_memory m(4);
  for (bytes const size : {64_MiB, 32_MiB, 16_MiB, 24_MiB}) m.add_whole(size);
  std::vector<extent> const out = chosen(m, 100_MiB);  // 64 + 32, and 4 of 16
  REQUIRE(out.size() == 3);
  CHECK(out[2].of == &m.chunks[2]);
  CHECK(out[2].size == 4_MiB);
}

TEST_CASE("the shortfall is what all whole chunks, the largest end and the largest beginning leave open") {
  free_memory m(5);
  m.add_whole(32_MiB);
  m.add_tail(32_MiB, 10_MiB);
  m.add_tail(32_MiB, 4_MiB);
  m.add_head(32_MiB, 8_MiB);
  m.add_head(32_MiB, 2_MiB);
  std::vector<extent> out;
  CHECK(choose(largest_first{}, m, 100_MiB, out).shortfall == 50_MiB);
}
