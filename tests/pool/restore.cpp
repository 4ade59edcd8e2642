/// Bringing back arrangements of blocks: a pinned pool keeps every address and what lies beneath, and `allocate_at`
/// puts a block where one was. And what a pool's user notes an arrangement with: `each_live`, `look_at`, snapshots,
/// events.

#include <cstring>
#include <set>

#include "gmlake/observe/both.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "tests/pool/rig.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};

using gmlake_rig = rig<gmlake_config<borrowed_device, simulated_streams>>;

[[nodiscard]] rig_options pinned() {
  rig_options o;
  o.pool.pinned = true;
  return o;
}

/// A block as its user notes it, to have it back later.
struct noted {
  address at{};
  bytes requested = 0;
  bytes size = 0;
  stream on{};
  bool stitched = false;
  std::vector<physical_piece> beneath;
};

template <class Rig>
[[nodiscard]] std::vector<noted> note(Rig& r) {
  std::vector<noted> all;
  r.pool().each_live([&](block const& one, stream on) {
    all.push_back({one.begin, one.requested, one.size, on, one.view != nullptr, {}});
  });
  for (noted& n : all) n.beneath = r.device.beneath(n.at, n.size);
  return all;
}

[[nodiscard]] bool same(std::vector<physical_piece> const& x, std::vector<physical_piece> const& y) {
  return std::ranges::equal(x, y, [](physical_piece const& p, physical_piece const& q) {
    return p.memory == q.memory && p.offset == q.offset && p.size == q.size;
  });
}

/// All that a snapshot tells, as text to compare.
template <class Rig>
[[nodiscard]] std::string state_of(Rig& r) {
  std::string out;
  auto const put = [&out](auto... n) { ((out += std::to_string(n) + ' '), ...); };
  pool_snapshot const shot = r.pool().snapshot();
  for (auto const& c : shot.chunks) put(to_integer(c.home), c.size);
  for (auto const& x : shot.blocks) {
    put(to_integer(x.begin), x.size, x.requested, to_integer(x.owner), static_cast<int>(x.state), x.pending);
  }
  for (auto const& s : shot.stitches) {
    put(to_integer(s.begin), s.size, s.requested, to_integer(s.owner), to_integer(s.block), s.served, s.live);
  }
  pool_stats const s = r.stats();
  put(s.requested.now, s.live.now, s.reserved.now, s.mapped.now, s.allocations, s.deallocations, s.stitch_hits);
  return out;
}

/// `allocate_at` refuses, and nothing has changed.
template <class Rig>
void refuses(Rig& r, address at, request const& wanted) {
  CAPTURE(to_integer(at));
  CAPTURE(wanted.size);
  std::string const before = state_of(r);
  fails_with(r.pool().allocate_at(at, wanted), errc::out_of_memory);
  CHECK(state_of(r) == before);
  r.sound();
}

struct walked {
  std::size_t restored = 0, stitched = 0, own = 0;
};

