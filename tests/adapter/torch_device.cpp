#include "gmlake/adapter/torch_device.hpp"

#include <thread>

#include "tests/adapter/torch_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};
constexpr stream c{3};
constexpr torch_pool_id main_pool{};
constexpr torch_pool_id p{0, 1};
constexpr torch_pool_id q{0, 2};

[[nodiscard]] torch_rig_options limited(bytes limit) {
  torch_rig_options o;
  o.settings.limit = limit;
  return o;
}

/// A capture on `s` into the pool: begun, and known to be one.
[[nodiscard]] address capture(torch_rig& r, torch_pool_id id, stream s, bytes n = mib) {
  r.gpu.set_captured(s, true);
  REQUIRE(r.device().begin(id, only({s})));
  return r.take(n, s);
}
void end_capture(torch_rig& r, torch_pool_id id, stream s) {
  REQUIRE(r.device().end(id));
  r.gpu.set_captured(s, false);
}

}  // namespace

// ---- routing
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("without a private pool, everything comes from the main one") {
  torch_rig r;
  for (stream s : {stream{}, a, b}) {
    address const x = r.take(3 * mib, s);
    CHECK(r.home(x) == main_pool);
    r.give(x);
  }
  CHECK(r.pools() == 1);
  CHECK(r.device().pool(main_pool) == &r.device().main());
  CHECK(r.device().pool(p) == nullptr);
  CHECK_FALSE(r.device().paused());
  r.destroy();
}

TEST_CASE("while a context is open, the requests that its filter accepts come from its pool, and no others") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a, c})));
  address const x = r.take(mib, a);
  address const y = r.take(mib, b);
  address const z = r.take(mib, c);
  CHECK(r.home(x) == p);
  CHECK(r.home(y) == main_pool);
  CHECK(r.home(z) == p);
  REQUIRE(r.device().end(p));
  address const after = r.take(mib, a);
  CHECK(r.home(after) == main_pool);
  CHECK(r.pools() == 2);
  for (address one : {x, y, z, after}) r.give(one);
}

TEST_CASE("of nested contexts the innermost that accepts a request serves it") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a, b})));
  REQUIRE(r.device().begin(q, only({b, c})));
  CHECK(r.home(r.take(mib, a)) == p);
  CHECK(r.home(r.take(mib, b)) == q);
  CHECK(r.home(r.take(mib, c)) == q);
  CHECK(r.home(r.take(mib, stream{4})) == main_pool);
  REQUIRE(r.device().end(q));
  CHECK(r.home(r.take(mib, b)) == p);
  CHECK(r.home(r.take(mib, c)) == main_pool);
  REQUIRE(r.device().begin(q, only({b})));
  REQUIRE(r.device().end(p));  // the outer one first
  CHECK(r.home(r.take(mib, b)) == q);
  CHECK(r.home(r.take(mib, a)) == main_pool);
  REQUIRE(r.device().end(q));
}

TEST_CASE("a context is opened once and closed once") {
  torch_rig r;
  CHECK_FALSE(r.device().end(p));
  CHECK(r.device().begin(p, only({a})));
  CHECK_FALSE(r.device().begin(p, only({b})));
  CHECK(r.device().uses(p) == 1);
  CHECK_FALSE(r.device().end(q));
  CHECK(r.device().end(p));
  CHECK_FALSE(r.device().end(p));
  CHECK_FALSE(r.device().paused());
}

TEST_CASE("blocks of any pool are found by their address, and freed and recorded in it") {
  torch_rig r;
  address const x = r.take(mib, a);
  REQUIRE(r.device().begin(p, only({a})));
  address const y = r.take(mib, a);
  REQUIRE(r.device().end(p));
  CHECK(r.registry.find(x).pool == &r.device().main());
  CHECK(r.registry.find(y).pool == r.device().pool(p));
  CHECK(r.registry.find(y).device == &r.device());
  must(r.registry.find(y).pool->record_stream(y, b));
  fails_with(r.device().main().deallocate(y), errc::unknown_pointer);
  r.give(x);
  r.give(y);
  CHECK(r.registry.find(address{}).pool == nullptr);
}

// ---- uses
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("uses are counted, and the last one to go takes an empty pool along") {
  torch_rig r;
  CHECK_FALSE(r.device().release(p));
  CHECK(r.device().uses(p) == 0);
  r.device().use_pool(p);
  r.device().use_pool(p);
  REQUIRE(r.device().begin(p, only({a})));
  CHECK(r.device().uses(p) == 3);
  r.give(r.take(mib, a));
  REQUIRE(r.device().end(p));
  CHECK(r.device().release(p));
  CHECK(r.device().release(p));
  CHECK(r.pools() == 2);
  CHECK(r.device().release(p));
  CHECK(r.pools() == 1);
  CHECK(r.gpu.created() == 0);
  CHECK_FALSE(r.device().release(p));
  CHECK_FALSE(r.device().serve_on_out_of_memory(p, true));
  CHECK_FALSE(r.device().never_split(p));
}

TEST_CASE("a pool outlives its last use as long as a block of it lives, and goes with the last") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  address const x = r.take(mib, a);
  address const y = r.take(9 * mib, a);
  REQUIRE(r.device().end(p));
  REQUIRE(r.device().release(p));
  CHECK(r.pools() == 2);
  CHECK_FALSE(r.device().release(p));
  r.give(x);
  CHECK(r.pools() == 2);
  CHECK(r.home(y) == p);
  r.give(y);
  CHECK(r.pools() == 1);
  CHECK(r.gpu.created() == 0);
  CHECK(r.registry.find(y).pool == nullptr);
}

