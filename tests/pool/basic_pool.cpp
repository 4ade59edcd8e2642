#include "gmlake/pool/basic_pool.hpp"

#include <cstring>
#include <limits>

#include "gmlake/core/null_mutex.hpp"
#include "gmlake/observe/both.hpp"
#include "gmlake/observe/event_log.hpp"
#include "gmlake/observe/no_observer.hpp"
#include "gmlake/split/tlsf.hpp"
#include "gmlake/stitch/no_stitch.hpp"
#include "tests/pool/rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE("size 0 gives a block like any other") {
  plain_rig r;
  address const a = r.take(0);
  address const b = r.take(0);
  CHECK(a != b);
  CHECK(r.stats().requested.now == 0);
  CHECK(r.stats().live.now == 2 * block_alignment);
  r.give(a);
  r.give(b);
  CHECK(r.stats().live.now == 0);
}

TEST_CASE("every block is aligned to 512, or as asked for") {
  plain_rig r;
  for (bytes alignment = 1; alignment <= 8 * chunk_bytes; alignment *= 2) {
    CAPTURE(alignment);
    for (bytes n : {bytes{0}, small_block, quarter_chunk + 1, 2 * chunk_bytes}) {
      address const a = r.take({.size = n, .alignment = alignment});
      CHECK(is_aligned(a, std::max(alignment, block_alignment)));
      CHECK_FALSE(r.device.beneath(a, std::max(n, bytes{1})).empty());
    }
  }
}

TEST_CASE("a stitch is aligned as asked for, above the granule too") {
  plain_rig r;
  auto const kept = r.holes(6);
  for (bytes alignment : {bytes{512}, granule, 16 * chunk_bytes}) {
    CAPTURE(alignment);
    auto const before = r.stats();
    address const a = r.take({.size = 3 * chunk_bytes, .alignment = alignment});
    CHECK(r.stats().stitches_live == 1);
    CHECK(r.reserved() == before.reserved.now);
    CHECK(is_aligned(a, alignment));
    r.give(a);
  }
}

TEST_CASE("an alignment that is no power of two is refused, whether or not a block is free") {
  plain_rig r;
  for (bytes alignment : {bytes{0}, bytes{3}, bytes{511}, bytes{768}, granule + 1}) {
    CAPTURE(alignment);
    fails_with(r.pool().allocate({.size = small_block, .alignment = alignment}), errc::invalid_argument);
  }
  r.give(r.take(small_block));
  for (bytes alignment : {bytes{0}, bytes{3}, bytes{511}, bytes{768}, granule + 1}) {
    CAPTURE(alignment);
    fails_with(r.pool().allocate({.size = small_block, .alignment = alignment}), errc::invalid_argument);
  }
}

TEST_CASE("a size that no device has is out of memory, on every path") {
  rig_options o;
  o.capacity = 8 * chunk_bytes;
  plain_rig r(o);
  r.give(r.take(chunk_bytes));
  constexpr bytes most = std::numeric_limits<bytes>::max();
  for (bytes n : {most, most - 511, most - 512, most / 2, (bytes{1} << 48) + 1}) {
    CAPTURE(n);
    for (placement where : {placement::anywhere, placement::own_chunks, placement::one_handle}) {
      auto const got = r.pool().allocate({.size = n, .where = where});
      fails_with(got, errc::out_of_memory);
      CHECK(got.error().account.requested == n);
    }
    fails_with(r.pool().allocate({.size = n, .alignment = chunk_bytes}), errc::out_of_memory);
  }
}

TEST_CASE("what was not handed out can't be given back") {
  plain_rig r;
  address const a = r.take(quarter_chunk);
  auto const kept = r.holes(3);
  address const stitched = r.take(3 * chunk_bytes);
  REQUIRE(r.stats().stitches_live == 1);
  for (address wrong : {address{}, address{1}, a + 1, a + 512, stitched + 512, stitched + chunk_bytes,
                        stitched + 3 * chunk_bytes, address{std::numeric_limits<std::uintptr_t>::max()}}) {
    CAPTURE(to_integer(wrong));
    fails_with(r.pool().deallocate(wrong), errc::unknown_pointer);
    fails_with(r.pool().deallocate(wrong, stream{7}), errc::unknown_pointer);
    fails_with(r.pool().record_stream(wrong, stream{7}), errc::unknown_pointer);
  }
  CHECK(r.stats().deallocations == 3);
}

