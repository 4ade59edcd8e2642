#include "gmlake/pool/arena.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include "gmlake/pool/course.hpp"
#include "tests/pool/parts_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using holding = arena<parts_rig::config>::holding;

struct arena_rig : parts_rig {
  explicit arena_rig(parts_options const& o = {}) : parts_rig(o) {}
  ~arena_rig() { sound(); }

  arena<config> memory{parts, stitch, grow};

  [[nodiscard]] bool claim(bytes n, bool grows = false) { return must(memory.claim(first, n, grows)); }
  [[nodiscard]] holding hold() { return must(memory.hold(first)); }
  void let_go() { memory.let_go(first, stamp(first)); }
  void give_back(address at, bytes n) { REQUIRE(memory.give_back(at, n, first, stamp(first))); }
  [[nodiscard]] std::uint64_t calls() const { return device.calls.calls(); }
  [[nodiscard]] stitch_snapshot only_stitch() const {
    pool_snapshot const shot = snapshot_of(parts);
    REQUIRE(shot.stitches.size() == 1);
    return shot.stitches[0];
  }

  void sound() const {
    parts_rig::sound();
    char const* const fault = memory.find_fault();
    CHECK_MESSAGE(fault == nullptr, fault);
  }
  /// Nothing of the lake is taken, whatever the arena still knows of.
  void released(bytes free_before) const {
    CHECK_FALSE(memory.held());
    CHECK(memory.taken() == 0);
    CHECK(free() == free_before);
    CHECK(parts.stitches.live() == 0);
    sound();
  }
};

[[nodiscard]] std::vector<bytes> sizes(arena<parts_rig::config> const& a) {
  std::vector<bytes> all;
  for (plan::segment const& s : a.segments()) all.push_back(s.size);
  return all;
}

/// Seconds of this process's own time since it was made: other processes don't count.
class own_time {
 public:
  [[nodiscard]] double seconds() const noexcept {
    return static_cast<double>(std::clock() - begin_) / static_cast<double>(CLOCKS_PER_SEC);
  }

 private:
  std::clock_t begin_ = std::clock();
};

}  // namespace

TEST_CASE("an arena is empty before its first claim") {
  arena_rig r;
  CHECK(r.memory.segments().empty());
  CHECK(r.memory.size() == 0);
  CHECK_FALSE(r.memory.held());
  CHECK_FALSE(r.memory.covers(address{}));
  CHECK_FALSE(r.memory.contains(address{512}, address{1024}));
  CHECK_FALSE(r.memory.holds(address{512}, 512));
  CHECK(r.hold() == holding::nothing);
  r.let_go();
  r.released(0);
}

TEST_CASE("a claim finds nothing where nothing is free, unless it grows") {
  arena_rig r;
  CHECK_FALSE(r.claim(chunk_bytes));
  CHECK(r.memory.wanted() == chunk_bytes);
  r.released(0);
  CHECK(r.claim(chunk_bytes, true));
  CHECK(r.memory.held());
  CHECK(r.memory.size() == chunk_bytes);
}

TEST_CASE("one run of free addresses is taken where it lies, with no driver call") {
  arena_rig r;
  auto const at = r.lay({{quarter_chunk, true}, {512, false}, {half_chunk, true}, {512, false}});
  auto const calls = r.calls();
  REQUIRE(r.claim(half_chunk - 512));
  REQUIRE(r.memory.segments().size() == 1);
  CHECK(r.memory.segments()[0].at == at[1]);
  CHECK(r.memory.segments()[0].offset == 0);
  CHECK(r.memory.size() == half_chunk - 512);
  CHECK(r.memory.taken() == half_chunk - 512);
  CHECK(r.memory.held());
  CHECK(r.free() == quarter_chunk + 512);
  CHECK(r.calls() == calls);
  r.sound();
  r.let_go();
  r.released(quarter_chunk + half_chunk);
}