TEST_CASE("a captured pool that blocks outlive stays until memory is asked for") {
  for (int how = 0; how < 4; ++how) {
    CAPTURE(how);
    torch_rig r(limited(100_MiB));
    address const x = capture(r, p, a);
    end_capture(r, p, a);
    REQUIRE(r.device().release(p));
    auto const unmaps = r.gpu.unmaps;
    r.give(x);
    r.give(r.take(mib, b));
    CHECK(r.pools() == 2);
    CHECK(r.gpu.unmaps == unmaps);  // a graph may still read it
    if (how == 0) r.device().trim();
    if (how == 1) r.device().use_pool(q);
    if (how == 2) fails_with(r.device().allocate(200 * mib, b), errc::out_of_memory);
    if (how == 3) {
      r.device().use_pool(p);
      REQUIRE(r.device().release(p));
    }
    CHECK(r.device().pool(p) == nullptr);
  }
}

TEST_CASE("a captured pool goes with its last use where no block is left") {
  torch_rig r;
  r.give(capture(r, p, a));
  end_capture(r, p, a);
  REQUIRE(r.device().release(p));
  CHECK(r.pools() == 1);
  CHECK(r.gpu.created() == 0);
}

TEST_CASE("a pool that nobody uses can come into use again while a block of it lives") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  address const x = r.take(mib, a);
  REQUIRE(r.device().end(p));
  REQUIRE(r.device().release(p));
  torch_pool* const before = r.device().pool(p);
  r.device().use_pool(p);
  CHECK(r.made == 2);
  CHECK(r.device().pool(p) == before);
  r.give(x);
  CHECK(r.pools() == 2);
  CHECK(r.device().release(p));
  CHECK(r.pools() == 1);
  r.device().use_pool(p);  // another one of the same name
  CHECK(r.made == 3);
}

TEST_CASE("a pool that goes waits for the device before its memory leaves") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(mib, a));
  REQUIRE(r.device().end(p));
  std::uint64_t waited = ~std::uint64_t{0};
  r.gpu.before_release = [&] { waited = std::min(waited, r.gpu.time->counts().device_syncs); };
  auto const before = r.gpu.counts().device_syncs;
  REQUIRE(r.device().release(p));
  CHECK(waited > before);
  r.gpu.before_release = nullptr;
}

TEST_CASE("a pool that can't be made leaves nothing behind") {
  torch_rig r;
  r.refusing = true;
  CHECK_THROWS_AS(r.device().use_pool(p), std::bad_alloc);
  CHECK_THROWS_AS((void)r.device().begin(p, only({a})), std::bad_alloc);
  CHECK_FALSE(r.device().paused());
  CHECK_FALSE(r.device().end(p));
  CHECK(r.device().uses(p) == 0);
  CHECK(r.pools() == 1);
  CHECK(r.home(r.take(mib, a)) == main_pool);
  r.refusing = false;
  for (int i = 0; i < 5000; ++i) {  // more than there are numbers
    r.device().use_pool(p);
    REQUIRE(r.device().release(p));
  }
}

TEST_CASE("numbers run out where thousands of pools live at once, as an error") {
  torch_rig r({.capacity = 1_GiB, .lag = 0, .settings = {}});
  unsigned long long n = 0;
  try {
    while (n < 5000) r.device().use_pool({1, ++n});
  } catch (std::bad_alloc const&) {
    CHECK(n > 4000);
  }
  CHECK(n < 5000);
  CHECK(r.device().release({1, 1}));
  r.device().use_pool({1, n});
}

TEST_CASE("a pool with an open context stays, though its uses are gone") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(mib, a));  // no capture: nothing is paused
  REQUIRE(r.device().release(p));
  CHECK(r.pools() == 2);  // otherwise the next request for it would read freed memory
  REQUIRE(r.device().end(p));
}

// ---- pauses
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("from a context's beginning until its first request nothing is asked of the device") {
  torch_rig r;
  r.give(r.take(mib, a));
  r.give(r.take(mib, b));
  REQUIRE(r.device().begin(p, only({a})));
  CHECK(r.device().paused());
  auto const before = r.gpu.counts();
  for (int i = 0; i < 100; ++i) r.give(r.take((1 + static_cast<bytes>(i) % 7) * mib, i % 2 == 0 ? b : c));
  r.device().trim();
  auto const after = r.gpu.counts();
  CHECK(r.device().paused());
  CHECK(after.records == before.records);
  CHECK(after.queries == before.queries);
  CHECK(after.waits == before.waits);
  CHECK(after.host_waits == before.host_waits);
  CHECK(after.device_syncs == before.device_syncs);
  REQUIRE(r.device().end(p));
  CHECK_FALSE(r.device().paused());
}