TEST_CASE("a block can be given back once") {
  plain_rig r;
  SUBCASE("in the lake") {
    address const a = r.take(quarter_chunk);
    address const b = r.take(quarter_chunk);
    r.give(a);
    fails_with(r.pool().deallocate(a), errc::double_free);
    fails_with(r.pool().record_stream(a, stream{1}), errc::double_free);
    r.give(b);
    fails_with(r.pool().deallocate(b), errc::double_free);
  }
  SUBCASE("stitched") {
    auto const kept = r.holes(3);
    address const a = r.take(3 * chunk_bytes);
    r.give(a);
    fails_with(r.pool().deallocate(a), errc::double_free);
    fails_with(r.pool().record_stream(a, stream{1}), errc::double_free);
  }
}

TEST_CASE("a block can be given back once while other streams' uses keep it parked") {
  stream_rig r;
  address const plain = r.take(quarter_chunk, stream{1});
  auto const kept = r.holes(3, stream{1});
  address const stitched = r.take(3 * chunk_bytes, stream{1});
  REQUIRE(r.stats().stitches_live == 1);
  for (address a : {plain, stitched}) {
    must(r.pool().record_stream(a, stream{2}));
    r.give(a);
    fails_with(r.pool().deallocate(a), errc::double_free);
  }
  r.sound();
}

TEST_CASE("own chunks are shared with no other block") {
  plain_rig r;
  r.give(r.take(8 * chunk_bytes));
  address const a = r.take({.size = 2 * chunk_bytes + 1, .where = placement::own_chunks});
  auto const others = r.take_many(40, quarter_chunk);
  pool_snapshot const shot = r.pool().snapshot();
  bytes const whole = 2 * chunk_bytes + granule;
  CHECK(backed(shot, a, whole) == whole);
  for (chunk_snapshot const& c : shot.chunks) {
    if (c.home + c.size <= a || c.home >= a + whole) continue;
    CHECK(c.home >= a);
    CHECK(c.home + c.size <= a + whole);
  }
  for (address b : others) CHECK((b + quarter_chunk <= a || b >= a + whole));
}

TEST_CASE("own chunks and one handle are made anew only if no such block was freed") {
  plain_rig r;
  for (placement where : {placement::own_chunks, placement::one_handle}) {
    address const a = r.take({.size = 3 * chunk_bytes, .where = where});
    bytes const reserved = r.reserved();
    r.give(a);
    CHECK(r.take({.size = 3 * chunk_bytes, .where = where}) == a);
    CHECK(r.reserved() == reserved);
  }
}

TEST_CASE("one handle is one handle") {
  plain_rig r;
  auto const kept = r.holes(4);
  for (bytes n : {bytes{0}, small_block, granule, 2 * chunk_bytes + 1}) {
    CAPTURE(n);
    address const a = r.take({.size = n, .where = placement::one_handle});
    auto const pieces = r.device.beneath(a, align_up(std::max(n, bytes{1}), granule));
    REQUIRE(pieces.size() == 1);
    CHECK(pieces[0].offset == 0);
    pool_snapshot const shot = r.pool().snapshot();
    chunk_snapshot const* const c = chunk_of(shot, a, std::max(n, bytes{1}));
    REQUIRE(c != nullptr);
    CHECK(c->size == align_up(std::max(n, bytes{1}), granule));
  }
  fails_with(r.pool().allocate({.size = 1, .alignment = 2 * granule, .where = placement::one_handle}),
             errc::invalid_argument);
}

