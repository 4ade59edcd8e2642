/// Movable blocks: a view of their own, whose memory is taken away and replaced while the address stays.

#include <algorithm>
#include <cstring>
#include <vector>

#include "gmlake/stitch/no_stitch.hpp"
#include "tests/pool/rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};

[[nodiscard]] request movable(bytes n, stream on = {}) { return {.size = n, .on = on, .where = placement::movable}; }

/// Which handles these pieces are of, in order.
[[nodiscard]] std::vector<handle> memories(auto const& pieces) {
  std::vector<handle> all;
  for (auto const& piece : pieces) all.push_back(piece.memory);
  return all;
}

[[nodiscard]] rig_options chunks(bytes n) { return {.capacity = n * chunk_bytes}; }

}  // namespace

TEST_CASE("a movable block is a view even where contiguous memory is free") {
  plain_rig r;
  address const contiguous = r.take(4 * chunk_bytes);
  r.give(contiguous);
  address const moved = r.take(movable(2 * chunk_bytes));
  CHECK(r.stats().stitches_live == 1);
  CHECK(r.reserved() == 4 * chunk_bytes);
  CHECK(r.device.beneath(moved, 2 * chunk_bytes).size() == 2);
}

TEST_CASE("a vacated block's memory serves others, and its address is its own") {
  plain_rig r(chunks(4));
  address const moved = r.take(movable(3 * chunk_bytes));
  must(r.pool().vacate(moved));
  CHECK(r.device.beneath(moved, 1).empty());
  address const other = r.take(4 * chunk_bytes);
  CHECK((other + 4 * chunk_bytes <= moved || moved + 3 * chunk_bytes <= other));

  result<void> const full = r.pool().refill(moved);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == errc::out_of_memory);
  CHECK(r.device.beneath(moved, 1).empty());
  r.sound();

  r.give(other);
  must(r.pool().refill(moved));
  CHECK_FALSE(r.device.beneath(moved, 3 * chunk_bytes).empty());
  r.give(moved);
}

TEST_CASE("a refilled block takes scattered chunks, in other numbers than before") {
  plain_rig r;
  address const moved = r.take(movable(3 * chunk_bytes + quarter_chunk));
  auto const first = r.device.beneath(moved, 3 * chunk_bytes + quarter_chunk);
  must(r.pool().vacate(moved));
  address const taken = r.take(3 * chunk_bytes);  // what it had
  auto const kept = r.holes(4);
  must(r.pool().refill(moved));
  auto const second = r.device.beneath(moved, 3 * chunk_bytes + quarter_chunk);
  REQUIRE(second.size() == first.size());
  CHECK(second.front().memory != first.front().memory);
  r.give(moved);
  r.give(taken);
  r.give(kept);
}

TEST_CASE("what a movable block does not need of its last chunk serves others") {
  plain_rig r(chunks(2));
  address const moved = r.take(movable(chunk_bytes + quarter_chunk));
  auto const rest = r.take_many(3, quarter_chunk);
  CHECK(r.reserved() == 2 * chunk_bytes);
  must(r.pool().vacate(moved));
  CHECK(must(r.pool().trim()) == chunk_bytes);  // the other chunk holds the rest
  must(r.pool().refill(moved));
  r.give(moved);
  r.give(rest);
}

TEST_CASE("vacated memory can be returned to the device, and comes back") {
  plain_rig r;
  address const moved = r.take(movable(5 * chunk_bytes));
  must(r.pool().vacate(moved));
  CHECK(must(r.pool().trim()) == 5 * chunk_bytes);
  CHECK(r.device.device().live_handles() == 0);
  must(r.pool().refill(moved));
  CHECK(r.reserved() == 5 * chunk_bytes);
  CHECK_FALSE(r.device.beneath(moved, 5 * chunk_bytes).empty());
}

TEST_CASE("a movable block that is freed leaves its mapping for the next of its size") {
  plain_rig r;
  address const first = r.take(movable(2 * chunk_bytes));
  r.give(first);
  auto const calls = r.device.calls.calls();
  CHECK(r.take(movable(2 * chunk_bytes)) == first);
  CHECK(r.device.calls.calls() == calls);
}

TEST_CASE("a vacated block that is freed gives its addresses back") {
  plain_rig r;
  address const moved = r.take(movable(2 * chunk_bytes));
  must(r.pool().vacate(moved));
  r.give(moved);
  CHECK(r.stats().stitches_live == 0);
  CHECK(r.stats().stitches_cached == 0);
  CHECK(r.pool().deallocate(moved).error().code == errc::unknown_pointer);
}