TEST_CASE("a context whose first request's stream is not captured pauses nothing any more") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  REQUIRE(r.device().begin(q, only({b})));
  (void)r.take(mib, a);
  CHECK(r.device().paused());  // the other may still be one
  (void)r.take(mib, a);
  CHECK(r.device().paused());
  (void)r.take(mib, b);
  CHECK_FALSE(r.device().paused());
  REQUIRE(r.device().end(q));
  CHECK_FALSE(r.device().paused());
  REQUIRE(r.device().begin(q, only({b})));
  CHECK(r.device().paused());
  REQUIRE(r.device().end(p));
  CHECK(r.device().paused());
  REQUIRE(r.device().end(q));
  CHECK_FALSE(r.device().paused());
}

TEST_CASE("a capture pauses to its end, whatever goes on beside it") {
  torch_rig r;
  (void)capture(r, p, a);
  CHECK(r.device().paused());
  (void)r.take(mib, a);
  (void)r.take(mib, b);
  CHECK(r.device().paused());
  auto const before = r.gpu.counts();
  for (int i = 0; i < 50; ++i) r.give(r.take(2 * mib, i % 2 == 0 ? a : b));
  CHECK(r.gpu.counts().records == before.records);
  CHECK(r.gpu.counts().device_syncs == before.device_syncs);
  end_capture(r, p, a);
  CHECK_FALSE(r.device().paused());
}

TEST_CASE("nothing is destroyed while paused, and what was due goes when the pause is over") {
  torch_rig r;
  REQUIRE(r.device().begin(q, only({b})));
  address const x = r.take(mib, b);
  REQUIRE(r.device().end(q));
  r.device().use_pool({0, 3});
  (void)capture(r, p, a);
  REQUIRE(r.device().release(q));
  REQUIRE(r.device().release({0, 3}));
  auto const unmaps = r.gpu.unmaps;
  r.give(x);
  r.device().trim();
  r.device().trim(q);
  CHECK(r.pools() == 4);
  CHECK(r.gpu.unmaps == unmaps);
  end_capture(r, p, a);
  CHECK(r.pools() == 2);
}

TEST_CASE("a capture that begins while a pool goes does not spare the wait for the device") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(mib, a));
  REQUIRE(r.device().end(p));
  bool begun = false;
  std::thread other;
  r.hooks->lines = [&] {
    r.hooks->lines = nullptr;
    other = std::thread([&] { begun = r.device().begin(q, only({b})); });
  };
  auto const before = r.gpu.counts().device_syncs;
  bool in_use = false;
  r.gpu.before_release = [&] { in_use = in_use || r.gpu.time->counts().device_syncs == before; };
  REQUIRE(r.device().release(p));
  r.gpu.before_release = nullptr;
  REQUIRE(other.joinable());
  other.join();
  CHECK(begun);
  CHECK_FALSE(in_use);
  REQUIRE(r.device().end(q));
}

// ---- pinned pools
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("a pool that a capture has allocated from keeps its addresses until it goes") {
  torch_rig r;
  address const x = capture(r, p, a, 6 * mib);
  address const y = r.take(3 * mib, a);
  r.give(x);
  r.give(y);
  end_capture(r, p, a);
  torch_pool& pool = *r.device().pool(p);
  auto const before = pool.snapshot();
  REQUIRE_FALSE(before.chunks.empty());
  r.device().trim(p);
  CHECK(must(pool.trim(true)) == 0);
  CHECK(must(pool.trim(false)) == 0);
  auto const after = pool.snapshot();
  CHECK(std::ranges::equal(before.chunks, after.chunks, {}, &chunk_snapshot::home, &chunk_snapshot::home));
  CHECK(must(pool.allocate_at(x, {.size = 6 * mib, .on = b})) == x);
  r.give(x);
  REQUIRE(r.device().release(p));
  CHECK(r.pools() == 1);
  CHECK(r.gpu.created() == 0);
}

TEST_CASE("a pool that no capture has allocated from is trimmed like the main one") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(6 * mib, a));
  REQUIRE(r.device().end(p));
  r.give(r.take(6 * mib, a));
  CHECK(r.gpu.created() > 0);
  r.device().trim(p);
  CHECK(r.device().pool(p)->stats().reserved.now == 0);
  CHECK(r.gpu.created() > 0);
  r.device().trim();
  CHECK(r.gpu.created() == 0);
  r.device().trim({7, 7});  // there is none
}

TEST_CASE("nothing of the main pool is pinned by a capture elsewhere") {
  torch_rig r;
  address const x = r.take(6 * mib, b);
  (void)capture(r, p, a);
  r.give(x);
  end_capture(r, p, a);
  r.device().trim();
  CHECK(r.device().main().stats().reserved.now == 0);
}

// ---- the limit, and memory that runs out
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("the limit is the user's, a part of the device, or the device") {
  torch_rig_options o;
  CHECK(torch_rig(o).device().limit().limit() == 1_GiB);
  o.settings.limit = 100_MiB;
  CHECK(torch_rig(o).device().limit().limit() == 100_MiB);
  o.settings.limit = 5_GiB;
  CHECK(torch_rig(o).device().limit().limit() == 1_GiB);
  o.settings.limit = {};
  o.settings.limit_fraction = 0.25;
  torch_rig r(o);
  CHECK(r.device().limit().limit() == 256_MiB);
  CHECK(r.device().total() == 1_GiB);
  fails_with(r.device().allocate(300 * mib, a), errc::out_of_memory);
}