TEST_CASE("free chunks are one long view, whose mapping stays for the next hold") {
  arena_rig r;
  auto const at = r.lay_chunks(2);
  REQUIRE(r.claim(2 * chunk_bytes));
  REQUIRE(r.memory.segments().size() == 1);
  address const view = r.memory.segments()[0].at;
  CHECK(r.memory.size() == 2 * chunk_bytes);
  CHECK(view == r.only_stitch().begin);
  CHECK(r.only_stitch().planned);
  CHECK(r.free() == 0);
  for (bytes i : {bytes{0}, chunk_bytes}) {
    CHECK(r.device.beneath(view + i, 1).at(0).memory == r.device.beneath(at[i / chunk_bytes], 1).at(0).memory);
  }
  r.sound();
  auto const calls = r.calls();
  auto const claims = r.memory.claims();
  r.let_go();
  r.released(2 * chunk_bytes);
  CHECK(r.parts.stitches.idle().count == 1);
  CHECK(r.hold() == holding::all);
  CHECK(r.memory.held());
  CHECK(r.memory.segments()[0].at == view);
  CHECK(r.memory.claims() == claims);
  CHECK(r.calls() == calls);
  r.sound();
  r.let_go();
}

TEST_CASE("without growth a claim takes other free runs too, largest first, with walls between") {
  arena_rig r({.stitched_from = parts_rig::nothing_stitched});
  auto const at = r.lay({{quarter_chunk, true},
                         {512, false},
                         {128_KiB, true},
                         {512, false},
                         {half_chunk, true},
                         {512, false},
                         {64_KiB - 512, true},
                         {512, false}});
  auto const calls = r.calls();
  REQUIRE(r.claim(4 * chunk_bytes));
  CHECK(sizes(r.memory) == std::vector<bytes>{half_chunk, quarter_chunk, 128_KiB});
  CHECK(r.memory.segments()[0].at == at[2]);
  CHECK(r.memory.segments()[1].at == at[0]);
  CHECK(r.memory.segments()[2].at == at[1]);
  for (std::size_t i = 1; i < 3; ++i) {
    plan::segment const& before = r.memory.segments()[i - 1];
    CHECK(r.memory.segments()[i].offset > before.offset + before.size);
  }
  CHECK(r.memory.wanted() == 4 * chunk_bytes);
  CHECK(r.memory.size() == half_chunk + quarter_chunk + 128_KiB);
  CHECK(r.memory.held());
  CHECK(r.free() == 64_KiB - 512);
  CHECK(r.calls() == calls);
  r.sound();
  r.let_go();
  CHECK(r.free() == 64_KiB - 512 + r.memory.size());
}

TEST_CASE("no more runs are taken than half again as much as is missing") {
  arena_rig r({.stitched_from = parts_rig::nothing_stitched});
  std::vector<parts_rig::piece> pieces;
  for (int i = 0; i < 5; ++i) {
    pieces.push_back({quarter_chunk, true});
    pieces.push_back({512, false});
  }
  r.lay(pieces);
  REQUIRE(r.claim(2 * quarter_chunk));
  CHECK(r.memory.size() == 3 * quarter_chunk);
}

TEST_CASE("where chunks don't suffice, the runs that can't be stitched lie beside the view") {
  arena_rig r;
  auto const at = r.lay({{chunk_bytes, true},
                         {chunk_bytes, false},
                         {chunk_bytes, true},
                         {quarter_chunk, false},
                         {quarter_chunk, true},
                         {half_chunk, false}});
  REQUIRE(r.claim(4 * chunk_bytes));
  CHECK(sizes(r.memory) == std::vector<bytes>{2 * chunk_bytes, quarter_chunk});
  CHECK(r.memory.segments()[0].at == r.only_stitch().begin);
  CHECK(r.memory.segments()[1].at == at[2]);
  CHECK(r.free() == 0);
  r.sound();
  r.let_go();
  CHECK(r.hold() == holding::all);
  CHECK(r.free() == 0);
  r.sound();
}