TEST_CASE("a mapping that was left serves again at once where its memory is free") {
  plain_rig r;
  address const moved = r.take(movable(3 * chunk_bytes + quarter_chunk));
  auto const had = memories(r.device.beneath(moved, 3 * chunk_bytes + quarter_chunk));
  auto const calls = r.device.calls.calls();
  must(r.pool().vacate(moved, vacating::leave));
  r.sound();
  r.give(r.take(chunk_bytes));
  must(r.pool().refill(moved));
  CHECK(r.device.calls.calls() == calls);
  CHECK(memories(r.device.beneath(moved, 3 * chunk_bytes + quarter_chunk)) == had);
}

TEST_CASE("of a mapping that was left only the chunks that others have are replaced") {
  plain_rig r({.host_memory = true});
  auto const spare = r.take_many(2, chunk_bytes);
  address const moved = r.take(movable(4 * chunk_bytes + quarter_chunk));
  auto const had = r.device.beneath(moved, 4 * chunk_bytes + quarter_chunk);
  must(r.pool().vacate(moved, vacating::leave));
  auto const others = r.take_many(2, chunk_bytes);
  for (address const other : others) std::memset(to_pointer(other), 3, chunk_bytes);
  r.give(spare);
  auto const reserved = r.reserved();
  auto const calls = r.device.calls.calls();
  must(r.pool().refill(moved));
  CHECK(r.device.calls.calls() - calls <= 2 * 3);  // unmap, map and allow access, for each of two
  CHECK(r.reserved() == reserved);
  auto const has = r.device.beneath(moved, 4 * chunk_bytes + quarter_chunk);
  REQUIRE(has.size() == had.size());
  std::size_t same = 0;
  for (std::size_t i = 0; i < had.size(); ++i) same += has[i].memory == had[i].memory ? 1 : 0;
  CHECK(same == 3);
  std::memset(to_pointer(moved), 4, 4 * chunk_bytes + quarter_chunk);
  for (address const other : others) CHECK(static_cast<unsigned char const*>(to_pointer(other))[chunk_bytes - 1] == 3);
  r.sound();
  r.give(moved);
  r.give(others);
}

TEST_CASE("a mapping that was left goes when it is not wanted any more, or its chunks are released") {
  plain_rig r({.host_memory = true});
  address const moved = r.take(movable(2 * chunk_bytes));
  must(r.pool().vacate(moved, vacating::leave));
  CHECK_FALSE(r.device.beneath(moved, 1).empty());
  SUBCASE("by asking") { must(r.pool().vacate(moved)); }
  SUBCASE("by a trim") { CHECK(must(r.pool().trim()) == 2 * chunk_bytes); }
  SUBCASE("by what is shown instead") {
    borrowed_device lender(r.device);
    handle const h = must(lender.create(chunk_bytes));
    lent_memory const piece[] = {{h, chunk_bytes}};
    must(r.pool().show(moved, piece));
    CHECK(r.device.beneath(moved, 1).front().memory == h);
    must(r.pool().hide(moved));
    must(lender.release(h));
  }
  CHECK(r.device.beneath(moved, 1).empty());
  r.sound();
  must(r.pool().refill(moved));
  r.give(moved);
}

TEST_CASE("a block freed while its mapping was left passes it on to the next of its size") {
  plain_rig r;
  address const moved = r.take(movable(2 * chunk_bytes));
  must(r.pool().vacate(moved, vacating::leave));
  address const other = r.take(chunk_bytes);  // one of its two
  r.give(moved);
  CHECK(r.stats().stitches_cached == 1);
  r.sound();
  address const next = r.take(movable(2 * chunk_bytes));
  CHECK(next == moved);
  CHECK(r.reserved() == 3 * chunk_bytes);
  r.give(next);
  r.give(other);
}

