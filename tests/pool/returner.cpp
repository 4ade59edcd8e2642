#include "gmlake/pool/returner.hpp"

#include "tests/pool/parts_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

struct returner_rig : parts_rig {
  returner_rig() { lay_chunks(2); }

  returner<config> back{parts, stitch};
  stream_index second = enter(two);

  /// Takes the block out of the map, as its owner does, and gives it back.
  void take_back(block& b, stream_index on) {
    REQUIRE(live.extract(b.begin) == &b);
    back.take_back(b, on);
  }
  /// A block on both chunks.
  block& stitched() {
    REQUIRE(live.reserve_one());
    block& b = *must(stitch.make(first, 2 * chunk_bytes, 512)).served;
    live.insert(b.begin, b);
    return b;
  }
};

}  // namespace

TEST_CASE("a block that only its stream used is free at once, under that stream's stamp") {
  returner_rig r;
  block& b = r.take(512);
  chunk& c = *b.first_chunk;
  SUBCASE("its own stream's use is no matter") { must(r.back.record(b, r.first)); }
  SUBCASE("none was recorded") {}
  auto const records = r.time->counts().records;
  r.take_back(b, r.first);
  CHECK(r.free() == 2 * chunk_bytes);
  CHECK(r.parts.space.usable(r.first, c, c.home, 512));
  CHECK_FALSE(r.parts.space.usable(r.second, c, c.home, 512));
  CHECK(r.time->counts().records == records);
}

TEST_CASE("a block freed after another stream's work is that stream's") {
  returner_rig r;
  block& b = r.take(512);
  chunk& c = *b.first_chunk;
  r.take_back(b, r.second);
  CHECK(r.parts.space.usable(r.second, c, c.home, 512));
  CHECK_FALSE(r.parts.space.usable(r.first, c, c.home, 512));
}

TEST_CASE("each other stream's use is recorded once") {
  returner_rig r;
  block& b = r.take(512);
  stream_index const third = r.enter(stream{3});
  for (stream_index const on : {r.second, third, r.first, r.second, third}) must(r.back.record(b, on));
  int uses = 0;
  for (use const* u = b.recorded; u != nullptr; u = u->next) ++uses;
  CHECK(uses == 2);
  r.take_back(b, r.first);
  must(r.order().synchronize());
  r.back.learn_passed();
}

TEST_CASE("recorded uses keep a freed block until all of them are over") {
  returner_rig r;
  stream_index const third = r.enter(stream{3});
  block& b = r.take(512);
  must(r.back.record(b, r.second));
  must(r.back.record(b, third));
  bytes const before = r.free();
  r.take_back(b, r.first);
  CHECK(r.free() == before);
  r.sound();
  SUBCASE("as fences tell") {
    must(r.order().fence_all(~tick{0}));
    r.back.learn_passed();
    CHECK(r.free() == before);
    r.time->finish_all();
    r.back.learn_passed();  // nobody has asked yet
    CHECK(r.free() == before);
    CHECK(must(r.order().poll()));
    r.back.learn_passed();
  }
  SUBCASE("or as a stream has waited for them") {
    auto const last = r.time->queued(stream{3});
    must(r.order().wait(r.first, r.second, r.order().latest(r.second)));
    r.back.learn_passed();
    CHECK(r.free() == before);
    CHECK(must(r.back.gather(r.first)));
    CHECK(r.time->ordered(last, one));
    CHECK(r.time->counts().waits == 2);
  }
  CHECK(r.free() == 2 * chunk_bytes);
  CHECK(b.recorded == nullptr);
  r.sound();
}

TEST_CASE("a stitch's block gives back what it took, and its mapping rests") {
  returner_rig r;
  block& b = r.stitched();
  CHECK(r.free() == 0);
  bool parked = false;
  SUBCASE("at once") {}
  SUBCASE("or when its uses are over") { parked = true; }
  if (parked) must(r.back.record(b, r.second));
  r.take_back(b, r.first);
  CHECK(r.parts.stitches.live() == (parked ? 1 : 0));
  must(r.order().synchronize());
  r.back.learn_passed();
  CHECK(r.free() == 2 * chunk_bytes);
  CHECK(r.parts.stitches.live() == 0);
  CHECK(r.parts.stitches.idle().count == 1);
  r.sound();
}

TEST_CASE("gathering brings all free memory to one stream, which waits for the others") {
  returner_rig r;
  block& mine = r.take(chunk_bytes);
  chunk& c = *mine.first_chunk;
  auto const work = r.time->queued(one);
  r.take_back(mine, r.first);
  CHECK_FALSE(r.parts.space.usable(r.second, c, c.home, chunk_bytes));
  CHECK(must(r.back.gather(r.second)));
  CHECK(r.parts.space.usable(r.second, c, c.home, chunk_bytes));
  CHECK(r.time->ordered(work, two));
  CHECK_FALSE(must(r.back.gather(r.second)));
  r.sound();
}

TEST_CASE("a stream that is being captured does without gathering") {
  returner_rig r;
  block& b = r.take(512);
  must(r.back.record(b, r.second));
  bytes const before = r.free();
  r.take_back(b, r.first);
  must(r.time->set_captured(two, true));
  CHECK_FALSE(must(r.back.gather(r.second)));
  CHECK(r.free() == before);
  r.sound();
  must(r.time->set_captured(two, false));
  CHECK(must(r.back.gather(r.second)));
  CHECK(r.free() == 2 * chunk_bytes);
}

TEST_CASE("with one stream there is nothing to gather") {
  parts_rig r;
  r.lay_chunks(1);
  returner<parts_rig::config> back(r.parts, r.stitch);
  CHECK_FALSE(must(back.gather(r.first)));
}