TEST_CASE("with growth only what is missing comes from the device, and the claim is whole") {
  for (bool stitched : {true, false}) {
    CAPTURE(stitched);
    arena_rig r({.stitched_from = stitched ? granule : parts_rig::nothing_stitched});
    r.lay_chunks(2);
    bytes const before = r.device.device().created_bytes();
    REQUIRE(r.claim(3 * chunk_bytes, true));
    CHECK(r.memory.held());
    CHECK(r.memory.size() == 3 * chunk_bytes);
    CHECK(r.memory.segments().size() == 1);
    CHECK(r.device.device().created_bytes() - before == (stitched ? 1 : 3) * chunk_bytes);
    r.sound();
  }
}

TEST_CASE("a claim that the device refuses holds nothing, and comes again") {
  arena_rig r({.capacity = 5 * chunk_bytes});
  r.lay_chunks(2);
  fails_with(r.memory.claim(r.first, 4 * chunk_bytes, true), errc::out_of_memory);
  CHECK(r.memory.size() == 0);
  r.released(3 * chunk_bytes);  // what growth got stays, as free memory
  CHECK(r.claim(3 * chunk_bytes, true));
}

TEST_CASE("whatever call of the driver fails in a claim, nothing is held and nothing is lost") {
  for (std::uint64_t n = 0;; ++n) {
    CAPTURE(n);
    arena_rig r;
    r.lay_chunks(2);
    r.device.calls.arm({.first = n});
    result<bool> const done = r.memory.claim(r.first, 3 * chunk_bytes, true);
    r.device.calls.disarm();
    if (r.device.calls.faults() == 0) {
      CHECK((done && *done));
      CHECK(n >= 7);  // a chunk's three calls, a view's five
      break;
    }
    if (!done) {
      CHECK(r.memory.size() == 0);
      r.released(r.free());
      CHECK(r.free() >= 2 * chunk_bytes);
    }
    r.parts.owed.settle();
    REQUIRE((done || r.claim(3 * chunk_bytes, true)));
    CHECK(r.memory.held());
    CHECK(r.parts.space.home().reserved() == 5 * chunk_bytes);
  }
}

TEST_CASE("another claim is told from the one before, and so is none") {
  arena_rig r;
  r.lay_chunks(1);
  REQUIRE(r.claim(half_chunk));
  auto const first = r.memory.claims();
  r.let_go();
  REQUIRE(r.claim(chunk_bytes));
  auto const second = r.memory.claims();
  CHECK(second != first);
  CHECK(r.memory.size() == chunk_bytes);
  r.let_go();
  r.memory.forget();
  CHECK(r.memory.claims() != second);
  CHECK(r.memory.segments().empty());
  CHECK(r.hold() == holding::nothing);
  r.released(chunk_bytes);
}

TEST_CASE("an arena contains and covers what lies in one of its segments") {
  arena_rig r({.stitched_from = parts_rig::nothing_stitched});
  auto const at = r.lay({{half_chunk, true}, {512, false}, {quarter_chunk, true}, {512, false}});
  REQUIRE(r.claim(chunk_bytes));
  CHECK(r.memory.contains(at[0], at[0] + half_chunk));
  CHECK(r.memory.contains(at[1], at[1] + quarter_chunk));
  CHECK_FALSE(r.memory.contains(at[0], at[0] + half_chunk + 512));
  CHECK_FALSE(r.memory.contains(at[1] - 512, at[1] + 512));
  CHECK_FALSE(r.memory.contains(at[0], at[1] + 512));  // across
  for (address const covered : {at[0], at[1], at[1] + (quarter_chunk - 1)}) CHECK(r.memory.covers(covered));
  CHECK_FALSE(r.memory.covers(at[0] - 1));
  CHECK_FALSE(r.memory.covers(at[1] + quarter_chunk));
}

