/// Memory that is handed on behind work on the device: who takes it waits there for that work, for no more, and nothing
/// of it is unmapped before the host knows that it is over.

#include <algorithm>
#include <vector>

#include "gmlake/grow/granule_chunks.hpp"
#include "tests/pool/faulty_streams.hpp"
#include "tests/pool/rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};
constexpr stream out{8};  ///< copies go out on this one
constexpr stream in{9};   ///< and come back on this one
constexpr bytes pair = 2 * chunk_bytes;

using faulty_rig = rig<rig_config<faulty_streams>>;

[[nodiscard]] request movable(bytes n, stream on, foresight const& f = {}) {
  return {.size = n, .on = on, .where = placement::movable, .foreseen = f};
}

/// Which handles lie beneath n bytes, in order.
template <PoolConfig Config>
[[nodiscard]] std::vector<handle> memories(rig<Config> const& r, address at, bytes n) {
  std::vector<handle> all;
  for (auto const& piece : r.device.beneath(at, n)) all.push_back(piece.memory);
  return all;
}

[[nodiscard]] rig_options chunks(bytes n) { return {.capacity = n * chunk_bytes}; }

/// The block's memory is handed on behind what is queued on `out`. Returns the end of that.
template <PoolConfig Config>
simulated_timeline::point hand_on(rig<Config>& r, address block) {
  auto const end = r.time->queued(out);
  must(r.pool().vacate_behind(block, out));
  return end;
}

}  // namespace

TEST_CASE("what is handed on serves another movable block at once, behind a wait for that and not for later work") {
  stream_rig r(chunks(2));
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  auto const copied = hand_on(r, moved);
  auto const later = r.time->queued(out);
  CHECK(r.stats().device_waits == 0);
  CHECK(memories(r, moved, pair) == had);  // the copy reads it there

  address const other = r.take(movable(pair, b));
  CHECK(memories(r, other, pair) == had);
  CHECK(r.stats().device_waits == 1);
  CHECK(r.stats().host_waits == 0);
  CHECK(r.time->ordered(copied, b));
  CHECK_FALSE(r.time->ordered(later, b));
  CHECK_FALSE(r.time->ordered(copied, in));  // nobody else has waited
}

TEST_CASE("of several blocks that were handed on in turn the first is not waited for with the last") {
  stream_rig r(chunks(2));
  address const first = r.take(movable(chunk_bytes, a)), last = r.take(movable(chunk_bytes, a));
  auto const had = memories(r, first, chunk_bytes);
  auto const first_copied = hand_on(r, first), last_copied = hand_on(r, last);
  r.sound();
  address const other = r.take(movable(chunk_bytes, b));
  CHECK(memories(r, other, chunk_bytes) == had);
  CHECK(r.time->ordered(first_copied, b));
  CHECK_FALSE(r.time->ordered(last_copied, b));

  r.time->finish_all();
  address const whole = r.take(chunk_bytes, b);  // and what is over joins what is free for all
  r.give(other);
  r.give(whole);
  CHECK(r.trim() == pair);
}

TEST_CASE("which block's memory is there first is told by what it has to wait for, or that it can't be told yet") {
  stream_rig r(chunks(3));
  address const first = r.take(movable(chunk_bytes, a)), last = r.take(movable(chunk_bytes, a));
  auto const awaited = [&](address at) { return must(r.pool().awaited(at, in)); };
  CHECK(awaited(first) == 0);  // it has its memory
  (void)hand_on(r, first);
  (void)hand_on(r, last);
  CHECK(awaited(first) > 0);
  CHECK(awaited(first) < awaited(last));
  must(r.pool().refill(first, a, in, false));
  CHECK(awaited(first) == 0);
  address const other = r.take(movable(chunk_bytes, b));  // there is a third chunk
  address const taker = r.take(movable(chunk_bytes, b));
  CHECK(awaited(last) == ~std::uint64_t{0});  // its own is gone, and its addresses are copied from
  r.time->finish_all();
  r.give(other);
  must(r.pool().refill(last, a, in, true));
  CHECK(awaited(last) == 0);
  r.give(taker);
  fails_with(r.pool().awaited(last + 512, in), errc::unknown_pointer);
}

