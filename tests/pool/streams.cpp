/// What a pool does where several streams use its memory.

#include "gmlake/stitch/no_stitch.hpp"
#include "gmlake/stream/grow_before_waiting.hpp"
#include "tests/pool/rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};
constexpr stream c{3};

using growing_rig = rig<rig_config<simulated_streams>::with_wait<grow_before_waiting>>;

/// `later` is made to wait for what is queued on `earlier`, by the user.
void wait_for(simulated_timeline& time, stream later, stream earlier) {
  auto fence = must(time.record(earlier));
  must(time.wait(later, fence));
  time.release(fence);
}

}  // namespace

TEST_CASE("a program with one stream records no fence") {
  stream_rig r;
  for (int i = 0; i < 200; ++i) {
    auto const kept = r.holes(2, a);
    r.give(r.take(2 * chunk_bytes, a));
    r.give(kept);
  }
  CHECK(r.time->counts().records == 0);
  CHECK(r.stats().stitch_hits > 0);
}

TEST_CASE("a freed block goes to its own stream at once, and to another once its fence is reached") {
  growing_rig r;
  (void)r.take(small_block, b);
  address const p = r.take(chunk_bytes, a);
  r.give(p);
  address const other = r.take(chunk_bytes, b);
  CHECK(other != p);
  CHECK(r.take(chunk_bytes, a) == p);
  r.give(p);
  (void)r.pool().retire_stream(c);
  for (int i = 0; i < 64; ++i) r.give(r.take(small_block, a));  // a fence is recorded for many frees
  r.time->finish_all();
  CHECK(r.take(chunk_bytes, b) == p);
  CHECK(r.stats().device_waits == 0);
  CHECK(r.stats().host_waits == 0);
}

TEST_CASE("a stream waits on the device rather than grow") {
  stream_rig r;
  address const p = r.take(chunk_bytes, a);
  r.give(p);
  auto const point = r.time->queued(a);
  bytes const reserved = r.reserved();
  CHECK(r.take(chunk_bytes, b) == p);
  CHECK(r.reserved() == reserved);
  CHECK(r.time->ordered(point, b));
  CHECK(r.stats().device_waits == 1);
  CHECK(r.stats().host_waits == 0);
}

TEST_CASE("a stream grows rather than wait, until there is nothing left") {
  rig_options o;
  o.pool.limit = 2 * chunk_bytes;
  growing_rig r(o);
  address const p = r.take(chunk_bytes, a);
  r.give(p);
  CHECK(r.take(chunk_bytes, b) != p);
  CHECK(r.reserved() == 2 * chunk_bytes);
  CHECK(r.stats().device_waits == 0);
  CHECK(r.take(chunk_bytes, b) == p);
  CHECK(r.stats().device_waits == 1);
  CHECK(r.stats().host_waits == 0);
}

TEST_CASE("memory that is free for all is preferred to waiting") {
  stream_rig r;
  (void)r.take(small_block, b);
  address const p = r.take(chunk_bytes, a);
  address const q = r.take(chunk_bytes, a);
  r.give(p);
  must(r.pool().trim());  // the host knows that a is done with p
  r.give(r.take(chunk_bytes, b));
  r.give(q);
  CHECK(r.take(chunk_bytes, b) != q);
  CHECK(r.stats().device_waits == 0);
}

TEST_CASE("a stream that has waited for another gets its memory at once") {
  growing_rig r;
  address const p = r.take(chunk_bytes, a);
  address const q = r.take(chunk_bytes, a);
  r.give(p);
  r.pool().set_limit(r.reserved());
  CHECK(r.take(chunk_bytes, b) == p);  // for want of anything else
  auto const waits = r.stats().device_waits;
  CHECK(waits == 1);
  r.give(q);
  CHECK(r.take(chunk_bytes, b) == q);
  CHECK(r.stats().device_waits == 2);  // what was queued after the first wait has to be waited for anew
}