TEST_CASE("one limit holds over the main pool and the private ones") {
  torch_rig r(limited(100_MiB));
  (void)r.take(60 * mib, a);
  REQUIRE(r.device().begin(p, only({b})));
  fails_with(r.device().allocate(60 * mib, b), errc::out_of_memory);
  (void)r.take(30 * mib, b);
  fails_with(r.device().allocate(30 * mib, a), errc::out_of_memory);
  CHECK(r.gpu.most <= 100_MiB);
  r.device().limit().set(200_MiB);
  (void)r.take(60 * mib, a);
  CHECK(r.gpu.most > 100_MiB);
  CHECK(r.gpu.most <= 200_MiB);
}

TEST_CASE("a request that fails tells the device's limit") {
  torch_rig r(limited(100_MiB));
  auto const refused = r.device().allocate(101 * mib, a);
  fails_with(refused, errc::out_of_memory);
  CHECK(refused.error().account.limit == 100_MiB);
}

TEST_CASE("the device's account adds up its pools'") {
  torch_rig r(limited(100_MiB));
  address const x = r.take(20 * mib, a);
  REQUIRE(r.device().begin(p, only({a})));
  (void)r.take(10 * mib, a);
  r.give(x);
  memory_account const sum = r.device().account();
  CHECK(sum.limit == 100_MiB);
  CHECK(sum.reserved == r.gpu.created());
  CHECK(sum.live == 10 * mib);
  CHECK(sum.free == sum.reserved - sum.live);
  CHECK(sum.largest_contiguous >= 20 * mib);
}

TEST_CASE("what a private pool lacks, the main pool gives back") {
  torch_rig r(limited(100_MiB));
  address const x = r.take(80 * mib, b);
  r.give(x);
  CHECK(r.device().main().stats().reserved.now >= 80 * mib);
  REQUIRE(r.device().begin(p, only({a})));
  address const y = r.take(70 * mib, a);
  CHECK(r.home(y) == p);
  CHECK(r.gpu.most <= 100_MiB);
  fails_with(r.device().allocate(70 * mib, a), errc::out_of_memory);
}

TEST_CASE("while a capture is under way, the main pool gives back only what the device is known to be done with") {
  torch_rig r(limited(100_MiB));
  (void)r.take(4 * mib, c);
  address const x = r.take(80 * mib, b);
  r.give(x);
  bool known = false;
  SUBCASE("which is not known") {}
  SUBCASE("which a fence tells, seen before") {
    known = true;
    must(r.device().main().retire_stream(b));
    r.gpu.time->finish_all();
    (void)r.take(4 * mib, c);
  }
  auto const before = r.gpu.counts();
  r.gpu.set_captured(a, true);
  REQUIRE(r.device().begin(p, only({a})));
  auto const got = r.device().allocate(70 * mib, a);
  CHECK(r.gpu.counts().host_waits == before.host_waits);
  CHECK(r.gpu.counts().device_syncs == before.device_syncs);
  CHECK(r.device().paused());
  if (known) CHECK(got.has_value());
  else fails_with(got, errc::out_of_memory);
  r.sound();
  end_capture(r, p, a);
  if (!got) {
    REQUIRE(r.device().begin(p, only({a})));
    CHECK(r.home(r.take(70 * mib, a)) == p);
  }
}

TEST_CASE("what the main pool lacks comes from pools that nobody uses") {
  torch_rig r(limited(100_MiB));
  REQUIRE(r.device().begin(q, only({b})));
  (void)capture(r, p, a, 60 * mib);
  REQUIRE(r.device().end(q));
  REQUIRE(r.device().begin(q, only({b})));
  address const x = r.take(20 * mib, b);
  REQUIRE(r.device().end(q));
  REQUIRE(r.device().release(q));
  REQUIRE(r.device().release(q));
  r.give(x);  // its pool's last, but a capture is under way
  CHECK(r.pools() == 3);
  end_capture(r, p, a);
  (void)r.take(35 * mib, c);
  CHECK(r.pools() == 2);
}

TEST_CASE("a private pool serves what the main one can't, where it is told to") {
  torch_rig r(limited(100_MiB));
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(60 * mib, a));
  REQUIRE(r.device().end(p));
  fails_with(r.device().allocate(50 * mib, b), errc::out_of_memory);
  CHECK(r.device().serve_on_out_of_memory(p, true));
  address const x = r.take(30 * mib, b);
  CHECK(r.home(x) == main_pool);  // as long as that can
  address const y = r.take(50 * mib, b);
  CHECK(r.home(y) == p);
  CHECK(r.device().uses(p) == 1);
  CHECK(r.device().serve_on_out_of_memory(p, false));
  r.give(y);
  fails_with(r.device().allocate(50 * mib, b), errc::out_of_memory);
  CHECK_FALSE(r.device().serve_on_out_of_memory(q, true));
}

TEST_CASE("of several private pools that serve others, any that can does") {
  torch_rig r(limited(100_MiB));
  for (torch_pool_id id : {p, q}) {
    REQUIRE(r.device().begin(id, only({a})));
    r.give(r.take(id == p ? 20 * mib : 40 * mib, a));
    REQUIRE(r.device().end(id));
    REQUIRE(r.device().serve_on_out_of_memory(id, true));
  }
  (void)r.take(36 * mib, b);
  address const x = r.take(38 * mib, b);
  CHECK(r.home(x) == q);
  fails_with(r.device().allocate(38 * mib, b), errc::out_of_memory);
  CHECK(r.device().uses(p) == 1);
  CHECK(r.device().uses(q) == 1);
}