TEST_CASE("ordinary requests get what was handed on behind a wait only, and only where their stream has nothing else") {
  stream_rig r(chunks(3));
  r.give(r.take(chunk_bytes, b));
  address const own = r.take(chunk_bytes, b);
  address const moved = r.take(movable(pair, a));
  r.give(own);
  auto const had = memories(r, moved, pair);
  auto const copied = hand_on(r, moved);

  address const first = r.take(chunk_bytes, b);
  CHECK(first == own);
  CHECK_FALSE(r.time->ordered(copied, b));
  CHECK(r.stats().device_waits == 0);
  address const second = r.take(chunk_bytes, b);
  CHECK(std::ranges::count(had, memories(r, second, chunk_bytes).front()) == 1);
  CHECK(r.time->ordered(copied, b));
}

TEST_CASE("what was handed on is neither unmapped nor released before its copy is known to be over") {
  stream_rig r;
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  (void)hand_on(r, moved);
  CHECK(must(r.pool().trim_passed()) == 0);
  CHECK(memories(r, moved, pair) == had);
  SUBCASE("once the copy is over, it is") {
    r.time->finish_all();
    CHECK(must(r.pool().trim_passed()) == pair);
  }
  SUBCASE("a trim waits for it") {
    CHECK(r.trim() == pair);
    CHECK(r.time->counts().host_waits == 1);
  }
  SUBCASE("so does a request that finds no other memory of its shape") {
    r.pool().set_limit(pair);
    r.give(r.take({.size = pair, .on = b, .where = placement::own_chunks}));
    CHECK(r.time->counts().host_waits > 0);
    (void)r.trim();
  }
  CHECK(memories(r, moved, pair).empty());
  CHECK(r.device.device().live_handles() == 0);
  r.sound();
  must(r.pool().refill(moved, a));
}

TEST_CASE("memory that another has taken over and given back keeps the first one's mapping as long") {
  stream_rig r;
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  (void)hand_on(r, moved);
  address const other = r.take(movable(pair, b));
  REQUIRE(memories(r, other, pair) == had);
  must(r.pool().vacate(other));  // its user says that nothing uses it any more: so the memory is free for all
  CHECK(must(r.pool().trim_passed()) == 0);
  CHECK(memories(r, moved, pair) == had);
  r.time->finish_all();
  CHECK(must(r.pool().trim_passed()) == pair);
}

TEST_CASE("a block that was handed on has its own memory back at once, behind its copy") {
  stream_rig r(chunks(2));
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  auto const copied = hand_on(r, moved);
  auto const later = r.time->queued(out);
  auto const calls = r.device.calls.calls();
  must(r.pool().refill(moved, a, in, false));
  CHECK(r.device.calls.calls() == calls);
  CHECK(memories(r, moved, pair) == had);
  CHECK(r.time->ordered(copied, in));  // who uses it first waits, and nobody else
  CHECK_FALSE(r.time->ordered(later, in));
  CHECK_FALSE(r.time->ordered(copied, a));
  CHECK(r.stats().host_waits == 0);

  SUBCASE("and can be handed on again") {
    auto const again = hand_on(r, moved);
    must(r.pool().refill(moved, a, in, false));
    CHECK(r.time->ordered(again, in));
  }
  SUBCASE("and is freed: its mapping stays while a copy may use it") {
    r.give(moved);
    CHECK(must(r.pool().trim_passed()) == 0);
    CHECK(memories(r, moved, pair) == had);
    r.time->finish_all();
    CHECK(must(r.pool().trim_passed()) == 0);  // the user's stream has not been asked before
    r.time->finish_all();
    CHECK(r.trim() == pair);
  }
}

TEST_CASE("other memory comes under a block only once its copy is over") {
  stream_rig r;
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  (void)hand_on(r, moved);
  address const other = r.take(movable(chunk_bytes, b));  // one of its two
  REQUIRE(r.reserved() == pair);

  for (int i = 0; i < 3; ++i) {
    fails_with(r.pool().refill(moved, a, in, false), errc::out_of_memory);
    CHECK(memories(r, moved, pair) == had);
    CHECK(r.reserved() == pair + chunk_bytes);  // what was missing is there, and no more
    CHECK(r.stats().host_waits == 0);
    r.sound();
  }
  SUBCASE("later") {
    r.time->finish_all();
    must(r.pool().refill(moved, a, in, false));
    CHECK(r.stats().host_waits == 0);
  }
  SUBCASE("or at once by one that insists, for which the host waits") {
    must(r.pool().refill(moved, a, in, true));
    CHECK(r.stats().host_waits > 0);
  }
  auto const has = memories(r, moved, pair);
  REQUIRE(has.size() == 2);
  CHECK(std::ranges::count(has, memories(r, other, chunk_bytes).front()) == 0);
  CHECK(r.reserved() == pair + chunk_bytes);
  r.sound();
}