TEST_CASE("where streams' frees lie side by side, waiting joins them") {
  rig_options o;
  o.pool.limit = chunk_bytes;
  stream_rig r(o);
  address const p = r.take(half_chunk, a);
  address const q = r.take(half_chunk, b);
  r.give(p);
  r.give(q);
  CHECK(r.take(chunk_bytes, c) == std::min(p, q));
  r.sound();
}

TEST_CASE("the host waits where memory has to leave the device first") {
  rig_options o;
  o.pool.limit = 4 * chunk_bytes;
  rig<rig_config<simulated_streams>::with_stitch<no_stitch>> r(o);
  auto const kept = r.holes(2, a);
  (void)r.take(2 * chunk_bytes, a);  // the free chunks in another shape
  CHECK(r.stats().host_waits == 1);
  CHECK(r.reserved() == 4 * chunk_bytes);
}

TEST_CASE("a block freed after another stream's work is kept for that") {
  growing_rig r;
  (void)r.take(small_block, b);
  address const p = r.take(chunk_bytes, a);
  wait_for(*r.time, b, a);
  r.give(p, b);
  CHECK(r.take(chunk_bytes, a) != p);
  CHECK(r.take(chunk_bytes, b) == p);
}

TEST_CASE("recorded uses keep a block from its own stream until they are over") {
  growing_rig r;
  auto const kept = r.holes(2, a);
  bool stitched = false;
  SUBCASE("in the lake") {}
  SUBCASE("stitched") { stitched = true; }
  bytes const n = stitched ? 2 * chunk_bytes : chunk_bytes;
  address const p = r.take(n, a);
  CHECK(r.stats().stitches_live == (stitched ? 1 : 0));
  wait_for(*r.time, b, a);
  must(r.pool().record_stream(p, b));
  must(r.pool().record_stream(p, b));
  must(r.pool().record_stream(p, a));  // its own: no news
  r.give(p);
  r.sound();
  address const other = r.take(n, a);
  CHECK(other != p);
  CHECK_FALSE(r.device.beneath(other, n).empty());
  (void)r.trim();  // the host waits for both
  r.give(other);
  (void)r.trim();
  CHECK(r.stats().live.now == kept.size() * chunk_bytes);
  CHECK(r.reserved() == kept.size() * chunk_bytes);
}

TEST_CASE("a recorded use is waited for on the device where memory is short") {
  rig_options o;
  o.pool.limit = 2 * chunk_bytes;
  stream_rig r(o);
  address const p = r.take(2 * chunk_bytes, a);
  wait_for(*r.time, b, a);
  must(r.pool().record_stream(p, b));
  auto const point = r.time->queued(b);
  r.give(p);
  CHECK(r.take(2 * chunk_bytes, a) == p);
  CHECK(r.time->ordered(point, a));
  CHECK(r.stats().host_waits == 0);
}

TEST_CASE("a stream may be destroyed with blocks pending") {
  stream_rig r;
  address const p = r.take(chunk_bytes, a);
  address const q = r.take(chunk_bytes, a);
  (void)r.take(small_block, b);
  r.give(p);
  must(r.pool().retire_stream(a));
  must(r.time->destroy(a));
  r.give(q);  // freed afterwards: what was queued on it is covered too
  CHECK(r.take(2 * chunk_bytes, b) == std::min(p, q));
  CHECK(r.stats().host_waits == 0);
  CHECK(r.time->counts().device_syncs == 0);
  r.sound();
}

TEST_CASE("a stream destroyed without a word costs a wait for the device") {
  stream_rig r;
  address const p = r.take(chunk_bytes, a);
  r.give(p);
  must(r.time->destroy(a));
  CHECK(r.take(chunk_bytes, b) == p);
  CHECK(r.time->counts().device_syncs == 1);
  r.sound();
}