TEST_CASE("helpers are asked before a request fails, with an account, and are believed") {
  torch_rig r(limited(100_MiB));
  address const x = r.take(60 * mib, a);
  int asked = 0;
  bool able = true;
  r.device().on_out_of_memory([&](memory_account const& account) {
    ++asked;
    CHECK(account.requested == 70 * mib);
    CHECK(account.live == 60 * mib);
    if (std::exchange(able, false)) r.give(x);
    return asked == 1;
  });
  address const y = r.take(70 * mib, b);
  CHECK(asked == 1);
  r.give(y);
  (void)r.take(60 * mib, b);
  fails_with(r.device().allocate(70 * mib, b), errc::out_of_memory);
  CHECK(asked == 2);
}

TEST_CASE("blocks of a pool that never splits have chunks of their own") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  REQUIRE(r.device().never_split(p));
  std::vector<address> const all = {r.take(100, a), r.take(mib, a), r.take(100, a)};
  pool_snapshot const shot = r.device().pool(p)->snapshot();
  for (address one : all) {
    CHECK(std::ranges::count(shot.chunks, one, &chunk_snapshot::home) == 1);
    for (block_snapshot const& x : shot.blocks) CHECK((x.begin != one || x.size == 2 * mib));
  }
  CHECK(shot.chunks.size() == 3);
  REQUIRE(r.device().end(p));
  address const x = r.take(100, a);
  address const y = r.take(100, a);
  CHECK(r.device().main().snapshot().chunks.size() == 1);  // the main pool splits
  for (address one : {x, y}) r.give(one);
}

TEST_CASE("blocks that are to be of one handle are, in whichever pool") {
  torch_rig r;
  for (int i = 0; i < 2; ++i) {
    address const x = must(r.device().allocate(50 * mib, a, placement::one_handle));
    CHECK(r.registry.find(x).pool->look_at(x, [&](block const& one, stream on) {
      torch_pieces const pieces = pieces_of(one);
      CHECK(pieces.chunks.size() == 1);
      CHECK(pieces.offset == 0);
      CHECK(pieces.chunks[0].size == 50 * mib);
      CHECK(pieces.chunks[0].home == x);
      CHECK(on == a);
      CHECK(must(r.registry.find(x).pool->export_fd(pieces.chunks[0].memory)) >= 0);
    }));
    if (i == 0) REQUIRE(r.device().begin(p, only({a})));
  }
}

TEST_CASE("the pieces beneath a block are its chunks in its order, from its first byte on") {
  torch_rig r;
  (void)r.take(mib, a);
  address const x = r.take(11 * mib, a);  // over several chunks
  r.device().main().each_live([&](block const& one, stream) {
    torch_pieces const pieces = pieces_of(one);
    REQUIRE_FALSE(pieces.chunks.empty());
    bytes sum = 0;
    for (auto const& piece : pieces.chunks) sum += piece.size;
    CHECK(pieces.offset < pieces.chunks.front().size);
    CHECK(pieces.offset + one.size <= sum);
    CHECK(pieces.offset + one.size > sum - pieces.chunks.back().size);
    if (one.begin == x && one.view == nullptr) CHECK(pieces.chunks[0].home + pieces.offset == x);
  });
}

TEST_CASE("the pieces beneath a stitched block are those that it was stitched from") {
  torch_rig r(limited(64_MiB));
  std::vector<address> all;
  while (all.size() < 16) all.push_back(r.take(4 * mib, a));
  for (std::size_t i = 0; i < all.size(); i += 2) r.give(all[i]);
  address const x = r.take(9 * mib, a);
  bool const stitched = r.device().main().look_at(x, [&](block const& one, stream) {
    REQUIRE(one.view != nullptr);
    torch_pieces const pieces = pieces_of(one);
    bytes sum = 0;
    for (auto const& piece : pieces.chunks) sum += piece.size;
    CHECK(pieces.offset + 9 * mib <= sum);
    CHECK(pieces.chunks.size() == 3);
  });
  CHECK(stitched);
  CHECK(r.device().main().stats().stitches_live == 1);
}

// ---- settings
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("the settings' chunks and small requests are those of every pool") {
  torch_rig_options o;
  o.settings.chunk = 8_MiB;
  o.settings.small = 0;
  torch_rig r(o);
  REQUIRE(r.device().begin(p, only({a})));
  (void)r.take(100, a);
  (void)r.take(100, b);
  r.device().each_pool([](torch_pool_id, torch_pool& pool) {
    pool_snapshot const shot = pool.snapshot();
    REQUIRE(shot.chunks.size() == 1);
    CHECK(shot.chunks[0].size == 8_MiB);
  });
}

TEST_CASE("GMLake's settings decide whether, and from which size on, blocks are stitched") {
  for (auto preset : {torch_settings::preset_kind::lake, torch_settings::preset_kind::gmlake}) {
    for (int what = 0; what < 4; ++what) {
      CAPTURE(what);
      torch_rig_options o = limited(64_MiB);
      o.settings.preset = preset;
      o.settings.chunk = 4_MiB;
      if (what == 1) o.settings.stitch = false;
      if (what == 2) o.settings.frag_limit = 16 * mib;
      if (what == 3) o.settings.frag_limit = 8 * mib;
      torch_rig r(o);
      std::vector<address> all;
      while (all.size() < 16) all.push_back(r.take(4 * mib, a));
      for (std::size_t i = 0; i < all.size(); i += 2) r.give(all[i]);
      (void)r.take(8 * mib, a);  // without a stitch, chunks have to go and come again
      CHECK(r.device().main().stats().stitches_live == (what == 0 || what == 3 ? 1 : 0));
    }
  }
}