/// A random life of a pinned pool, in the middle of which an arrangement is noted that is brought back at its end.
template <class Rig>
void walk_and_restore(std::uint64_t seed, bool host_memory, walked& seen) {
  CAPTURE(seed);
  CAPTURE(host_memory);
  std::mt19937_64 random(seed);
  auto const below = [&](bytes n) { return static_cast<bytes>(random() % n); };
  rig_options o = pinned();
  o.pool.limit = 24 * chunk_bytes;
  o.host_memory = host_memory;
  o.time.lag = seed % 3 == 0 ? timeline_options::endless : 40;
  bool const uses = seed % 2 == 0;
  Rig r(o);
  std::vector<address> live;
  auto const sound = [&] {
    char const* const fault = r.pool().validate();
    REQUIRE_MESSAGE(fault == nullptr, fault);
  };
  auto const step = [&](bytes growing) {
    r.time->advance();
    std::size_t const what = below(100);
    if (what == 0) {
      (void)r.pool().trim();
    } else if (what == 1) {
      (void)r.pool().trim_passed();
    } else if (what < 6 && uses && !live.empty()) {
      must(r.pool().record_stream(live[below(live.size())], stream{below(3)}));
    } else if (what < growing || live.empty()) {
      request q{.size = below(3) == 0 ? below(20'000) : below(3 * chunk_bytes), .on = stream{below(3)}};
      if (below(10) == 0) q.alignment = bytes{512} << below(8);
      if (auto const got = r.pool().allocate(q)) live.push_back(*got);
    } else {
      std::swap(live[below(live.size())], live.back());
      r.give(live.back());
      live.pop_back();
    }
    sound();
  };
  for (int i = 0; i < 200; ++i) step(60);
  auto arrangement = note(r);
  REQUIRE(arrangement.size() == live.size());
  for (int i = 0; i < 200; ++i) step(52);
  while (!live.empty()) {
    r.give(live.back());
    live.pop_back();
  }
  if (uses) {
    r.time->finish_all();
    (void)r.pool().trim();  // what is parked can't be had
  }
  sound();
  std::string const empty = state_of(r);

  std::ranges::shuffle(arrangement, random);
  for (std::size_t i = 0; i < arrangement.size(); ++i) {
    noted const& n = arrangement[i];
    address const at = must(r.pool().allocate_at(n.at, {.size = n.requested, .on = n.on}));
    REQUIRE(at == n.at);
    bool const there = r.pool().look_at(at, [&](block const& one, stream on) {
      CHECK(one.size == n.size);
      CHECK(one.requested == n.requested);
      CHECK((one.view != nullptr) == n.stitched);
      CHECK(on == n.on);
    });
    CHECK(there);
    CHECK(same(r.device.beneath(n.at, n.size), n.beneath));
    if (host_memory) std::memset(to_pointer(at), static_cast<int>(i % 251), n.requested);
    sound();
    seen.stitched += n.stitched;
    ++seen.restored;
  }
  r.sound();
  CHECK(note(r).size() == arrangement.size());
  for (std::size_t i = 0; i < arrangement.size(); ++i) {
    noted const& n = arrangement[i];
    if (host_memory) {
      auto const* const p = static_cast<unsigned char const*>(to_pointer(n.at));
      CHECK(std::all_of(p, p + n.requested, [i](unsigned char c) { return c == i % 251; }));
    }
    fails_with(r.pool().allocate_at(n.at, {.size = n.requested, .on = n.on}), errc::out_of_memory);
    r.give(n.at);
    sound();
  }
  for (int i = 0; i < 100; ++i) step(52);  // an ordinary pool again
  r.destroy();
}

template <class Rig>
void walk_all() {
  std::uint64_t const first = from_environment("GMLAKE_TEST_SEED", 1);
  std::uint64_t const walks = from_environment("GMLAKE_TEST_WALKS", 5);
  walked seen;
  for (std::uint64_t seed = first; seed < first + 3 * walks; ++seed) {
    walk_and_restore<Rig>(seed, false, seen);
    walk_and_restore<Rig>(seed, true, seen);
  }
  CHECK(seen.restored > 100);
  CHECK(seen.stitched > 10);
}

}  // namespace

// ---- allocate_at
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("an arrangement noted in a pinned pool comes back as it was", Rig, stream_rig, gmlake_rig) {
  walk_all<Rig>();
}

TEST_CASE("a block comes back in the lake, out of the middle of what is free") {
  plain_rig r;
  auto const all = r.take_many(4, quarter_chunk);
  r.give(all);
  address const at = all[1];
  CHECK(must(r.pool().allocate_at(at, {.size = quarter_chunk})) == at);
  r.sound();
  address const other = r.take(quarter_chunk);
  CHECK(other != at);
  r.give({at, other});
  CHECK(must(r.pool().allocate_at(all[0], {.size = chunk_bytes - quarter_chunk})) == all[0]);
  r.sound();
}

TEST_CASE("a block comes back across chunks and streams' shelves, whoever used the memory last") {
  stream_rig r;
  address const whole = r.take(2 * chunk_bytes, a);
  r.give(whole);
  std::vector<address> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(r.take(half_chunk, i % 2 == 0 ? a : b));
  r.give(parts);
  r.sound();
  auto const waits = r.stats().device_waits;
  CHECK(must(r.pool().allocate_at(whole, {.size = 2 * chunk_bytes, .on = stream{3}})) == whole);
  CHECK(r.stats().device_waits == waits);  // the order is the caller's business
  CHECK(r.stats().host_waits == 0);
  r.sound();
}

TEST_CASE("a block comes back on the stitch that it was on, and on no other") {
  plain_rig r(pinned());
  auto const kept = r.holes(2);
  address const p = r.take(2 * chunk_bytes);
  REQUIRE(r.stats().stitches_live == 1);
  r.give(p);
  auto const made = r.stats().stitches_made;
  CHECK(must(r.pool().allocate_at(p, {.size = 2 * chunk_bytes})) == p);
  CHECK(r.stats().stitches_live == 1);
  CHECK(r.stats().stitches_made == made);
  r.give(p);
  CHECK(must(r.pool().allocate_at(p, {.size = chunk_bytes + granule})) == p);  // less of it
  r.sound();
  CHECK(r.take(chunk_bytes - granule) != p);
}

TEST_CASE("bringing a block back calls neither the driver nor the streams") {
  stream_rig r(pinned());
  auto const kept = r.holes(2, a);
  address const stitched = r.take(2 * chunk_bytes, a);
  address const plain = r.take(half_chunk, b);
  r.give({stitched, plain});
  auto const calls = r.device.calls.calls();
  auto const records = r.time->counts().records;
  (void)must(r.pool().allocate_at(stitched, {.size = 2 * chunk_bytes, .on = b}));
  (void)must(r.pool().allocate_at(plain, {.size = half_chunk, .on = a}));
  CHECK(r.device.calls.calls() == calls);
  CHECK(r.time->counts().records == records);
}

TEST_CASE("what is brought back is freed, recorded and refused like any other block") {
  stream_rig r;
  address const p = r.take(chunk_bytes, a);
  (void)r.take(small_block, b);
  r.give(p);
  REQUIRE(must(r.pool().allocate_at(p, {.size = chunk_bytes, .on = b})) == p);
  must(r.pool().record_stream(p, a));
  must(r.pool().deallocate(p));
  fails_with(r.pool().deallocate(p), errc::double_free);
  r.sound();
  CHECK(r.stats().allocations == 3);
  CHECK(r.stats().deallocations == 2);
}

TEST_CASE("a block of no bytes comes back too") {
  plain_rig r;
  address const p = r.take(bytes{0});
  r.give(p);
  CHECK(must(r.pool().allocate_at(p, {})) == p);
  r.sound();
}

TEST_CASE("where something lives already, no block comes back") {
  plain_rig r;
  auto const all = r.take_many(4, quarter_chunk);
  r.give({all[0], all[2]});
  refuses(r, all[1], {.size = quarter_chunk});
  refuses(r, all[0], {.size = half_chunk});                   // runs into the next
  refuses(r, all[0] + granule, {.size = quarter_chunk});      // the same, from further up
  refuses(r, all[1] + granule, {.size = granule});            // within one
  refuses(r, all[3], {.size = quarter_chunk + chunk_bytes});  // beyond where the range has grown
  refuses(r, all[2], {.size = quarter_chunk + small_block});  // into the last
  CHECK(must(r.pool().allocate_at(all[0], {.size = quarter_chunk})) == all[0]);
}

TEST_CASE("where nothing ever was, no block comes back") {
  plain_rig r;
  refuses(r, address{}, {.size = 512});
  address const p = r.take(chunk_bytes);
  r.give(p);
  refuses(r, p + chunk_bytes, {.size = 512});
  refuses(r, p + 64 * chunk_bytes, {.size = 512});
  refuses(r, p - granule, {.size = 512});
  refuses(r, address{} + ~bytes{0} - 511, {.size = 512});
}

TEST_CASE("where the memory was released, no block comes back") {
  plain_rig r;
  auto const all = r.take_many(3, chunk_bytes);
  r.give(all[1]);
  REQUIRE(r.trim() == chunk_bytes);
  refuses(r, all[1], {.size = chunk_bytes});
  r.give(all[0]);
  refuses(r, all[0], {.size = 2 * chunk_bytes});  // from a chunk into a hole
  refuses(r, all[1] + half_chunk, {.size = chunk_bytes});
}

TEST_CASE("what a live stitch has taken is not free, nor is a stitch whose memory is") {
  plain_rig r(pinned());
  auto const kept = r.holes(2);
  address const hole = kept[0] - chunk_bytes;
  address const p = r.take(2 * chunk_bytes);
  REQUIRE(r.stats().stitches_live == 1);
  refuses(r, p, {.size = 2 * chunk_bytes});
  refuses(r, hole, {.size = chunk_bytes});
  r.give(p);
  address const q = must(r.pool().allocate_at(hole, {.size = small_block}));
  refuses(r, p, {.size = 2 * chunk_bytes});
  r.give(q);
  refuses(r, p, {.size = 2 * chunk_bytes + 512});  // more than the stitch has
  refuses(r, p + granule, {.size = granule});      // within it
  CHECK(must(r.pool().allocate_at(p, {.size = 2 * chunk_bytes})) == p);
}

TEST_CASE("a stitch that was evicted brings nothing back") {
  plain_rig r;
  auto const kept = r.holes(2);
  address const p = r.take(2 * chunk_bytes);
  r.give(p);
  (void)r.trim();
  refuses(r, p, {.size = 2 * chunk_bytes});
}

TEST_CASE("what is parked can't be had until its uses are over") {
  stream_rig r(pinned());
  auto const kept = r.holes(2, a);
  bytes n = chunk_bytes;
  SUBCASE("in the lake") {}
  SUBCASE("stitched") { n = 2 * chunk_bytes; }
  address const p = r.take(n, a);
  must(r.pool().record_stream(p, b));
  r.give(p);
  refuses(r, p, {.size = n, .on = a});
  refuses(r, p, {.size = n, .on = b});
  (void)r.trim();
  CHECK(must(r.pool().allocate_at(p, {.size = n, .on = a})) == p);
}

TEST_CASE("no size is too large to be refused") {
  plain_rig r;
  address const p = r.take(chunk_bytes);
  r.give(p);
  for (bytes n : {~bytes{0}, ~bytes{0} - 510, bytes{1} << 63, bytes{1} << 48}) refuses(r, p, {.size = n});
}

TEST_CASE("an address that no block can have is refused") {
  plain_rig r;
  address const p = r.take(chunk_bytes);
  r.give(p);
  fails_with(r.pool().allocate_at(p + 1, {.size = granule}), errc::out_of_memory);
  char const* const fault = r.pool().validate();
  CHECK_MESSAGE(fault == nullptr, fault);
}

TEST_CASE("a block on chunks of its own comes back as large as it was") {
  plain_rig r(pinned());
  for (placement where : {placement::own_chunks, placement::one_handle}) {
    for (bytes n : {chunk_bytes, 2 * chunk_bytes}) {
      request const q{.size = n, .where = where};
      address const p = r.take(q);
      r.give(p);
      CHECK(must(r.pool().allocate_at(p, q)) == p);
      r.sound();
      CHECK(r.stats().live.now == n);
      r.give(p);
    }
  }
}

TEST_CASE("a block on chunks of its own comes back to be alone on them") {
  plain_rig r(pinned());
  request const q{.size = chunk_bytes - granule / 2, .where = placement::own_chunks};
  address const p = r.take(q);
  bytes const placed = r.stats().live.now;
  r.give(p);
  CHECK(must(r.pool().allocate_at(p, q)) == p);
  CHECK(r.stats().live.now == placed);
}

// ---- pinned pools
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("of a pinned pool nothing is unmapped or released before it goes") {
  bool later = false;
  SUBCASE("pinned from the beginning") {}
  SUBCASE("pinned later") { later = true; }
  rig_options o = later ? rig_options{} : pinned();
  o.cache.stitches = 1;
  o.pool.limit = 16 * chunk_bytes;
  stream_rig r(o);
  auto const kept = r.holes(4, a);
  if (later) r.pool().pin();
  auto const unmaps = r.device.calls.calls(driver_call::unmap);
  for (bytes i = 0; i < 20; ++i) r.give(r.take((2 + i % 3) * chunk_bytes - (i % 5) * granule, i % 2 == 0 ? a : b));
  r.give(r.take({.size = chunk_bytes, .on = a, .where = placement::own_chunks}));
  r.give(r.take({.size = 2 * chunk_bytes, .on = a, .where = placement::one_handle}));
  r.give(kept);
  CHECK(r.trim() == 0);
  CHECK(must(r.pool().trim_passed()) == 0);
  fails_with(r.pool().allocate(32 * chunk_bytes, a), errc::out_of_memory);
  r.sound();
  CHECK(r.stats().stitches_cached > 1);
  CHECK(r.device.calls.calls(driver_call::unmap) == unmaps);
  CHECK(r.device.calls.calls(driver_call::release) == 0);
  CHECK(r.pool().free_chunks() == r.reserved());
  r.destroy();
}

TEST_CASE("what was evicted before a pool is pinned is no matter") {
  plain_rig r;
  r.give(r.take(chunk_bytes));
  CHECK(r.trim() == chunk_bytes);
  address const p = r.take(chunk_bytes);
  r.pool().pin();
  r.give(p);
  CHECK(r.trim() == 0);
  CHECK(r.take(chunk_bytes) == p);
}

// ---- looking
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("every live block is shown once, with whom it was handed out to") {
  stream_rig r;
  auto const kept = r.holes(2, a);
  address const stitched = r.take(2 * chunk_bytes, b);
  address const small = r.take(small_block, b);
  std::set<address> seen;
  r.pool().each_live([&](block const& one, stream on) {
    CHECK(seen.insert(one.begin).second);
    CHECK(on == (one.begin == stitched || one.begin == small ? b : a));
    CHECK((one.view != nullptr) == (one.begin == stitched));
    CHECK(one.state == block_state::live);
  });
  CHECK(seen.size() == kept.size() + 2);
}

TEST_CASE("looking at an address finds the live block that begins there, and only that") {
  stream_rig r;
  address const p = r.take(half_chunk + 1, a);
  int looks = 0;
  CHECK(r.pool().look_at(p, [&](block const& one, stream on) {
    ++looks;
    CHECK(one.requested == half_chunk + 1);
    CHECK(one.size >= half_chunk + 1);
    CHECK(on == a);
  }));
  CHECK(looks == 1);
  auto const never = [&](block const&, stream) { ++looks; };
  CHECK_FALSE(r.pool().look_at(p + 512, never));
  CHECK_FALSE(r.pool().look_at(address{}, never));
  r.give(p);
  CHECK_FALSE(r.pool().look_at(p, never));
  CHECK(looks == 1);
}

TEST_CASE("a snapshot tells which block a stitch serves, and how much of it") {
  stream_rig r;
  auto const kept = r.holes(2, a);
  bytes const n = chunk_bytes + quarter_chunk + 100;
  address const p = r.take(n, a);
  REQUIRE(r.stats().stitches_live == 1);
  auto shot = r.pool().snapshot();
  REQUIRE(shot.stitches.size() == 1);
  CHECK(shot.stitches[0].block == p);
  CHECK(shot.stitches[0].served == align_up(n, bytes{512}));
  CHECK(shot.stitches[0].served <= shot.stitches[0].size);
  CHECK(shot.stitches[0].requested == n);
  CHECK(p >= shot.stitches[0].begin);
  CHECK(p + shot.stitches[0].served <= shot.stitches[0].begin + shot.stitches[0].size);
  r.give(p);
  shot = r.pool().snapshot();
  REQUIRE(shot.stitches.size() == 1);
  CHECK(shot.stitches[0].block == address{});
  CHECK(shot.stitches[0].served == 0);
}

namespace {

/// Looks at the block itself in each event, as observers may while it lasts.
struct placing_observer : counters {
  void allocated(block_event const& e) noexcept {
    counters::allocated(e);
    wrong += e.placed == nullptr || e.placed->begin != e.at || e.placed->size != e.size ||
             e.placed->requested != e.requested;
    on_stitches += e.placed != nullptr && e.placed->view != nullptr;
  }
  void deallocated(block_event const& e) noexcept {
    counters::deallocated(e);
    wrong += e.placed == nullptr || e.placed->begin != e.at || e.placed->size != e.size ||
             e.placed->requested != e.requested;
    on_stitches -= e.placed != nullptr && e.placed->view != nullptr;
  }
  int wrong = 0;
  int on_stitches = 0;
};

}  // namespace

TEST_CASE("events come with the block that they are about, brought back ones too") {
  rig<rig_config<simulated_streams>::with_observer<placing_observer>> r(pinned());
  auto const look = [&] { return r.pool().observe([](placing_observer& o) { return o; }); };
  auto const kept = r.holes(2, a);
  address const p = r.take(2 * chunk_bytes, b);
  CHECK(look().on_stitches == 1);
  r.give(p);
  CHECK(look().on_stitches == 0);
  (void)must(r.pool().allocate_at(p, {.size = 2 * chunk_bytes, .on = a}));
  (void)r.take({.size = granule, .on = b, .where = placement::own_chunks});
  CHECK(look().on_stitches == 1);
  r.give(kept);
  CHECK(look().wrong == 0);
}

// ---- access
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("changing access sets it anew on all that is mapped, and on what is mapped later") {
  plain_rig r;
  auto const kept = r.holes(2);
  r.give(r.take(2 * chunk_bytes));
  (void)r.take(small_block);
  auto const before = r.device.calls.calls(driver_call::set_access);
  for (auto& m : r.device.mappings) m.second.writable = false;  // as if others were meant
  int changed = 0;
  must(r.pool().change_access([&](borrowed_device&) noexcept {
    ++changed;
    return result<void>{};
  }));
  CHECK(changed == 1);
  CHECK(std::ranges::all_of(r.device.mappings, [](auto const& m) { return m.second.writable; }));
  pool_snapshot const shot = r.pool().snapshot();
  CHECK(r.device.calls.calls(driver_call::set_access) - before == shot.chunks.size() + shot.stitches.size());
}

TEST_CASE("a change of access that the backend refuses touches nothing, and one that fails midway says so") {
  plain_rig r;
  (void)r.take(2 * chunk_bytes);
  auto const before = r.device.calls.calls(driver_call::set_access);
  fails_with(r.pool().change_access(
                 [](borrowed_device&) noexcept { return result<void>(failure(errc::invalid_argument, "peer")); }),
             errc::invalid_argument, "peer");
  CHECK(r.device.calls.calls(driver_call::set_access) == before);
  r.device.calls.arm({.first = 1, .only = driver_call::set_access});
  fails_with(r.pool().change_access([](borrowed_device&) noexcept { return result<void>{}; }), errc::driver_failure);
  r.device.calls.disarm();
  r.sound();
}

// ---- faults
// ----------------------------------------------------------------------------------------------------------------

namespace {

/// A pinned pool with an arrangement that is free again, in the lake, stitched, and on chunks of its own.
struct scene {
  scene() : r(options()) {
    kept = r.holes(4, a);
    plain = r.take(half_chunk, b);
    stitched = r.take(2 * chunk_bytes, a);
    own = r.take({.size = 2 * chunk_bytes, .on = a, .where = placement::own_chunks});
    r.give({plain, stitched, own});
  }
  static rig_options options() {
    rig_options o = pinned();
    o.pool.limit = 24 * chunk_bytes;
    o.cache.stitches = 1;
    return o;
  }
  stream_rig r;
  std::vector<address> kept;
  address plain{}, stitched{}, own{};
};

struct operation {
  char const* name;
  bool (*run)(scene&);
};

constexpr operation operations[] = {
    {"bring a block back in the lake",
     [](scene& s) { return s.r.pool().allocate_at(s.plain, {.size = half_chunk, .on = a}).has_value(); }},
    {"bring a stitched block back",
     [](scene& s) { return s.r.pool().allocate_at(s.stitched, {.size = 2 * chunk_bytes, .on = b}).has_value(); }},
    {"bring a block back for a new stream",
     [](scene& s) { return s.r.pool().allocate_at(s.own, {.size = 2 * chunk_bytes, .on = stream{9}}).has_value(); }},
    {"bring back what is not there",
     [](scene& s) { return s.r.pool().allocate_at(s.kept[0], {.size = chunk_bytes, .on = a}).has_value(); }},
    {"stitch and grow", [](scene& s) { return s.r.pool().allocate(7 * chunk_bytes, b).has_value(); }},
    {"run out of memory", [](scene& s) { return s.r.pool().allocate(30 * chunk_bytes, b).has_value(); }},
    {"own chunks",
     [](scene& s) {
       return s.r.pool().allocate({.size = 3 * chunk_bytes, .on = a, .where = placement::own_chunks}).has_value();
     }},
    {"trim", [](scene& s) { return s.r.pool().trim().has_value(); }},
    {"trim without waiting", [](scene& s) { return s.r.pool().trim_passed().has_value(); }},
    {"change access",
     [](scene& s) {
       return s.r.pool().change_access([](borrowed_device&) noexcept { return result<void>{}; }).has_value();
     }},
};

}  // namespace

TEST_CASE("any call of the driver may fail, and what was noted still comes back") {
  for (operation const& op : operations) {
    for (std::uint64_t count : {std::uint64_t{1}, fault_plan::endless}) {
      for (std::uint64_t n = 0;; ++n) {
        CAPTURE(std::string(op.name));
        CAPTURE(count);
        CAPTURE(n);
        REQUIRE(n < 1000);
        scene s;
        pool_stats const before = s.r.stats();
        pool_snapshot const mapped = s.r.pool().snapshot();
        auto const already = s.r.device.calls.faults();
        s.r.device.calls.arm({.first = n, .count = count});
        bool const done = op.run(s);
        pool_stats const after = s.r.stats();
        if (!done) {
          CHECK(after.live.now == before.live.now);
          CHECK(after.allocations == before.allocations);
          CHECK(after.requested.now == before.requested.now);
        }
        bool const over = s.r.device.calls.faults() == already;
        s.r.device.calls.disarm();
        s.r.sound();
        pool_snapshot const still = s.r.pool().snapshot();
        for (chunk_snapshot const& c : mapped.chunks) {
          CHECK(std::ranges::count(still.chunks, c.home, &chunk_snapshot::home) == 1);
        }
        for (stitch_snapshot const& t : mapped.stitches) {
          CHECK(std::ranges::count(still.stitches, t.begin, &stitch_snapshot::begin) == 1);
        }
        // Everything goes back, and the arrangement returns.
        for (noted const& one : note(s.r)) s.r.give(one.at);
        CHECK(must(s.r.pool().allocate_at(s.plain, {.size = half_chunk, .on = a})) == s.plain);
        CHECK(must(s.r.pool().allocate_at(s.stitched, {.size = 2 * chunk_bytes, .on = a})) == s.stitched);
        CHECK(must(s.r.pool().allocate_at(s.own, {.size = 2 * chunk_bytes, .on = a})) == s.own);
        s.r.sound();
        s.r.destroy();
        if (over) break;
      }
    }
  }
}