TEST_CASE("no more is held than the limit, and what is asked beyond it is refused with an account") {
  rig_options o;
  o.pool.limit = 4 * chunk_bytes + half_chunk;
  plain_rig r(o);
  auto const kept = r.take_many(4, chunk_bytes);
  address const last = r.take(half_chunk);  // in a chunk no larger than what is left
  CHECK(r.reserved() == o.pool.limit);
  auto const refused = r.pool().allocate(half_chunk);
  fails_with(refused, errc::out_of_memory);
  memory_account const& account = refused.error().account;
  CHECK(account.requested == half_chunk);
  CHECK(account.reserved == o.pool.limit);
  CHECK(account.live == o.pool.limit);
  CHECK(account.free == 0);
  CHECK(account.largest_contiguous == 0);
  CHECK(account.limit == o.pool.limit);
  CHECK_FALSE(account.fragmented());
  CHECK(r.stats().failures == 1);
  r.give(last);
  (void)r.take(half_chunk);
}

TEST_CASE("the account tells fragmentation from exhaustion") {
  rig_options o;
  o.pool.limit = 4 * chunk_bytes;
  rig<rig_config<one_stream>::with_stitch<no_stitch>> r(o);
  auto const kept = r.checker(4);
  auto const refused = r.pool().allocate(chunk_bytes);
  fails_with(refused, errc::out_of_memory);
  memory_account const& account = refused.error().account;
  CHECK(account.free == 2 * chunk_bytes);
  CHECK(account.live == 2 * chunk_bytes);
  CHECK(account.largest_contiguous == half_chunk);
  CHECK(account.fragmented());
}

TEST_CASE("the limit can be changed at any time") {
  plain_rig r;
  auto const kept = r.take_many(4, chunk_bytes);
  r.pool().set_limit(2 * chunk_bytes);
  CHECK(r.reserved() == 4 * chunk_bytes);
  fails_with(r.pool().allocate(chunk_bytes), errc::out_of_memory);
  r.give(kept[0]);
  CHECK(r.take(chunk_bytes) == kept[0]);  // what is held already may be used
  r.give(kept);
  CHECK(r.trim() == 4 * chunk_bytes);
  (void)r.take_many(2, chunk_bytes);
  fails_with(r.pool().allocate(chunk_bytes), errc::out_of_memory);
  r.pool().set_limit(3 * chunk_bytes);
  (void)r.take(chunk_bytes);
}

TEST_CASE("free chunks in the wrong shape are released and created again") {
  rig_options o;
  o.pool.limit = 8 * chunk_bytes;
  rig<rig_config<one_stream>::with_stitch<no_stitch>> r(o);
  auto const kept = r.holes(4);
  bytes const n = 4 * chunk_bytes;
  address const a = r.take(n);
  CHECK(r.reserved() == o.pool.limit);
  CHECK(r.device.beneath(a, n).size() == 4);
  r.sound();
}

TEST_CASE("of idle stitches only those go that map what is created again") {
  rig_options o;
  o.pool.limit = 8 * chunk_bytes;
  plain_rig r(o);
  auto const kept = r.holes(4);
  address const one = r.take(2 * chunk_bytes);
  address const other = r.take(2 * chunk_bytes);
  r.give(one);
  r.give(other);
  REQUIRE(r.stats().stitches_cached == 2);
  (void)r.take(small_block);  // for which there is no chunk
  CHECK(r.stats().stitches_cached == 1);
  CHECK(r.reserved() <= 8 * chunk_bytes);
  auto const calls = r.stats().driver[driver_call::map].calls;
  (void)r.take(2 * chunk_bytes);
  CHECK(r.stats().driver[driver_call::map].calls == calls);
  r.sound();
}

TEST_CASE("other processes may take memory at any time and give it back") {
  plain_rig r;
  auto const kept = r.holes(2);
  r.device.device().set_capacity(2 * chunk_bytes);  // below what is created
  (void)r.take(chunk_bytes);
  (void)r.take(chunk_bytes);
  fails_with(r.pool().allocate(chunk_bytes), errc::out_of_memory);
  r.sound();
  r.device.device().set_capacity(5 * chunk_bytes);
  (void)r.take(chunk_bytes);
  fails_with(r.pool().allocate(half_chunk), errc::out_of_memory);
}