TEST_CASE("stitching only once growth has failed grows as long as it can") {
  for (int level : {0, 1}) {
    torch_rig_options o = limited(64_MiB);
    o.settings.chunk = 4_MiB;
    o.settings.defrag_level = level;
    torch_rig r(o);
    std::vector<address> all;
    while (all.size() < 12) all.push_back(r.take(4 * mib, a));
    for (std::size_t i = 0; i < all.size(); i += 2) r.give(all[i]);
    (void)r.take(8 * mib, a);
    CHECK(r.device().main().stats().stitches_live == (level == 0 ? 1 : 0));
    (void)r.take(15 * mib, a);
    CHECK(r.device().main().stats().stitches_live >= 1);
  }
}

TEST_CASE("idle stitches take as many addresses as the settings say, and are reused down to their limit") {
  torch_rig_options o = limited(128_MiB);
  o.settings.chunk = 4_MiB;
  o.settings.reuse_limit = 1;
  o.settings.idle_addresses = 16 * mib;
  torch_rig r(o);
  std::vector<address> all;
  while (all.size() < 32) all.push_back(r.take(4 * mib, a));
  for (std::size_t i = 0; i < all.size(); i += 2) r.give(all[i]);
  r.give(r.take(16 * mib, a));
  r.give(r.take(8 * mib, a));  // not on the idle one of twice its size
  CHECK(r.device().main().stats().stitches_made == 2);
  r.give(r.take(8 * mib, a));
  CHECK(r.device().main().stats().stitch_hits == 1);
  for (int i = 0; i < 4; ++i) r.give(r.take((12 + 4 * static_cast<bytes>(i)) * mib, a));
  pool_stats const full = r.device().main().stats();
  CHECK(full.mapped.now - full.reserved.now > 16 * mib);  // the device may still use them
  for (int i = 0; i < 10; ++i) {
    r.gpu.time->finish_all();
    r.give(r.take(8 * mib, a));
  }
  pool_stats const kept = r.device().main().stats();
  CHECK(kept.mapped.now - kept.reserved.now <= 16 * mib);
}

TEST_CASE("streams wait for each other or memory grows, as the settings say") {
  for (bool wait : {true, false}) {
    torch_rig_options o;
    o.settings.wait = wait;
    torch_rig r(o);
    (void)r.take(100, b);
    r.give(r.take(40 * mib, a));
    bytes const before = r.gpu.created();
    (void)r.take(40 * mib, b);
    CHECK((r.gpu.created() == before) == wait);
    CHECK((r.device().main().stats().device_waits > 0) == wait);
  }
}

// ---- streams that PyTorch did not make
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("memory freed on a foreign stream serves it again at once, and others once the device was waited for") {
  torch_rig r(limited(100_MiB));
  r.gpu.foreign.add(c);
  (void)r.take(4 * mib, a);
  address const x = r.take(80 * mib, c);
  r.give(x);
  CHECK(r.take(80 * mib, c) == x);
  r.give(x);
  auto const before = r.gpu.counts();
  (void)r.take(10 * mib, a);  // there is other memory
  CHECK(r.gpu.counts().device_syncs == before.device_syncs);
  (void)r.take(70 * mib, a);
  CHECK(r.gpu.counts().device_syncs > before.device_syncs);
  must(r.gpu.time->destroy(c));  // without a word
  r.device().trim();
  for (int i = 0; i < 100; ++i) r.give(r.take(mib, b));
}

TEST_CASE("a pool's own streams go on being waited for on the device beside a foreign one") {
  torch_rig r(limited(100_MiB));
  r.gpu.foreign.add(c);
  r.give(r.take(100, c));
  r.give(r.take(90 * mib, a));
  auto const before = r.gpu.counts();
  (void)r.take(90 * mib, b);
  CHECK(r.gpu.counts().waits > before.waits);
  CHECK(r.gpu.counts().device_syncs == before.device_syncs);
  CHECK(r.gpu.counts().host_waits == before.host_waits);
}

// ---- peers
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("a peer is granted access in every pool, and in those to come") {
  torch_rig r;
  r.device().use_pool(p);
  must(r.device().grant(3));
  CHECK(r.gpu.granted == std::vector<int>{3, 3});
  r.device().use_pool(q);
  CHECK(r.gpu.granted == std::vector<int>{3, 3, 3});
  must(r.device().grant(3));
  r.device().use_pool({0, 3});
  CHECK(std::ranges::count(r.gpu.granted, 3) == 7);
}

TEST_CASE("a peer that can't reach the device is an error, and is not granted later") {
  torch_rig r;
  fails_with(r.device().grant(8), errc::invalid_argument);
  r.gpu.farthest_peer = 100;
  r.device().use_pool(p);
  CHECK(r.gpu.granted.empty());
}

// ---- listeners
// ----------------------------------------------------------------------------------------------------------------

