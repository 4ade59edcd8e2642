#include "gmlake/pool/free_space.hpp"

#include "tests/pool/parts_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// One chunk that is free, but for a block in its middle; what was taken last is given back.
struct fresh_rig : parts_rig {
  static constexpr bytes n = 8_KiB;

  fresh_rig() {
    must(grow.add_contiguous(first, area::large, chunk_bytes));
    block& b = take(n);
    at = b.begin;
    give(b);
  }

  address at{};

  [[nodiscard]] block* again(bytes size, stream_index user) {
    block* const b = parts.space.take_fresh(user, area::large, size);
    if (b != nullptr) {
      REQUIRE(live.reserve_one());
      live.insert(b->begin, *b);
    }
    return b;
  }
};

}  // namespace

TEST_CASE("what was taken last and is freed first is there for its size, as it was cut") {
  fresh_rig r;
  for (int i = 0; i < 3; ++i) {
    CAPTURE(i);
    REQUIRE(r.parts.space.fresh() != nullptr);
    CHECK(r.free() == chunk_bytes);
    r.sound();
    block* const b = r.again(r.n, r.first);
    REQUIRE(b != nullptr);
    CHECK(b->begin == r.at);
    CHECK(b->size == r.n);
    CHECK(r.free() == chunk_bytes - r.n);
    CHECK(r.parts.space.fresh() == nullptr);
    r.sound();
    r.give(*b);
  }
}

TEST_CASE("a fresh block serves its size, area and stream alone") {
  fresh_rig r;
  CHECK(r.again(r.n + 512, r.first) == nullptr);
  CHECK(r.again(r.n - 512, r.first) == nullptr);
  CHECK(r.parts.space.take_fresh(r.first, area::small, r.n) == nullptr);
  CHECK(r.parts.space.take_fresh(r.first, area::own, r.n) == nullptr);
  CHECK(r.parts.space.take_fresh(nobody, area::large, r.n) == nullptr);
  CHECK(r.again(r.n, r.first) != nullptr);
}

TEST_CASE("whatever else is asked of the free memory finds a fresh block joined with its neighbours") {
  fresh_rig r;
  SUBCASE("a search") {
    block* const b = r.parts.space.find(r.first, area::large, chunk_bytes);
    REQUIRE(b != nullptr);
    CHECK(b->size == chunk_bytes);
  }
  SUBCASE("a search on other streams' shelves") {
    CHECK(r.parts.space.find_elsewhere(r.first, area::large, r.n, true) == nullptr);
  }
  SUBCASE("a walk over what a stream may use") {
    std::vector<bytes> sizes;
    r.parts.space.each_usable(r.first, 1, [&](block& b) { sizes.push_back(b.size); });
    CHECK(sizes == std::vector<bytes>{chunk_bytes});
  }
  SUBCASE("a walk over all that is large") {
    std::vector<bytes> sizes;
    r.parts.space.each_large(1, [&](block& b) { sizes.push_back(b.size); });
    CHECK(sizes == std::vector<bytes>{chunk_bytes});
  }
  SUBCASE("a walk over all that is free") {
    std::vector<bytes> sizes;
    r.parts.space.each_free(r.first, 1, [&](block& b) { sizes.push_back(b.size); });
    CHECK(sizes == std::vector<bytes>{chunk_bytes});
  }
  SUBCASE("growth") {
    must(r.grow.add_contiguous(r.first, area::large, 2 * chunk_bytes));
    block* const b = r.parts.space.find(r.first, area::large, 2 * chunk_bytes);
    REQUIRE(b != nullptr);
    CHECK(b->begin == r.at);
    CHECK(r.free() == 2 * chunk_bytes);  // what was free counted
  }
  SUBCASE("gathering") {
    CHECK_FALSE(must(r.parts.space.gather(r.first, [](block&, stream_index, tick) {})));
  }
  SUBCASE("a chunk wanted whole") {
    REQUIRE(r.parts.space.home().reserve_blocks(4));
    chunk& c = *r.parts.space.home().ranges().front().first_chunk;
    block& b = r.parts.space.isolate(c, c.home, c.size);
    CHECK(b.size == chunk_bytes);
    r.parts.space.give_back(b, r.first, r.stamp(r.first));
  }
  CHECK(r.parts.space.fresh() == nullptr);
  CHECK(r.again(r.n, r.first) == nullptr);
}

TEST_CASE("a block that was not taken last is joined at once") {
  parts_rig r;
  must(r.grow.add_contiguous(r.first, area::large, chunk_bytes));
  block& a = r.take(quarter_chunk);
  block& b = r.take(quarter_chunk);
  r.give(a);
  CHECK(r.parts.space.fresh() == nullptr);
  r.give(b);  // the free memory has changed since it was taken
  CHECK(r.parts.space.fresh() == nullptr);
  CHECK(r.parts.space.largest() == chunk_bytes);
}

TEST_CASE("the largest free block is what a fresh one and its neighbours would be") {
  fresh_rig r;
  CHECK(r.parts.space.largest() == chunk_bytes);
  CHECK(r.parts.space.fresh() != nullptr);
  block* const b = r.again(r.n, r.first);
  REQUIRE(b != nullptr);
  CHECK(r.parts.space.largest() == chunk_bytes - r.n);
}

TEST_CASE("no block stays fresh where several streams are known") {
  fresh_rig r;
  stream_index const second = r.enter(two);
  CHECK(r.parts.space.fresh() == nullptr);
  CHECK(r.again(r.n, r.first) == nullptr);
  CHECK(r.parts.space.find_elsewhere(second, area::large, r.n, false) == nullptr);  // the first may still use it
  block& b = r.take(r.n);
  r.give(b);
  CHECK(r.parts.space.fresh() == nullptr);
}

TEST_CASE("a block on chunks of its own is never fresh") {
  parts_rig r;
  REQUIRE(r.live.reserve_one());
  block& b = *must(r.grow.add_own(r.first, chunk_bytes, true));
  r.live.insert(b.begin, b);
  r.give(b);
  block& again = r.take(chunk_bytes);
  CHECK(again.in->kind == area::own);
  r.give(again);
  CHECK(r.parts.space.fresh() == nullptr);
}

TEST_CASE("an ended pool of which one block is fresh gives all its memory back") {
  plain_rig r;
  r.give(r.take(small_block));
  CHECK(r.stats().reserved.now > 0);
  SUBCASE("trimmed") {
    CHECK(r.trim() > 0);
    CHECK(r.stats().reserved.now == 0);
  }
  SUBCASE("destroyed") { r.destroy(); }
}