TEST_CASE("parts go back whichever they are, and the view rests once all have") {
  std::uint64_t const seed = 11;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  constexpr bytes page = 16_KiB;
  for (int round = 0; round < 20; ++round) {
    arena_rig r;
    r.lay({{chunk_bytes, true},
           {chunk_bytes, false},
           {chunk_bytes, true},
           {quarter_chunk, false},
           {quarter_chunk, true},
           {half_chunk, false}});
    REQUIRE(r.claim(4 * chunk_bytes));
    auto const calls = r.calls();
    std::vector<std::vector<bool>> held;
    for (plan::segment const& s : r.memory.segments()) held.emplace_back(s.size / page, true);
    bytes left = r.memory.size();
    while (left > 0) {
      std::size_t const i = random() % held.size();
      bytes const low = random() % held[i].size();
      bytes const pages = 1 + random() % (held[i].size() - low);
      auto const begin = held[i].begin() + static_cast<std::ptrdiff_t>(low);
      auto const end = begin + static_cast<std::ptrdiff_t>(pages);
      address const at = r.memory.segments()[i].at + low * page;
      bytes const n = pages * page;
      REQUIRE(r.memory.holds(at, n) == (std::find(begin, end, false) == end));
      left -= static_cast<bytes>(std::count(begin, end, true)) * page;
      std::fill(begin, end, false);
      r.give_back(at, n);
      REQUIRE_FALSE(r.memory.holds(at, n));
      REQUIRE(r.memory.taken() == left);
      REQUIRE(r.free() == r.memory.size() - left);
      REQUIRE_FALSE(r.memory.held());
      REQUIRE(r.only_stitch().live == (std::ranges::count(held[0], true) > 0));
      r.sound();
    }
    r.released(r.memory.size());
    CHECK(r.hold() == holding::all);
    CHECK(r.calls() == calls);
    r.let_go();
  }
}

TEST_CASE("what is still taken is let go") {
  arena_rig r;
  r.lay_chunks(2);
  REQUIRE(r.claim(2 * chunk_bytes));
  r.give_back(r.memory.segments()[0].at + quarter_chunk, chunk_bytes);
  CHECK(r.memory.taken() == chunk_bytes);
  r.let_go();
  r.released(2 * chunk_bytes);
}

TEST_CASE("a hold without all of the first run holds nothing") {
  arena_rig r;
  bool stitched = false;
  SUBCASE("at home") {}
  SUBCASE("on a view") { stitched = true; }
  r.lay_chunks(2);
  REQUIRE(r.claim(stitched ? 2 * chunk_bytes : chunk_bytes));
  r.let_go();
  block& b = r.take(512);
  auto const claims = r.memory.claims();
  if (!stitched) REQUIRE(b.begin == r.memory.segments()[0].at);
  CHECK(r.hold() == holding::nothing);
  r.released(2 * chunk_bytes - 512);
  r.give(b);
  CHECK(r.hold() == holding::all);
  CHECK(r.memory.claims() == claims);
}

TEST_CASE("a hold whose view is gone holds nothing") {
  arena_rig r;
  r.lay_chunks(2);
  REQUIRE(r.claim(2 * chunk_bytes));
  r.let_go();
  must(r.parts.stitches.evict(*r.parts.stitches.next_victim()));
  CHECK(r.hold() == holding::nothing);
  r.released(2 * chunk_bytes);
}