namespace {

struct counting_listener : torch_listener {
  void allocated(block_event const& e) noexcept override {
    ++blocks;
    live += e.size;
    placed = placed && e.placed != nullptr;
  }
  void deallocated(block_event const& e) noexcept override {
    --blocks;
    live -= e.size;
  }
  void created(address, bytes n) noexcept override { reserved += n; }
  void released(address, bytes n) noexcept override { reserved -= n; }
  void served(torch_device& d) noexcept override {
    ++requests;
    (void)d.account();  // no lock is held
  }
  int blocks = 0, requests = 0;
  bytes live = 0, reserved = 0;
  bool placed = true;
};

}  // namespace

TEST_CASE("a listener is told of every pool's blocks and chunks, and of each request served") {
  torch_rig r(limited(100_MiB));
  counting_listener heard;
  r.device().listen(torch_audience::recording, &heard);
  address const x = r.take(20 * mib, a);
  REQUIRE(r.device().begin(p, only({a})));
  address const y = r.take(10 * mib, a);
  fails_with(r.device().allocate(90 * mib, a), errc::out_of_memory);
  CHECK(heard.blocks == 2);
  CHECK(heard.requests == 2);
  CHECK(heard.live == 30 * mib);
  CHECK(heard.reserved == r.gpu.created());
  CHECK(heard.placed);
  REQUIRE(r.device().end(p));
  r.give(x);
  r.give(y);
  CHECK(heard.blocks == 0);
  CHECK(heard.live == 0);
  r.device().trim();
  r.device().trim(p);
  CHECK(heard.reserved == 0);
  REQUIRE(r.device().serve_on_out_of_memory(p, true));
  (void)r.take(mib, a);
  CHECK(heard.requests == 3);
  r.device().listen(torch_audience::recording, nullptr);
  (void)r.take(mib, a);
  CHECK(heard.requests == 3);
  CHECK(heard.blocks == 1);
}

TEST_CASE("listeners of each kind are told the same, until each is gone") {
  torch_rig r;
  counting_listener heard[3];
  for (std::size_t k = 0; k < torch_audience::kinds; ++k) {
    r.device().listen(static_cast<torch_audience::kind>(k), &heard[k]);
    (void)r.take(mib, a);
  }
  CHECK(heard[0].blocks == 3);
  CHECK(heard[1].blocks == 2);
  CHECK(heard[2].blocks == 1);
  r.device().listen(torch_audience::history, nullptr);
  (void)r.take(mib, a);
  CHECK(heard[0].blocks == 4);
  CHECK(heard[1].blocks == 2);
  CHECK(heard[2].requests == 2);
  counting_listener other;
  r.device().listen(torch_audience::recording, &other);  // in the seat of the first
  (void)r.take(mib, a);
  CHECK(heard[0].blocks == 4);
  CHECK(other.blocks == 1);
}

TEST_CASE("a listener is told of the chunks of a pool that goes") {
  torch_rig r;
  counting_listener heard;
  r.device().listen(torch_audience::recording, &heard);
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(10 * mib, a));
  REQUIRE(r.device().end(p));
  CHECK(heard.reserved == r.gpu.created());
  REQUIRE(r.device().release(p));
  CHECK(r.gpu.created() == 0);
  CHECK(heard.reserved == 0);
}

// ---- PyTorch's figures
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("the figures of all pools add up, by class of request") {
  torch_rig r;
  address const small = r.take(100, a);
  address const large = r.take(5 * mib, a);
  REQUIRE(r.device().begin(p, only({a})));
  address const inside = r.take(3 * mib, a);
  torch_lines const now = r.device().lines();
  CHECK(now.all.allocation.current == 3);
  CHECK(now.small.allocation.current == 1);
  CHECK(now.large.allocation.current == 2);
  CHECK(now.all.requested_bytes.current == static_cast<std::int64_t>(100 + 8 * mib));
  CHECK(now.small.requested_bytes.current == 100);
  CHECK(now.small.allocated_bytes.current == 512);
  CHECK(now.all.reserved_bytes.current == static_cast<std::int64_t>(r.gpu.created()));
  CHECK(now.small.reserved_bytes.current == static_cast<std::int64_t>(2 * mib));
  CHECK(now.all.segment.current == now.small.segment.current + now.large.segment.current);
  for (address one : {small, large, inside}) r.give(one);
  torch_lines const then = r.device().lines();
  CHECK(then.all.allocation.current == 0);
  CHECK(then.all.allocation.added == 3);
  CHECK(then.all.allocation.taken == 3);
  CHECK(then.all.allocation.peak == 3);
  CHECK(then.all.allocated_bytes.current == 0);
}

TEST_CASE("the peak of what is reserved is the device's, not the sum of the pools'") {
  torch_rig r;
  r.give(r.take(100 * mib, b));
  auto const first = static_cast<std::int64_t>(r.gpu.created());
  r.device().trim();
  REQUIRE(r.gpu.created() == 0);
  REQUIRE(r.device().begin(p, only({a})));
  address const x = r.take(50 * mib, a);
  CHECK(r.device().lines().all.reserved_bytes.peak == first);
  r.device().reset_peaks();
  CHECK(r.device().lines().all.reserved_bytes.peak == static_cast<std::int64_t>(r.gpu.created()));
  r.give(x);
}