TEST_CASE("a pool whose chunks are as large as what is missing has nothing to create for a block that has to wait") {
  using config = rig_config<simulated_streams>::with_growth<granule_chunks>;
  rig<config> r;
  address const moved = r.take(movable(pair, a));
  (void)hand_on(r, moved);
  address const other = r.take(movable(chunk_bytes, b));
  for (int i = 0; i < 2; ++i) fails_with(r.pool().refill(moved, a, in, false), errc::out_of_memory);
  r.time->finish_all();
  must(r.pool().refill(moved, a, in, false));
  r.give(other);
}

TEST_CASE("a block that is freed after it was handed on leaves a mapping that lasts as long as its copy") {
  stream_rig r({.cache = {.stitches = 0}});
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  (void)hand_on(r, moved);
  SUBCASE("while its stream is there") {}
  SUBCASE("and where its stream is gone") {
    must(r.pool().retire_stream(a));
    must(r.time->destroy(a));
    (void)r.take(small_block, b);
    r.give(r.take(small_block, b));
    must(r.time->synchronize(must(r.time->record(b))));
  }
  SUBCASE("and where that went before") {
    address const second = r.take(movable(pair, b));
    REQUIRE(memories(r, second, pair) == had);
    must(r.pool().retire_stream(a));
    must(r.time->destroy(a));
  }
  r.give(moved);
  CHECK(r.stats().stitches_cached == 1);
  CHECK(memories(r, moved, pair) == had);
  CHECK(must(r.pool().trim_passed()) == 0);
  CHECK(memories(r, moved, pair) == had);
  r.sound();
}

TEST_CASE("a block of a stream that is gone, handed on and freed, leaves a mapping that lasts as long as its copy") {
  stream_rig r({.cache = {.stitches = 0}});
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  address const before = r.take(movable(chunk_bytes, a));
  (void)hand_on(r, before);  // the copies' stream is known then, and does not take the other's place
  r.give(before);
  must(r.pool().retire_stream(a));
  r.time->finish_all();
  (void)must(r.pool().trim_passed());  // the host knows that the stream's work is over
  auto const copied = hand_on(r, moved);
  r.give(moved);  // under the last stamp of its stream, which is older than the copy
  r.give(r.take(chunk_bytes, b));
  CHECK(must(r.pool().trim_passed()) == 0);
  CHECK(memories(r, moved, pair) == had);
  address const next = r.take(movable(pair, b));
  CHECK(r.time->ordered(copied, b));
  r.give(next);
  CHECK(r.trim() >= pair);
}

TEST_CASE("a mapping whose block was freed while its copy was under way serves the next behind that") {
  stream_rig r(chunks(2));
  address const moved = r.take(movable(pair, a, {.as = 1, .now = 1, .until = 5, .again = 10}));
  auto const copied = hand_on(r, moved);
  r.give(moved);
  auto const calls = r.device.calls.calls();
  CHECK(r.take(movable(pair, b, {.as = 1, .now = 10, .until = 15, .again = 20})) == moved);
  CHECK(r.device.calls.calls() == calls);
  CHECK(r.time->ordered(copied, b));
}

TEST_CASE("a movable block waits for nothing where other memory is free") {
  stream_rig r;
  address const moved = r.take(movable(pair, a)), kept = r.take(movable(pair, a));
  auto const had = memories(r, kept, pair);
  must(r.pool().vacate(kept));
  (void)hand_on(r, moved);
  SUBCASE("a new one") { CHECK(memories(r, r.take(movable(pair, b)), pair) == had); }
  SUBCASE("one that comes back") {
    must(r.pool().refill(kept, b, in, false));
    CHECK(memories(r, kept, pair) == had);
  }
  CHECK(r.stats().device_waits == 0);
}

TEST_CASE("of what was handed on that comes first which is foreseen to be free first, and before it what is free") {
  stream_rig r(chunks(4));
  constexpr bytes n = chunk_bytes;
  address const late = r.take(movable(n, a, {.as = 1, .now = 1, .until = 9, .again = 20}));
  address const soon = r.take(movable(n, a, {.as = 2, .now = 1, .until = 5, .again = 21}));
  address const free = r.take(movable(n, a, {.as = 3, .now = 1, .until = 2, .again = foresight::never}));
  auto const had_late = memories(r, late, n), had_soon = memories(r, soon, n), had_free = memories(r, free, n);
  auto const late_copied = hand_on(r, late), soon_copied = hand_on(r, soon);
  must(r.pool().vacate(free, vacating::leave));
  auto const one = [&](std::uint64_t as) {
    return r.take(movable(n, b, {.as = as, .now = 3, .until = 4, .again = foresight::never}));
  };
  CHECK(memories(r, one(11), n) == had_free);
  CHECK(r.stats().device_waits == 0);
  CHECK(memories(r, one(12), n) == had_soon);
  CHECK(r.time->ordered(soon_copied, b));
  CHECK(memories(r, one(13), n) == had_late);
  CHECK(r.time->ordered(late_copied, b));
  CHECK(r.reserved() == 3 * n);
}