TEST_CASE("what is foreseen decides which free chunks are taken, so that a mapping finds its own free in time") {
  constexpr bytes n = 2 * chunk_bytes;
  auto const foreseen = [](foresight const& f) {
    request r = movable(n);
    r.foreseen = f;
    return r;
  };
  plain_rig r(chunks(4));
  address const moved = r.take(foreseen({.as = 1, .now = 1, .until = 10, .again = 20}));
  r.give(r.take(n));  // the other two chunks are there, and free
  auto const had = memories(r.device.beneath(moved, n));
  must(r.pool().vacate(moved, vacating::leave));

  SUBCASE("one that stays beyond the time leaves them alone") {
    address const other = r.take(foreseen({.as = 2, .now = 11, .until = 30, .again = 40}));
    for (handle const h : memories(r.device.beneath(other, n))) CHECK(std::ranges::find(had, h) == had.end());
    auto const calls = r.device.calls.calls();
    must(r.pool().foresee(moved, {.as = 1, .now = 20, .until = 25, .again = 101}));
    must(r.pool().refill(moved));
    CHECK(r.device.calls.calls() == calls);
    CHECK(memories(r.device.beneath(moved, n)) == had);
  }
  SUBCASE("one that is gone before takes them first, and leaves the others to who stays") {
    address const other = r.take(foreseen({.as = 2, .now = 11, .until = 15, .again = 111}));
    CHECK(memories(r.device.beneath(other, n)) == had);
  }
  SUBCASE("where nothing else is free they are taken all the same") {
    address const third = r.take(foreseen({.as = 3, .now = 11, .until = 30, .again = 40}));
    address const other = r.take(foreseen({.as = 2, .now = 12, .until = 30, .again = 40}));
    CHECK(memories(r.device.beneath(other, n)) == had);
    CHECK(r.pool().refill(moved).error().code == errc::out_of_memory);
    r.give(third);
    must(r.pool().refill(moved));
  }
  r.sound();
}

TEST_CASE("a block that is foreseen to follow another gets the mapping that was kept for it, which no other one gets") {
  auto const nth = [](std::uint64_t as, std::uint64_t now) {
    request r = movable(chunk_bytes);
    r.foreseen = {.as = as, .now = now, .until = now + 5, .again = now + 10};
    return r;
  };
  plain_rig r;
  address const one = r.take(nth(1, 1)), two = r.take(nth(2, 2));
  r.give(one);
  r.give(two);
  CHECK(r.take(nth(3, 6)) != one);
  CHECK(r.take(nth(2, 12)) == two);
  CHECK(r.take(nth(1, 13)) == one);
  r.sound();
}

TEST_CASE("a mapping that is kept for a block is lent to one that is gone before it comes") {
  auto const nth = [](std::uint64_t as, std::uint64_t now, std::uint64_t until, bool dies = true) {
    request r = movable(chunk_bytes);
    r.foreseen = {.as = as, .now = now, .until = until, .dies = dies, .again = until + 20};
    return r;
  };
  plain_rig r;
  address const own = r.take(nth(1, 1, 5));  // until it is wanted again, at 25
  r.give(own);
  SUBCASE("it is found by whom it is kept for, again and again") {
    for (std::uint64_t const now : {6U, 8U}) {
      address const other = r.take(nth(2, now, now + 1));
      CHECK(other == own);
      r.give(other);
    }
    request unknown = movable(chunk_bytes);
    unknown.foreseen = {.now = 12, .until = 12, .dies = true};
    address const other = r.take(unknown);
    CHECK(other == own);
    r.give(other);
    CHECK(r.stats().stitches_made == 1);
    CHECK(r.take(nth(1, 25, 30)) == own);
  }
  SUBCASE("not to one that is there still when it is wanted") { CHECK(r.take(nth(2, 6, 26)) != own); }
  SUBCASE("nor to one that leaves and comes back") { CHECK(r.take(nth(2, 6, 7, false)) != own); }
  SUBCASE("nor where others have its memory") {
    address const taken = r.take(chunk_bytes);
    REQUIRE(r.device.beneath(taken, chunk_bytes).size() == 1);
    CHECK(r.take(nth(2, 6, 7)) != own);
  }
  r.sound();
}

TEST_CASE("a mapping is kept for a block that comes later than foreseen, but not for one that is long overdue") {
  auto const nth = [](std::uint64_t as, std::uint64_t now) {
    request q = movable(chunk_bytes);
    q.foreseen = {.as = as, .now = now, .until = now + 5, .again = now + 10};
    return q;
  };
  plain_rig r;
  address const late = r.take(nth(1, 1));
  r.give(late);
  address const soon = r.take(nth(2, 40));
  CHECK(soon != late);
  CHECK(r.take(movable(chunk_bytes)) != late);
  CHECK(r.take(nth(3, 60)) == late);
  CHECK(r.take(nth(1, 61)) != late);
  r.sound();
}