TEST_CASE("a pool that goes leaves its totals, and nothing current") {
  torch_rig r;
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(10 * mib, a));
  REQUIRE(r.device().end(p));
  REQUIRE(r.device().release(p));
  torch_lines const l = r.device().lines();
  CHECK(l.all.allocation.added == 1);
  CHECK(l.all.allocation.taken == 1);
  CHECK(l.all.segment.current == 0);
  CHECK(l.all.segment.added == l.all.segment.taken);
  CHECK(l.all.segment.added > 0);
  CHECK(l.all.reserved_bytes.current == 0);
  CHECK(l.all.reserved_bytes.added == l.all.reserved_bytes.taken);
  r.device().reset_totals();
  CHECK(r.device().lines().all.allocation.added == 0);
  CHECK(r.device().lines().all.reserved_bytes.taken == 0);
}

TEST_CASE("peaks are of all pools at a time, and stay when a pool goes") {
  torch_rig r({.capacity = 1_GiB});
  address const x = r.take(10 * mib, b);
  r.give(r.take(300 * mib, b));  // before there is a second pool
  REQUIRE(r.device().begin(p, only({a})));
  auto const peaks = [&] {
    torch_totals const all = r.device().lines().all;
    pool_stats const s = r.device().stats();
    CHECK(all.allocated_bytes.peak == static_cast<std::int64_t>(s.live.peak));
    CHECK(all.requested_bytes.peak == static_cast<std::int64_t>(s.requested.peak));
    CHECK(all.reserved_bytes.peak == static_cast<std::int64_t>(s.reserved.peak));
    CHECK(s.reserved.peak >= s.live.peak);
    return std::pair(s.live.peak / mib, all.allocation.peak);
  };
  r.give(r.take(200 * mib, a));
  CHECK(peaks() == std::pair<bytes, std::int64_t>(310, 2));
  address const y = r.take(250 * mib, a);
  address const z = r.take(100 * mib, b);
  CHECK(peaks() == std::pair<bytes, std::int64_t>(360, 3));
  r.give(y);
  REQUIRE(r.device().end(p));
  REQUIRE(r.device().release(p));
  CHECK(r.pools() == 1);
  CHECK(peaks() == std::pair<bytes, std::int64_t>(360, 3));
  r.device().reset_peaks();
  CHECK(peaks() == std::pair<bytes, std::int64_t>(110, 2));
  r.give(x);
  r.give(z);
}

TEST_CASE("what a pool has done counts when it is gone, and a request that fails counts once") {
  torch_rig r(limited(100_MiB));
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(10 * mib, a));
  fails_with(r.device().allocate(500 * mib, a), errc::out_of_memory);
  REQUIRE(r.device().end(p));
  REQUIRE(r.device().serve_on_out_of_memory(p, true));
  fails_with(r.device().allocate(500 * mib, b), errc::out_of_memory);
  pool_stats const before = r.device().stats();
  CHECK(before.failures == 2);
  CHECK(before.retries > 0);
  REQUIRE(r.device().release(p));
  REQUIRE(r.pools() == 1);
  pool_stats const after = r.device().stats();
  CHECK(after.failures == 2);
  CHECK(after.retries == before.retries);
  CHECK(after.allocations == before.allocations);
  CHECK(after.allocations == after.deallocations);
  CHECK(after.driver.total().calls >= before.driver.total().calls);
}

TEST_CASE("what could be swapped and can't takes no more memory than anything else") {
  torch_rig r;
  auto const take = [&](stream s) { return must(r.device().allocate(512, s, placement::movable)); };
  for (int i = 0; i < 50; ++i) (void)take(b);
  CHECK(r.gpu.created() == 2 * mib);
  REQUIRE(r.device().begin(p, only({a})));
  for (int i = 0; i < 50; ++i) CHECK(r.home(take(a)) == p);
  for (int i = 0; i < 50; ++i) CHECK(r.home(take(b)) == main_pool);
  CHECK(r.gpu.created() == 4 * mib);
}

TEST_CASE("a pool that is trimmed while its last block is freed goes afterwards") {
  torch_rig r;
  for (int round = 0; round < 50; ++round) {
    REQUIRE(r.device().begin(p, only({a})));
    address const x = r.take(mib, a);
    REQUIRE(r.device().end(p));
    REQUIRE(r.device().release(p));
    std::thread other([&] { r.give(x); });
    r.device().trim(p);
    other.join();
    r.device().trim();
    REQUIRE(r.pools() == 1);
  }
}

TEST_CASE("peaks and totals are reset apart") {
  torch_rig r;
  address const x = r.take(10 * mib, a);
  r.give(r.take(20 * mib, a));
  CHECK(r.device().lines().all.allocated_bytes.peak == static_cast<std::int64_t>(30 * mib));
  r.device().reset_peaks();
  torch_lines l = r.device().lines();
  CHECK(l.all.allocated_bytes.peak == static_cast<std::int64_t>(10 * mib));
  CHECK(l.all.allocation.peak == 1);
  CHECK(l.large.allocation.peak == 1);
  CHECK(l.all.allocation.added == 2);
  r.device().reset_totals();
  l = r.device().lines();
  CHECK(l.all.allocation.added == 0);
  CHECK(l.all.allocation.taken == 0);
  CHECK(l.all.allocation.current == 1);
  CHECK(l.all.allocation.peak == 1);
  r.give(x);
  l = r.device().lines();
  CHECK(l.all.allocation.current == 0);
  CHECK(l.all.allocation.taken == 1);
}