TEST_CASE("where the device can't give a whole chunk, what is missing is created") {
  rig_options o;
  o.capacity = 2 * chunk_bytes + quarter_chunk;
  plain_rig r(o);
  auto const kept = r.take_many(2, chunk_bytes);
  (void)r.take(quarter_chunk);
  CHECK(r.reserved() == o.capacity);
}

TEST_CASE("trim releases everything free, and nothing else") {
  plain_rig r;
  auto const kept = r.checker(3);
  auto const chunks = r.holes(3);
  r.give(r.take(3 * chunk_bytes));
  address const small = r.take(small_block);
  r.give(r.take({.size = 2 * chunk_bytes, .where = placement::own_chunks}));
  bytes const before = r.reserved();
  CHECK(r.trim() == 5 * chunk_bytes);
  CHECK(r.reserved() == before - 5 * chunk_bytes);
  CHECK(r.stats().stitches_cached == 0);
  r.sound();
  r.give(kept);
  r.give(chunks);
  r.give(small);
  (void)r.trim();
  CHECK(r.reserved() == 0);
  CHECK(r.stats().mapped.now == 0);
  CHECK(r.device.device().live_handles() == 0);
  CHECK(r.device.mappings.empty());
  (void)r.take(chunk_bytes);
}

TEST_CASE("a pool that is destroyed leaves nothing behind, whatever is live") {
  for (bool const free_first : {false, true}) {
    plain_rig r;
    auto kept = r.checker(3);
    for (address a : r.holes(3)) kept.push_back(a);
    kept.push_back(r.take(3 * chunk_bytes));
    kept.push_back(r.take(small_block));
    kept.push_back(r.take({.size = chunk_bytes, .where = placement::one_handle}));
    if (free_first) r.give(kept);
    CHECK_FALSE(r.device.idle());
    r.destroy();
  }
}

TEST_CASE("small blocks are kept apart from large ones") {
  plain_rig r;
  std::vector<address> large;
  for (int i = 0; i < 4; ++i) {
    large.push_back(r.take(chunk_bytes));
    (void)r.take(small_block);
  }
  bytes const reserved = r.reserved();
  CHECK(reserved == 4 * chunk_bytes + granule);
  r.give(large);
  (void)r.take(4 * chunk_bytes);
  CHECK(r.reserved() == reserved);
  CHECK(r.stats().stitches_made == 0);
}

TEST_CASE("where no contiguous block fits, whole chunks are stitched") {
  plain_rig r;
  auto const kept = r.holes(3);
  bytes const reserved = r.reserved();
  address const a = r.take(3 * chunk_bytes - quarter_chunk);
  CHECK(r.reserved() == reserved);
  CHECK(r.stats().stitches_made == 1);
  CHECK(r.stats().stitches_live == 1);
  CHECK(r.stats().mapped.now == reserved + 3 * chunk_bytes);
  pool_snapshot const shot = r.pool().snapshot();
  REQUIRE(shot.stitches.size() == 1);
  CHECK(shot.stitches[0].begin == a);
  CHECK(shot.stitches[0].requested == 3 * chunk_bytes - quarter_chunk);
  CHECK(shot.stitches[0].extents.size() == 3);
  // What sticks out at the end of the view is still free.
  (void)r.take(quarter_chunk);
  CHECK(r.reserved() == reserved);
}

TEST_CASE("only what is missing is created, and stitched with what is there") {
  plain_rig r;
  auto const kept = r.holes(3);
  bytes const reserved = r.reserved();
  (void)r.take(4 * chunk_bytes);
  CHECK(r.reserved() == reserved + chunk_bytes);
  CHECK(r.stats().stitches_live == 1);
}