TEST_CASE("a block finds the mapping that was kept for it among any number of others") {
  constexpr std::uint64_t many = 1500;
  plain_rig r;
  std::vector<address> all;
  auto const nth = [](std::uint64_t as, std::uint64_t now) {
    request q = movable(chunk_bytes);
    q.foreseen = {.as = as, .now = now, .until = now + 1, .again = now + many};
    return q;
  };
  for (std::uint64_t i = 1; i <= many; ++i) {
    all.push_back(r.take(nth(i, i)));
    r.give(all.back());
  }
  auto const calls = r.device.calls.calls();
  for (std::uint64_t i = many; i > 0; --i) {
    address const again = r.take(nth(i, many + i));
    REQUIRE(again == all[i - 1]);
    r.give(again);
  }
  CHECK(r.device.calls.calls() == calls);
  r.sound();
}

TEST_CASE("a kept mapping is made up for although another stream has come to rest without a fence") {
  auto const kept = [](std::uint64_t now) {
    request q = movable(2 * chunk_bytes, a);
    q.foreseen = {.as = 1, .now = now, .until = now + 5, .again = now + 10};
    return q;
  };
  rig_options o = chunks(8);
  o.time.lag = 0;
  stream_rig r(o);
  address const rests = r.take({.size = chunk_bytes, .on = b}), spare = r.take({.size = chunk_bytes, .on = a});
  address const block = r.take(kept(1));
  r.give(rests);
  r.give(block);
  address const over = r.take(chunk_bytes, a), another = r.take(chunk_bytes, a);  // its chunks
  r.give(spare);
  CHECK(r.take(kept(11)) == block);
  r.sound();
  r.give(over);
  r.give(another);
}

TEST_CASE("a mapping that can't be made up for is kept for its block no more, but the one made in its place") {
  constexpr bytes n = chunk_bytes + half_chunk;
  auto const kept = [](std::uint64_t now) {
    request q = movable(n);
    q.foreseen = {.as = 1, .now = now, .until = now + 5, .again = now + 10};
    return q;
  };
  plain_rig r;
  r.pool().set_movable_chunk(half_chunk);
  address const small = r.take(movable(half_chunk));
  r.pool().set_movable_chunk(chunk_bytes);
  r.give(r.take(movable(chunk_bytes)));
  r.give(small);
  address const first = r.take(kept(1));
  REQUIRE(r.device.beneath(first, n).size() == 2);
  REQUIRE(r.reserved() == n);
  r.give(first);
  address const over = r.take(movable(half_chunk));  // the only chunk of its size
  address const second = r.take(kept(11));
  CHECK(second != first);
  r.give(second);
  auto const calls = r.device.calls.calls();
  CHECK(r.take(kept(21)) == second);
  CHECK(r.device.calls.calls() == calls);
  r.sound();
  r.give(over);
}

TEST_CASE("a pool tells in which chunks movable blocks come") {
  plain_rig r;
  CHECK(r.pool().movable_chunk() == chunk_bytes);
  (void)r.take(movable(2 * chunk_bytes));
  r.pool().set_limit(3 * chunk_bytes);
  CHECK(r.pool().movable_chunk() == chunk_bytes);
  r.pool().set_movable_chunk(chunk_bytes / 2);
  CHECK(r.pool().movable_chunk() == chunk_bytes / 2);
  address const smaller = r.take(movable(chunk_bytes));
  CHECK(memories(r.device.beneath(smaller, chunk_bytes)).size() == 2);
  r.pool().set_movable_chunk(1);
  CHECK(r.pool().movable_chunk() == granule);
  r.pool().set_movable_chunk(0);
  CHECK(r.pool().movable_chunk() == chunk_bytes);
}

TEST_CASE("only of movable blocks anything can be foreseen") {
  plain_rig r;
  address const plain = r.take(chunk_bytes), moved = r.take(movable(chunk_bytes));
  CHECK(r.pool().foresee(plain, {}).error().code == errc::invalid_argument);
  CHECK(r.pool().foresee(moved + 512, {}).error().code == errc::unknown_pointer);
  r.give(moved);
  CHECK(r.pool().foresee(moved, {}).error().code == errc::double_free);
}