TEST_CASE("a block that comes again has what is there by now in the place of what leaves late") {
  stream_rig r(chunks(2));
  constexpr bytes n = chunk_bytes;
  std::uint64_t soon = foresight::never;
  bool waits = false;
  auto const born = [&](std::uint64_t now) {
    return r.take(
        movable(n, b, {.as = 1, .now = now, .soon = soon, .until = now + 2, .again = now + 10, .waits = waits}));
  };
  address const before = born(1);
  auto const had = memories(r, before, n);
  r.give(before);
  address const late = r.take(movable(n, a, {.as = 2, .now = 4, .until = 20, .again = foresight::never}));
  REQUIRE(memories(r, late, n) == had);
  std::uint64_t wanted = foresight::never;
  bool over = true;
  SUBCASE("") {}
  SUBCASE("unless others want that before it is gone") { wanted = 12; }
  SUBCASE("even where others want that before it is gone, if it would wait long") {
    wanted = 12;
    soon = 19;
  }
  SUBCASE("and where that would be over soon enough, not") {
    wanted = 12;
    soon = 20;
  }
  SUBCASE("unless the device may still use its mapping") { over = false; }
  SUBCASE("unless it had rather wait, however long") {
    waits = true;
    soon = 19;
  }
  if (over) r.time->finish_all();
  address const kept = r.take(movable(n, b, {.as = 3, .now = 4, .until = 5, .again = wanted}));
  auto const free = memories(r, kept, n);
  r.give(kept);
  auto const copied = hand_on(r, late);

  CHECK(born(11) == before);
  bool const replaced = over && !waits && (wanted == foresight::never || soon < 20);
  CHECK(memories(r, before, n) == (replaced ? free : had));
  CHECK(r.time->ordered(copied, b) == !replaced);
  r.sound();
}

TEST_CASE("a block that had better not wait has what needs no wait in the place of what does") {
  stream_rig r(chunks(2));
  constexpr bytes n = chunk_bytes;
  bool at_once = true;
  bool waits = false;
  std::uint64_t wanted = foresight::never;
  SUBCASE("") {}
  SUBCASE("even where others want that before it is gone") { wanted = 12; }
  SUBCASE("others have what their mapping has, behind the work before") { at_once = false; }
  SUBCASE("though it would rather wait otherwise") { waits = true; }
  auto const born = [&](std::uint64_t now) {
    return r.take(
        movable(n, b, {.as = 1, .now = now, .until = now + 2, .again = now + 10, .at_once = at_once, .waits = waits}));
  };
  address const before = born(1);
  auto const had = memories(r, before, n);
  r.give(before);
  address const over = r.take(movable(n, a, {.as = 2, .now = 4, .until = 6, .again = foresight::never}));
  REQUIRE(memories(r, over, n) == had);
  address const kept = r.take(movable(n, b, {.as = 3, .now = 4, .until = 5, .again = wanted}));
  auto const free = memories(r, kept, n);
  r.give(kept);
  r.time->finish_all();
  auto const used = r.time->queued(a);
  r.give(over);

  CHECK(born(11) == before);
  CHECK(memories(r, before, n) == (at_once ? free : had));
  CHECK(r.time->ordered(used, b) == !at_once);
  r.sound();
}

TEST_CASE("a mapping kept for a block is not changed while the device may use it, though nobody says what time it is") {
  stream_rig r(chunks(2));
  constexpr bytes n = chunk_bytes;
  address const before = r.take(movable(n, a, {.as = 1}));
  auto const had = memories(r, before, n);
  address const other = r.take(movable(n, b));
  r.give(before);
  r.give(other);
  CHECK(r.take(movable(n, b, {.as = 1})) != before);
  CHECK(memories(r, before, n) == had);
  r.sound();
}

TEST_CASE("a block that has no memory is not handed on") {
  stream_rig r;
  address const moved = r.take(movable(pair, a));
  must(r.pool().vacate(moved));
  auto const records = r.time->counts().records;
  must(r.pool().vacate_behind(moved, out));
  CHECK(r.time->counts().records == records);
  CHECK(must(r.pool().trim_passed()) == pair);
}