TEST_CASE("a freed stitch serves its size again, and smaller ones, without a driver call") {
  plain_rig r;
  auto const kept = r.holes(3);
  address const a = r.take(3 * chunk_bytes);
  r.give(a);
  CHECK(r.stats().stitches_cached == 1);
  auto const calls = r.device.calls.calls();
  CHECK(r.take(3 * chunk_bytes) == a);
  CHECK(r.stats().stitch_hits == 1);
  r.give(a);
  CHECK(r.take(2 * chunk_bytes) == a);
  CHECK(r.stats().stitch_hits == 2);
  CHECK(r.device.calls.calls() == calls);
  // The rest of its memory is free meanwhile.
  (void)r.take(chunk_bytes);
  CHECK(r.device.calls.calls() == calls);
}

TEST_CASE("a cached stitch is not used while some of its memory is") {
  plain_rig r;
  auto const kept = r.holes(3);
  bytes const reserved = r.reserved();
  r.give(r.take(3 * chunk_bytes));
  address const in_the_way = r.take(quarter_chunk);
  REQUIRE(r.reserved() == reserved);
  (void)r.take(3 * chunk_bytes);
  CHECK(r.stats().stitch_hits == 0);
  CHECK(r.reserved() > reserved);
  r.give(in_the_way);
  r.sound();
}

TEST_CASE("a stitch begins with a chunk's free end or ends with one's free beginning") {
  plain_rig r;
  std::vector<address> const halves = r.take_many(2, half_chunk);
  auto const kept = r.holes(2);
  bytes const reserved = r.reserved();
  SUBCASE("end") {
    r.give(halves[1]);
    address const a = r.take(2 * chunk_bytes + quarter_chunk);
    pool_snapshot const shot = r.pool().snapshot();
    REQUIRE(shot.stitches.size() == 1);
    CHECK(a == shot.stitches[0].begin + 3 * quarter_chunk);
    CHECK(r.device.beneath(a, quarter_chunk)[0].offset == 3 * quarter_chunk);
  }
  SUBCASE("beginning") {
    r.give(halves[0]);
    address const a = r.take(2 * chunk_bytes + quarter_chunk);
    pool_snapshot const shot = r.pool().snapshot();
    REQUIRE(shot.stitches.size() == 1);
    CHECK(a == shot.stitches[0].begin);
    CHECK(shot.stitches[0].extents.back().home == halves[0]);
  }
  CHECK(r.stats().stitches_live == 1);
  CHECK(r.reserved() == reserved);
}

TEST_CASE("a chunk that a stitch maps first and last is never served twice") {
  plain_rig r;
  std::vector<address> const quarters = r.take_many(4, quarter_chunk);
  auto const kept = r.take_many(2, chunk_bytes);
  bytes const reserved = r.reserved();
  r.give(quarters[0]);
  r.give(quarters[3]);
  address const a = r.take(half_chunk);
  REQUIRE(r.reserved() == reserved);
  REQUIRE(r.pool().snapshot().stitches[0].extents.size() == 2);
  r.give(a);
  r.give(quarters[1]);
  r.give(quarters[2]);
  // The idle stitch's view is long enough, but shows some of the chunk twice.
  bytes const more = chunk_bytes + granule;
  address const b = r.take(more);
  auto const pieces = r.device.beneath(b, more);
  for (auto const& p : pieces) {
    for (auto const& q : pieces) {
      bool const same = &p == &q;
      CHECK((same || p.memory != q.memory || p.offset + p.size <= q.offset || q.offset + q.size <= p.offset));
    }
  }
}

TEST_CASE("a stitch reads and writes as one contiguous block, and as its chunks at home") {
  rig_options o;
  o.host_memory = true;
  plain_rig r(o);
  auto const kept = r.holes(3);
  bytes const n = 3 * chunk_bytes - 1;
  address const a = r.take(n);
  REQUIRE(r.stats().stitches_live == 1);
  auto* const view = static_cast<unsigned char*>(to_pointer(a));
  for (bytes i = 0; i < n; ++i) view[i] = static_cast<unsigned char>(i * 7 + i / chunk_bytes);
  pool_snapshot const shot = r.pool().snapshot();
  bytes at = 0;
  for (extent_snapshot const& e : shot.stitches[0].extents) {
    CHECK(std::memcmp(to_pointer(e.home), view + at, std::min(e.size, n - at)) == 0);
    at += e.size;
  }
  r.give(a);
  CHECK(r.take(n) == a);
  for (bytes i = 0; i < n; ++i) {
    if (view[i] != static_cast<unsigned char>(i * 7 + i / chunk_bytes)) FAIL("byte " << i << " has changed");
  }
}