TEST_CASE("a left mapping that can't be replaced leaves the block without memory and everything else whole") {
  for (driver_call const c : {driver_call::unmap, driver_call::map, driver_call::set_access}) {
    plain_rig r({.host_memory = true});
    address const moved = r.take(movable(3 * chunk_bytes));
    must(r.pool().vacate(moved, vacating::leave));
    address const other = r.take(chunk_bytes);
    std::memset(to_pointer(other), 9, chunk_bytes);
    auto const spare = r.holes(2);
    r.device.calls.arm({.first = 0, .only = c});
    CHECK(r.pool().refill(moved).error().code == errc::driver_failure);
    r.device.calls.disarm();
    r.sound();
    must(r.pool().refill(moved));
    std::memset(to_pointer(moved), 5, 3 * chunk_bytes);
    CHECK(static_cast<unsigned char const*>(to_pointer(other))[chunk_bytes - 1] == 9);
    r.sound();
    r.give(moved);
    r.give(other);
    r.give(spare);
  }
}

TEST_CASE("an idle mapping that the device may still use is not changed") {
  stream_rig r(chunks(6));
  address const first = r.take(movable(2 * chunk_bytes, a));
  r.give(first);
  address const over = r.take(chunk_bytes, a);  // one of its two, at once on the same stream
  auto const before = memories(r.device.beneath(first, 2 * chunk_bytes));
  address const second = r.take(movable(2 * chunk_bytes, a));
  CHECK(second != first);
  CHECK(memories(r.device.beneath(first, 2 * chunk_bytes)) == before);
  r.give(second);
  r.give(over);
}

TEST_CASE("a vacated block shows other memory, which is neither the pool's nor taken by it") {
  plain_rig r({.host_memory = true});
  address const moved = r.take(movable(2 * chunk_bytes));
  must(r.pool().vacate(moved));
  borrowed_device lender(r.device);
  handle const first = must(lender.create(chunk_bytes));
  handle const second = must(lender.create(2 * chunk_bytes));
  lent_memory const pieces[] = {{first, chunk_bytes}, {second, 2 * chunk_bytes}};
  must(r.pool().show(moved, pieces));
  auto const beneath = r.device.beneath(moved, 2 * chunk_bytes);
  REQUIRE(beneath.size() == 2);
  CHECK(beneath[0].memory == first);
  CHECK(beneath[1].memory == second);
  std::memset(to_pointer(moved), 5, 2 * chunk_bytes);
  r.sound();
  CHECK(r.pool().refill(moved).error().code == errc::invalid_argument);
  CHECK(r.pool().show(moved, pieces).error().code == errc::invalid_argument);
  must(r.pool().hide(moved));
  must(r.pool().hide(moved));
  CHECK(r.device.beneath(moved, 1).empty());
  must(r.pool().refill(moved));
  CHECK(r.pool().show(moved, pieces).error().code == errc::invalid_argument);
  must(r.pool().vacate(moved));

  SUBCASE("it is unmapped when the block is freed") {
    must(r.pool().show(moved, pieces));
    r.give(moved);
    must(lender.release(first));
    must(lender.release(second));
  }
  SUBCASE("what finds no room at its addresses is not shown") {
    handle const large = must(lender.create(1_GiB));
    lent_memory const too_much[] = {{first, chunk_bytes}, {large, 1_GiB}};
    CHECK(r.pool().show(moved, too_much).error().code == errc::out_of_addresses);
    for (handle h : {first, second, large}) must(lender.release(h));
  }
  SUBCASE("and a driver that can't map it leaves the block as it was") {
    for (driver_call const c : {driver_call::map, driver_call::set_access}) {
      r.device.calls.arm({.first = c == driver_call::map ? 1u : 0u, .only = c});
      CHECK(r.pool().show(moved, pieces).error().code == errc::driver_failure);
      r.device.calls.disarm();
      CHECK(r.device.beneath(moved, 1).empty());
      r.sound();
    }
    must(r.pool().show(moved, pieces));
    r.device.calls.arm({.first = 0, .only = driver_call::unmap});
    CHECK(r.pool().hide(moved).error().code == errc::driver_failure);
    r.device.calls.disarm();
    CHECK_FALSE(r.device.beneath(moved, 1).empty());
    must(r.pool().hide(moved));
    for (handle h : {first, second}) must(lender.release(h));
  }
}