TEST_CASE("runs beside the first that are in other use are given up") {
  arena_rig r({.stitched_from = parts_rig::nothing_stitched});
  auto const at =
      r.lay({{half_chunk, true}, {512, false}, {128_KiB, true}, {512, false}, {quarter_chunk, true}, {512, false}});
  REQUIRE(r.claim(chunk_bytes));
  REQUIRE(sizes(r.memory) == std::vector<bytes>{half_chunk, quarter_chunk, 128_KiB});
  auto const claims = r.memory.claims();
  r.let_go();
  block& b = r.take(quarter_chunk);
  REQUIRE(b.begin == at[2]);
  CHECK(r.hold() == holding::part);
  CHECK(r.memory.claims() != claims);
  CHECK(r.memory.held());
  CHECK(sizes(r.memory) == std::vector<bytes>{half_chunk, 128_KiB});
  CHECK(r.memory.size() == half_chunk + 128_KiB);
  CHECK(r.memory.wanted() == chunk_bytes);
  CHECK(r.memory.segments()[1].at == at[1]);
  CHECK_FALSE(r.memory.contains(at[2], at[2] + 512));
  r.sound();
  r.let_go();
  r.give(b);
  CHECK(r.hold() == holding::all);  // of what it consists of now
  CHECK(r.memory.size() == half_chunk + 128_KiB);
}

TEST_CASE("a hold takes memory only after the streams that used it") {
  for (bytes const n : {chunk_bytes, 2 * chunk_bytes}) {
    CAPTURE(n);
    arena_rig r;
    stream_index const other = r.enter(two);
    r.lay_chunks(2);
    must(r.order().synchronize());
    REQUIRE(r.claim(n));
    tick const stamp = r.stamp(other);
    r.memory.let_go(other, stamp);
    CHECK(r.hold() == holding::nothing);
    must(r.order().wait(r.first, other, stamp));
    CHECK(r.hold() == holding::all);
  }
}

TEST_CASE("a view rests under the youngest stamp that its parts went back under") {
  arena_rig r;
  stream_index const other = r.enter(two);
  r.lay_chunks(2);
  REQUIRE(r.claim(2 * chunk_bytes));
  tick const older = r.stamp(r.first);
  tick const younger = r.stamp(other);
  address const at = r.memory.segments()[0].at;
  REQUIRE(r.memory.give_back(at, chunk_bytes, other, younger));
  REQUIRE(r.memory.give_back(at + chunk_bytes, chunk_bytes, r.first, older));
  CHECK(r.parts.stitches.all().front().last_use == younger);
  must(r.order().wait(r.first, other, younger));
  REQUIRE(r.hold() == holding::all);
  tick const last = r.stamp(r.first);
  r.memory.let_go(r.first, last);
  CHECK(r.parts.stitches.all().front().last_use == last);
}

TEST_CASE("a block in an arena looks like one of the lake's") {
  arena_rig r;
  SUBCASE("on the view") {
    r.lay_chunks(2);
    REQUIRE(r.claim(2 * chunk_bytes));
    address const at = r.memory.segments()[0].at + half_chunk;
    block const b = r.memory.as_block(at, 1024, 1000, r.first);
    CHECK(b.begin == at);
    CHECK(b.size == 1024);
    CHECK(b.requested == 1000);
    CHECK(b.on == r.first);
    CHECK(b.state == block_state::live);
    CHECK(b.view == &r.parts.stitches.all().front());
  }
  SUBCASE("on the chunks beneath, also once parts have gone back") {
    r.lay({{2 * chunk_bytes, true}});
    REQUIRE(r.claim(2 * chunk_bytes));
    address const low = r.memory.segments()[0].at;
    chunk* const second = r.parts.space.home().ranges().front().last_chunk;
    CHECK(r.memory.as_block(low + chunk_bytes, 1024, 1000, r.first).first_chunk == second);
    r.give_back(low + quarter_chunk, chunk_bytes);
    CHECK(r.memory.as_block(low, 1024, 1000, r.first).first_chunk == second->previous);
    CHECK(r.memory.as_block(low + chunk_bytes + half_chunk, 1024, 1000, r.first).first_chunk == second);
    CHECK(r.memory.as_block(low, 1024, 1000, r.first).view == nullptr);
  }
}