TEST_CASE("idle stitches beyond the budgets are unmapped, the least recently used first") {
  rig_options o;
  SUBCASE("by number") { o.cache.stitches = 2; }
  SUBCASE("by mappings") { o.cache.mappings = 9; }
  SUBCASE("by addresses") { o.cache.addresses = 9 * chunk_bytes; }
  plain_rig r(o);
  auto const kept = r.holes(9);
  // At once, so that none is made of another's memory.
  std::vector<address> const views{r.take(3 * chunk_bytes), r.take(3 * chunk_bytes - granule),
                                   r.take(3 * chunk_bytes - 2 * granule)};
  REQUIRE(r.stats().stitches_live == 3);
  r.give(views[1]);
  r.give(views[0]);
  bool const by_number = o.cache.stitches == 2;
  CHECK(r.stats().stitches_cached == 2);
  r.give(views[2]);
  CHECK(r.stats().stitches_cached == (by_number ? 2 : 3));
  if (!by_number) {
    auto const more = r.holes(1);
    r.give(r.take(10 * chunk_bytes));
  }
  CHECK(r.stats().mapped.now == r.reserved() + [&] {
    bytes sum = 0;
    for (stitch_snapshot const& s : r.pool().snapshot().stitches) sum += s.size;
    return sum;
  }());
  for (stitch_snapshot const& s : r.pool().snapshot().stitches) CHECK(s.begin != views[1]);
}

TEST_CASE("a callback that frees, trims and allocates is called unlocked and helps") {
  rig_options o;
  o.pool.limit = 4 * chunk_bytes;
  plain_rig r(o);
  auto kept = r.take_many(4, chunk_bytes);
  int asked = 0;
  r.pool().on_out_of_memory([&](memory_account const& account) {
    ++asked;
    CHECK(account.requested == 2 * chunk_bytes);
    CHECK(account.live == 4 * chunk_bytes);
    r.give(kept[0]);
    r.give(kept[1]);
    CHECK(r.trim() == 2 * chunk_bytes);
    r.give(r.take(small_block));
    CHECK(r.pool().validate() == nullptr);
    return true;
  });
  (void)r.take(2 * chunk_bytes);
  CHECK(asked == 1);
  CHECK(r.stats().failures == 0);
}

TEST_CASE("callbacks are all asked, in order, and given up when none has help or they keep promising") {
  rig_options o;
  o.pool.limit = chunk_bytes;
  plain_rig r(o);
  std::vector<int> asked;
  bool promise = false;
  for (int i : {1, 2}) {
    r.pool().on_out_of_memory([&asked, &promise, i](memory_account const&) {
      asked.push_back(i);
      return promise && i == 1;
    });
  }
  auto const refused = r.pool().allocate(2 * chunk_bytes);
  fails_with(refused, errc::out_of_memory);
  CHECK(refused.error().account.requested == 2 * chunk_bytes);
  CHECK(asked == std::vector<int>{1, 2});
  CHECK(r.stats().failures == 1);
  promise = true;
  fails_with(r.pool().allocate(2 * chunk_bytes), errc::out_of_memory);
  CHECK(asked.size() < 100);
  CHECK(r.stats().failures == 2);
  // The user's own mistakes are not asked about.
  asked.clear();
  fails_with(r.pool().allocate({.size = 1, .alignment = 3}), errc::invalid_argument);
  CHECK(asked.empty());
}