TEST_CASE("only live movable blocks are handed on, and none of a pinned pool") {
  stream_rig r;
  address const ordinary = r.take(pair, a), moved = r.take(movable(pair, a));
  fails_with(r.pool().vacate_behind(ordinary, out), errc::invalid_argument);
  fails_with(r.pool().vacate_behind(moved + 512, out), errc::unknown_pointer);
  r.give(moved);
  fails_with(r.pool().vacate_behind(moved, out), errc::double_free);
  address const next = r.take(movable(pair, a));
  r.pool().pin();
  fails_with(r.pool().vacate_behind(next, out), errc::invalid_argument);
  CHECK_FALSE(memories(r, next, pair).empty());
  r.sound();
}

TEST_CASE("a block whose copy's end can't be told is not handed on") {
  faulty_rig r(chunks(2));
  address const moved = r.take(movable(pair, a));
  auto const had = memories(r, moved, pair);
  r.pool().streams().arm({.first = 0, .only = stream_call::record, .code = errc::not_supported});
  fails_with(r.pool().vacate_behind(moved, out), errc::not_supported);
  r.pool().streams().disarm();
  CHECK(r.pool().stats().live.now == pair);
  fails_with(r.pool().allocate(chunk_bytes, b), errc::out_of_memory);
  CHECK(memories(r, moved, pair) == had);
  r.sound();
  auto const copied = hand_on(r, moved);
  (void)r.take(movable(pair, b));
  CHECK(r.time->ordered(copied, b));
}

TEST_CASE("where the stream of a copy is gone, the host waits for the device and the memory is free for all") {
  stream_rig r(chunks(2));
  address const moved = r.take(movable(pair, a));
  must(r.time->destroy(out));
  auto const copied = hand_on(r, moved);
  CHECK(r.time->counts().device_syncs == 1);
  (void)r.take(movable(pair, b));
  CHECK(r.stats().device_waits == 0);
  CHECK(r.time->ordered(copied, b));
}

TEST_CASE("a stream that can't be made to wait takes other memory for a movable block") {
  stream_rig r(chunks(4));
  address const moved = r.take(movable(pair, a)), kept = r.take(movable(pair, b));
  must(r.pool().vacate(kept, vacating::leave));
  (void)hand_on(r, moved);
  must(r.time->set_captured(b, true));
  auto const meek = [&](foresight const& f) {
    request one = movable(pair, b, f);
    one.insist = false;
    return r.pool().allocate(one);
  };
  SUBCASE("a new one") { CHECK(memories(r, must(meek({})), pair).size() == 2); }
  SUBCASE("one that is foreseen") {
    CHECK(memories(r, must(meek({.as = 1, .now = 1, .until = 2, .again = 3})), pair).size() == 2);
  }
  SUBCASE("one that comes back") { must(r.pool().refill(kept, b, b, false)); }
  SUBCASE("and creates it where there is none") {
    auto const rest = r.take_many(2, chunk_bytes, b);
    fails_with(meek({}), errc::out_of_memory);
    r.device.device().set_capacity(8 * chunk_bytes);
    CHECK(memories(r, must(meek({})), pair).size() == 2);
  }
  CHECK(r.stats().host_waits == 0);
  CHECK(r.stats().device_waits == 0);
  must(r.time->set_captured(b, false));
}

TEST_CASE("where there is one stream, free memory joins as ever though some was handed on") {
  stream_rig r(chunks(4));
  must(r.pool().vacate_behind(r.take(movable(chunk_bytes, a)), a));
  auto const all = r.take_many(4, chunk_bytes, a);
  r.give(all);
  r.sound();
  address const whole = r.take(4 * chunk_bytes, a);
  CHECK(r.stats().stitches_live == 1);  // the block without memory
  r.give(whole);
}

TEST_CASE("a stream that comes in the place of one that others waited for finds the pool sound") {
  stream_rig r({.cache = {.stitches = 0}});
  address const first = r.take(movable(chunk_bytes, a)), last = r.take(movable(chunk_bytes, a));
  address const freed = r.take(movable(pair, a));
  auto const small = r.take_many(4, small_block, b);
  (void)hand_on(r, first), (void)hand_on(r, last);
  must(r.pool().retire_stream(out));
  r.time->finish_all();
  r.give(freed);  // a mapping too many: the pool asks what is over
  r.give(small[0], stream{12});
  r.sound();
  r.give(small[1], stream{13});
  r.sound();
  r.give(r.take(pair, b));
  r.sound();
}