TEST_CASE("a part is found in whichever run it lies, in whatever order the runs are taken") {
  arena_rig r({.stitched_from = parts_rig::nothing_stitched});
  r.lay({{quarter_chunk, true}, {512, false}, {128_KiB, true}, {512, false}, {half_chunk, true}, {512, false}});
  REQUIRE(r.claim(chunk_bytes));
  REQUIRE(sizes(r.memory) == std::vector<bytes>{half_chunk, quarter_chunk, 128_KiB});
  for (plan::segment const& s : r.memory.segments()) {
    address const end = s.at + s.size;
    CHECK(r.memory.contains(s.at, end));
    CHECK_FALSE(r.memory.contains(s.at - 512, end));
    CHECK_FALSE(r.memory.contains(s.at, end + 512));
    CHECK(r.memory.holds(s.at, s.size));
    r.give_back(s.at + 512, 512);
    CHECK(r.memory.holds(s.at, 512));
    CHECK_FALSE(r.memory.holds(s.at, 1024));
    CHECK_FALSE(r.memory.holds(s.at + 512, 1024));
    CHECK(r.memory.holds(end - 1024, 1024));
    r.sound();
  }
  CHECK(r.free() == 3 * 512);
}

TEST_CASE("parts go back quickly from an arena in very many pieces") {
  constexpr bytes count = 80'000;
  arena_rig r;
  r.lay({{count * 512, true}});
  REQUIRE(r.claim(count * 512));
  address const at = r.memory.segments()[0].at;
  tick const stamp = r.stamp(r.first);
  own_time const spent;
  bytes right = 0;
  for (bytes i = 1; i < count; i += 2) right += r.memory.give_back(at + i * 512, 512, r.first, stamp);
  for (bytes i = count; i > 0; i -= 2) {
    address const piece = at + (i - 2) * 512;
    right += r.memory.holds(piece, 512) && !r.memory.holds(piece + 512, 512);
    right += r.memory.as_block(piece, 512, 512, r.first).first_chunk->home <= piece;
    right += r.memory.give_back(piece, 512, r.first, stamp);
  }
  CHECK(spent.seconds() < 5);
  CHECK(right == 2 * count);
  r.released(r.memory.size());
}

TEST_CASE("a plan with very many live blocks is left quickly, also where streams share memory") {
  constexpr bytes count = 80'000;
  bool shared = false;
  SUBCASE("one stream") {}
  SUBCASE("two streams") { shared = true; }
  arena_rig r;
  if (shared) (void)r.enter(two);
  bytes const free_before = (r.lay({{count * 512, true}}), r.free());
  course<parts_rig::config> c(r.parts, r.stitch, r.grow);
  REQUIRE(must(c.memory().claim(r.first, count * 512, false)));
  std::vector<plan::step_request> requests;
  for (plan::instant i = 0; i < count; ++i) requests.push_back({512, 0, i, i + count, i * 512});
  plan::track const way(plan_of(std::move(requests), 2 * count), c.memory().segments());
  must(c.served().follow(&way, 0, r.first));

  std::vector<address> at;
  for (bytes i = 0; i < count; ++i) {
    follower<parts_rig::config>::verdict why{};
    at.push_back(c.served().serve({.size = 512, .on = one}, r.first, 512, why));
  }
  bytes freed = 0;
  auto const give = [&](address block) {
    course<parts_rig::config>::freed gone;
    freed += c.take_back(block, nullptr, nobody, gone);
  };
  own_time const spent;
  for (bytes i = 1; i < count; i += 2) give(at[i]);
  c.leave(r.first);
  must(c.served().follow(nullptr, 0, r.first));  // as when it is left behind
  for (bytes i = count; i > 0; i -= 2) {
    give(at[i - 2]);
    c.settle(r.first);  // as when the pool is about to grow
    if (i == count / 2) {
      CHECK(c.memory().taken() == (count / 4 - 1) * 512);
      char const* const fault = c.find_fault();
      CHECK_MESSAGE(fault == nullptr, fault);
    }
  }
  CHECK(spent.seconds() < 5);
  CHECK(freed == count);
  CHECK(c.over());
  CHECK(r.free() == free_before);
}