TEST_CASE("a callback may run out of memory itself") {
  rig_options o;
  o.pool.limit = chunk_bytes;
  plain_rig r(o);
  int depth = 0;
  r.pool().on_out_of_memory([&](memory_account const&) {
    if (++depth == 1) fails_with(r.pool().allocate(3 * chunk_bytes), errc::out_of_memory);
    return false;
  });
  fails_with(r.pool().allocate(2 * chunk_bytes), errc::out_of_memory);
  CHECK(depth == 2);
}

TEST_CASE("statistics count what was done, and keep the peaks") {
  plain_rig r;
  address const a = r.take(quarter_chunk - 100);
  address const b = r.take(quarter_chunk);
  pool_stats s = r.stats();
  CHECK(s.requested.now == half_chunk - 100);
  CHECK(s.live.now == half_chunk);
  CHECK(s.reserved.now == chunk_bytes);
  CHECK(s.mapped.now == chunk_bytes);
  CHECK(s.driver[driver_call::create].calls == 1);
  CHECK(s.driver[driver_call::map].calls == 1);
  CHECK(s.driver.total().calls == r.device.calls.calls());
  r.give(a);
  r.give(b);
  (void)r.trim();
  s = r.stats();
  CHECK(s.requested.now == 0);
  CHECK(s.requested.peak == half_chunk - 100);
  CHECK(s.live.peak == half_chunk);
  CHECK(s.reserved.now == 0);
  CHECK(s.reserved.peak == chunk_bytes);
  CHECK(s.mapped.peak == chunk_bytes);
  CHECK(s.allocations == 2);
  CHECK(s.deallocations == 2);
  CHECK(s.host_waits == 0);
  CHECK(s.device_waits == 0);
  r.pool().observe([](counters& c) { c.reset_peaks(); });
  CHECK(r.stats().reserved.peak == 0);
}

TEST_CASE("a snapshot shows every block, chunk and stitch") {
  plain_rig r;
  address const small = r.take(small_block - 1);
  auto const kept = r.holes(2);
  address const stitched = r.take(2 * chunk_bytes);
  pool_snapshot const shot = r.pool().snapshot();
  CHECK(shot.chunks.size() == 5);
  auto const block_at = [&](address a) {
    auto const found = std::ranges::find(shot.blocks, a, &block_snapshot::begin);
    REQUIRE(found != shot.blocks.end());
    return *found;
  };
  CHECK(block_at(small).requested == small_block - 1);
  CHECK(block_at(small).size == small_block);
  CHECK(block_at(small).state == block_state::live);
  for (address a : kept) CHECK(block_at(a).state == block_state::live);
  REQUIRE(shot.stitches.size() == 1);
  CHECK(shot.stitches[0].begin == stitched);
  CHECK(shot.stitches[0].live);
  for (extent_snapshot const& e : shot.stitches[0].extents) CHECK(block_at(e.home).state == block_state::taken);
  r.sound();
}

TEST_CASE("an operation needs no more nodes than it has made sure of") {
  // Nodes come in pages: whatever is left on a page, the operation must not find it empty half-way.
  for (std::size_t blocks = 200; blocks < 300; ++blocks) {
    CAPTURE(blocks);
    rig_options o;
    o.pool.limit = 16 * chunk_bytes;
    rig<rig_config<one_stream>::with_stitch<no_stitch>> plain(o);
    plain_rig stitching(o);
    auto const scene = [blocks](auto& r) {
      auto const kept = r.holes(3);
      auto const small = r.take_many(blocks, 1);
      (void)r.take({.size = 3 * chunk_bytes, .alignment = 4 * granule});
      (void)r.take({.size = 4 * chunk_bytes, .alignment = 4 * granule});
      (void)r.pool().allocate(8 * chunk_bytes);
      r.give(small);
      (void)r.trim();
      r.sound();
    };
    scene(plain);
    scene(stitching);
  }
}