TEST_CASE("a retired stream's handle may be another stream's later") {
  growing_rig r;
  (void)r.take(small_block, b);
  address const p = r.take(chunk_bytes, a);
  r.give(p);
  must(r.pool().retire_stream(a));
  SUBCASE("while the old one's work is pending") {}
  SUBCASE("once it is done") { (void)r.trim(); }
  // From here on it is a new stream.
  address const q = r.take(chunk_bytes, a);
  auto const point = r.time->queued(a);
  r.give(q);
  address const other = r.take(chunk_bytes, b);
  CHECK(other != q);
  r.pool().set_limit(r.reserved());
  CHECK_FALSE(r.time->ordered(point, b));
  address const last = r.take(chunk_bytes, b);
  CHECK((last == p || last == q));
  if (last == q) CHECK(r.time->ordered(point, b));
  r.sound();
}

TEST_CASE("retired streams don't pile up") {
  stream_rig r;
  (void)r.take(small_block, stream{0});
  for (std::uintptr_t i = 1; i < 300; ++i) {
    address const p = r.take(chunk_bytes, stream{i});
    r.give(p);
    must(r.pool().retire_stream(stream{i}));
    must(r.time->destroy(stream{i}));
    r.time->finish_all();
  }
  CHECK(r.reserved() <= 2 * chunk_bytes + granule);
  CHECK(r.time->counts().live_fences < 16);
}

TEST_CASE("a stream that is being captured does without other streams' memory") {
  rig_options o;
  o.pool.limit = 2 * chunk_bytes;
  stream_rig r(o);
  address const p = r.take(chunk_bytes, a);
  (void)r.take(small_block, b);
  r.give(p);
  SUBCASE("by growing") {
    must(r.time->set_captured(b, true));
    r.pool().set_limit(8 * chunk_bytes);
    CHECK(r.take(chunk_bytes, b) != p);
  }
  SUBCASE("by an error, with an account") {
    must(r.time->set_captured(a, true));
    must(r.time->set_captured(b, true));
    auto const refused = r.pool().allocate(2 * chunk_bytes - half_chunk, b);
    fails_with(refused, errc::out_of_memory);
    CHECK(refused.error().account.limit == 2 * chunk_bytes);
    must(r.time->set_captured(a, false));
    must(r.time->set_captured(b, false));
    r.sound();
    CHECK(r.take(chunk_bytes, b) == p);
  }
}

TEST_CASE("fences are released, as many as were recorded, and none is misused") {
  for (std::uint64_t lag : {std::uint64_t{3}, timeline_options::endless}) {
    rig_options o;
    o.time.lag = lag;
    o.cache.stitches = 2;
    stream_rig r(o);
    for (int i = 0; i < 400; ++i) {
      auto const kept = r.holes(2, stream{static_cast<std::uintptr_t>(i % 3)});
      r.give(r.take(2 * chunk_bytes, stream{static_cast<std::uintptr_t>(i % 2)}));
      r.give(kept);
      r.time->advance();
    }
    r.sound();
    if (lag == 3) CHECK(r.time->counts().live_fences < 100);
    r.destroy();
    CHECK(r.time->counts().live_fences == 0);
    CHECK(r.time->counts().misuses == 0);
  }
}

TEST_CASE("idle stitches leave the cache once their last use is over, with one stream or several") {
  for (std::uintptr_t streams : {1u, 2u}) {
    CAPTURE(streams);
    rig_options o;
    o.cache.stitches = 2;
    o.time.lag = 10;
    stream_rig r(o);
    (void)r.take(small_block, stream{streams});
    auto const kept = r.holes(8, a);
    for (bytes i = 0; i < 60; ++i) {
      std::vector<address> views;
      for (bytes k = 0; k < 2; ++k) views.push_back(r.take((2 + i % 3) * chunk_bytes - (i % 5) * granule, a));
      r.give(views);
      r.time->advance(20);
    }
    CHECK(r.stats().stitches_cached <= 4);
    CHECK(r.stats().stitches_made > 4);
    CHECK(r.time->counts().live_fences < 20);
    CHECK(r.stats().host_waits == 0);
  }
}