TEST_CASE("what a block shows is unmapped when the pool goes") {
  watched_device device(either_device(must(memfd::open({.granularity = granule}))));
  borrowed_device lender(device);
  handle const h = must(lender.create(chunk_bytes));
  {
    basic_pool<rig_config<one_stream>> pool{borrowed_device(device), pool_options{.home_addresses = 1_GiB}};
    address const moved = must(pool.allocate(movable(chunk_bytes)));
    must(pool.vacate(moved));
    lent_memory const piece[] = {{h, chunk_bytes}};
    must(pool.show(moved, piece));
  }
  must(lender.release(h));
  CHECK(device.idle());
}

TEST_CASE("a pool may go while blocks are vacated") {
  plain_rig r;
  must(r.pool().vacate(r.take(movable(2 * chunk_bytes))));
  r.destroy();
}

TEST_CASE("vacating and refilling twice changes nothing") {
  plain_rig r;
  address const moved = r.take(movable(chunk_bytes));
  must(r.pool().refill(moved));
  must(r.pool().vacate(moved));
  auto const calls = r.device.calls.calls();
  must(r.pool().vacate(moved));
  CHECK(r.device.calls.calls() == calls);
}

TEST_CASE("only live movable blocks are vacated and refilled") {
  plain_rig r;
  address const ordinary = r.take(2 * chunk_bytes);
  CHECK(r.pool().vacate(ordinary).error().code == errc::invalid_argument);
  CHECK(r.pool().refill(ordinary).error().code == errc::invalid_argument);
  CHECK(r.pool().vacate(address{12}).error().code == errc::unknown_pointer);
  address const moved = r.take(movable(chunk_bytes));
  CHECK(r.pool().vacate(moved + 512).error().code == errc::unknown_pointer);
  r.give(moved);
  CHECK(r.pool().vacate(moved).error().code == errc::double_free);
  CHECK(r.pool().refill(moved).error().code == errc::double_free);
}

TEST_CASE("a pinned pool keeps what its idle mappings map") {
  plain_rig r;
  address const first = r.take(movable(2 * chunk_bytes));
  r.give(first);
  address const over = r.take(chunk_bytes);  // one of its two
  r.pool().pin();
  auto const before = memories(r.device.beneath(first, 2 * chunk_bytes));
  address const second = r.take(movable(2 * chunk_bytes));
  CHECK(second != first);
  CHECK(memories(r.device.beneath(first, 2 * chunk_bytes)) == before);
  r.give(second);
  r.give(over);
}

TEST_CASE("a pinned pool keeps the memory under its blocks") {
  plain_rig r;
  address const moved = r.take(movable(2 * chunk_bytes));
  r.pool().pin();
  CHECK(r.pool().vacate(moved).error().code == errc::invalid_argument);
  CHECK_FALSE(r.device.beneath(moved, 2 * chunk_bytes).empty());
}

TEST_CASE("a pool that never stitches has no movable blocks") {
  rig<rig_config<one_stream>::with_stitch<no_stitch>> r;
  result<address> const got = r.pool().allocate(movable(chunk_bytes));
  REQUIRE_FALSE(got);
  CHECK(got.error().code == errc::not_supported);
  CHECK(r.reserved() == 0);
}

TEST_CASE("a driver that can't unmap leaves a block as it is") {
  plain_rig r({.host_memory = true});
  address const moved = r.take(movable(2 * chunk_bytes));
  std::memset(to_pointer(moved), 7, 2 * chunk_bytes);
  r.device.calls.arm({.first = 0, .only = driver_call::unmap});
  CHECK(r.pool().vacate(moved).error().code == errc::driver_failure);
  r.device.calls.disarm();
  CHECK(static_cast<unsigned char const*>(to_pointer(moved))[2 * chunk_bytes - 1] == 7);
  r.sound();
}

TEST_CASE("memory that another stream may still use comes under a block behind a wait") {
  stream_rig r(chunks(2));
  address const moved = r.take(movable(chunk_bytes, a));
  must(r.pool().vacate(moved));
  r.give(r.take(2 * chunk_bytes, a), a);
  must(r.pool().refill(moved, b));
  CHECK(r.stats().device_waits == 1);
}

TEST_CASE("callbacks are asked for memory when a block is refilled") {
  plain_rig r(chunks(2));
  address const moved = r.take(movable(2 * chunk_bytes));
  must(r.pool().vacate(moved));
  address const other = r.take(chunk_bytes);
  memory_account seen;
  r.pool().on_out_of_memory([&](memory_account const& account) {
    seen = account;
    return r.pool().deallocate(other).has_value();
  });
  must(r.pool().refill(moved));
  CHECK(seen.requested == 2 * chunk_bytes);
}