TEST_CASE("a block in the middle of a new chunk needs three nodes, and finds them") {
  for (std::size_t blocks = 200; blocks < 600; ++blocks) {
    CAPTURE(blocks);
    plain_rig r;
    auto const small = r.take_many(blocks, 1);  // first, so that the next range begins beside a large alignment
    address const p = r.take({.size = quarter_chunk, .alignment = half_chunk});
    REQUIRE(p > r.pool().snapshot().chunks.back().home);
  }
}

TEST_CASE("what TLSF overlooks in a size's own class does not keep the pool from growing") {
  rig<rig_config<one_stream>::with_stitch<no_stitch>::with_split<tlsf>> r;
  constexpr bytes near = 497_KiB;  // of one class with what is left at the range's end
  address const p = r.take(near);
  (void)r.take(27_KiB);
  r.give(p);
  (void)r.take(near + 1024);
  CHECK(r.reserved() <= 2 * chunk_bytes);
}

TEST_CASE("what TLSF grows at the range's end is found") {
  rig<rig_config<one_stream>::with_stitch<no_stitch>::with_split<tlsf>> r;
  address const before = r.take(32 * chunk_bytes + half_chunk);
  (void)r.take(3 * quarter_chunk);
  address const end = r.take(33 * chunk_bytes - quarter_chunk);
  r.give(end);
  r.give(before);
  CHECK(r.take(33 * chunk_bytes + quarter_chunk) == end);  // grown by a chunk, and of the same class as before
  CHECK(r.reserved() == 67 * chunk_bytes);
}

TEST_CASE("a pool of one thread needs no lock, and one that nobody observes still counts what it holds") {
  rig<rig_config<one_stream>::with_mutex<null_mutex>::with_observer<no_observer>> r;
  address const a = r.take(chunk_bytes);
  CHECK(r.stats().reserved.now == chunk_bytes);
  CHECK(r.stats().driver[driver_call::create].calls == 1);
  r.give(a);
  CHECK(r.trim() == chunk_bytes);
  CHECK(r.stats().reserved.now == 0);
  CHECK(r.pool().validate() == nullptr);
  r.pool().set_limit(0);
  r.pool().on_out_of_memory([](memory_account const&) { return false; });
  fails_with(r.pool().allocate(1), errc::out_of_memory);
  r.destroy();
}

TEST_CASE("two observers see the same") {
  rig<rig_config<one_stream>::with_observer<both<counters, event_log>>> r;
  address const a = r.take(quarter_chunk - 1, stream{5});
  r.give(a);
  CHECK(r.stats().allocations == 1);
  r.pool().observe([&](both<counters, event_log>& o) {
    REQUIRE(o.second().events().size() == 2);
    logged_event const& first = o.second().events()[0];
    CHECK(first.what == logged_event::kind::allocated);
    CHECK(first.at == a);
    CHECK(first.requested == quarter_chunk - 1);
    CHECK(first.size == quarter_chunk);
    CHECK(first.on == stream{5});
    CHECK(o.second().events()[1].what == logged_event::kind::deallocated);
  });
}

TEST_CASE("what is left of a range or a hole and smaller than a chunk is left, also where that is no power of two") {
  using config = pool_config<simulated>::with_growth<fixed_chunks>::with_stitch<no_stitch>;
  basic_pool<config> pool(simulated({.granularity = granule}),
                          {.limit = 5 * granule, .small_limit = 0, .home_addresses = 10 * granule},
                          {.growth = fixed_chunks(3 * granule)});
  address const first = must(pool.allocate(3 * granule));
  address const second = must(pool.allocate(2 * granule));  // on a smaller chunk, at the limit
  pool.set_limit(~bytes{0});
  address const third = must(pool.allocate(3 * granule));  // behind it, less than a chunk is left of the range
  must(pool.deallocate(second));
  REQUIRE(must(pool.trim()) == 2 * granule);
  address const fourth = must(pool.allocate(granule));
  CHECK((fourth < first || fourth >= third + 3 * granule));
  CHECK(pool.stats().reserved.now == 9 * granule);
  char const* const fault = pool.validate();
  CHECK_MESSAGE(fault == nullptr, fault);
}
