#include "gmlake/lake/lake.hpp"

#include <map>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/backend/faulty.hpp"
#include "gmlake/backend/simulated.hpp"
#include "tests/backend/must.hpp"

namespace {
using namespace gmlake;
using namespace gmlake::test;

constexpr bytes granule = 2_MiB;
using device = faulty<simulated>;

/// A lake over a device, with a plain account of one range: the blocks and the chunks that ought to be there.
struct surveyed {
  explicit surveyed(bytes size = 64 * granule) : r(must(water.open_range(size, area::large))) {}
  surveyed(surveyed const&) = delete;
  surveyed& operator=(surveyed const&) = delete;
  ~surveyed() { water.release_all(); }

  device backend{simulated{}};
  arrears<device> owed{backend};
  lake<device> water{owed};
  range* r;
  std::map<address, std::pair<bytes, bool>> blocks;  ///< size, and whether it is a hole
  std::map<address, bytes> chunks;

  block& extend(bytes n) {
    block& b = *must(water.extend(*r, n));
    entered(b);
    return b;
  }
  /// Writes down that a chunk was created beneath all of `b`.
  void entered(block const& b) {
    if (auto const hole = blocks.find(b.begin); hole != blocks.end() && hole->second.first > b.size) {
      blocks[b.end()] = {hole->second.first - b.size, true};
    }
    blocks[b.begin] = {b.size, false};
    chunks[b.begin] = b.size;
  }
  void vacated(address at, bytes n) {
    chunks.erase(at);
    auto here = blocks.insert_or_assign(at, std::pair{n, true}).first;
    if (auto const after = std::next(here); after != blocks.end() && after->second.second) {
      here->second.first += after->second.first;
      blocks.erase(after);
    }
    if (here != blocks.begin() && std::prev(here)->second.second) {
      std::prev(here)->second.first += here->second.first;
      here = std::prev(blocks.erase(here));
    }
    if (std::next(here) == blocks.end()) blocks.erase(here);
  }
  void split(address at, bytes n) {
    auto& [size, hole] = blocks[at];
    blocks[at + n] = {size - n, hole};
    size = n;
  }
  void joined(address left, address right) {
    blocks[left].first += blocks[right].first;
    blocks.erase(right);
  }

  /// Everything in the lake is where the account has it, and the lake's invariants hold.
  void check() {
    REQUIRE(owed.clear());
    address at = r->begin;
    block* before = nullptr;
    std::set<block const*> holes;
    auto expected = blocks.begin();
    for (block* b = r->first; b != nullptr; before = b, b = b->next, ++expected) {
      REQUIRE(expected != blocks.end());
      REQUIRE((b->begin == at && b->begin == expected->first && b->size == expected->second.first));
      REQUIRE((b->state == block_state::hole) == expected->second.second);
      REQUIRE((b->previous == before && b->in == r));
      auto const beneath = chunk_at(b->begin);
      REQUIRE(b->first_chunk == beneath);
      REQUIRE((beneath == nullptr) == (b->state == block_state::hole));
      if (b->state == block_state::hole) holes.insert(b);
      at = b->end();
    }
    REQUIRE(expected == blocks.end());
    REQUIRE(r->last == before);
    REQUIRE(at == r->grown_end());
    REQUIRE((before == nullptr || before->state != block_state::hole));

    bytes sum = 0;
    chunk* last = nullptr;
    auto known = chunks.begin();
    for (chunk* c = r->first_chunk; c != nullptr; last = c, c = c->next, ++known) {
      REQUIRE(known != chunks.end());
      REQUIRE((c->home == known->first && c->size == known->second));
      REQUIRE((c->previous == last && c->in == r));
      REQUIRE((c->first != nullptr && c->first->begin <= c->home && c->home < c->first->end()));
      REQUIRE(&water.block_at(*c, c->home) == c->first);
      REQUIRE(water.block_at(*c, c->end() - 1).end() >= c->end());
      sum += c->size;
    }
    REQUIRE(known == chunks.end());
    REQUIRE(r->last_chunk == last);
    REQUIRE(water.reserved() == sum);
    REQUIRE(water.chunk_count() == chunks.size());
    REQUIRE(backend.wrapped().mappings() == chunks.size());
    REQUIRE(backend.wrapped().created_bytes() == sum);

    for (block const& hole : water.holes()) REQUIRE(holes.erase(&hole) == 1);
    REQUIRE(holes.empty());
  }

  [[nodiscard]] chunk* chunk_at(address a) const {
    for (chunk* c = r->first_chunk; c != nullptr; c = c->next) {
      if (c->home <= a && a < c->end()) return c;
    }
    return nullptr;
  }
};

TEST_CASE("a range grows from its beginning, a chunk and its block at a time") {
  surveyed s;
  CHECK(s.r->first == nullptr);
  block& a = s.extend(granule);
  block& b = s.extend(3 * granule);
  CHECK(a.begin == s.r->begin);
  CHECK(b.begin == a.end());
  CHECK(a.state == block_state::taken);
  CHECK(s.r->grown == 4 * granule);
  s.check();
}

TEST_CASE("a block is split, and its parts are joined again, across chunks too") {
  surveyed s;
  block& whole = s.extend(2 * granule);
  s.extend(granule);
  REQUIRE(s.water.reserve_blocks(4));
  s.water.absorb_next(whole);
  s.joined(whole.begin, whole.begin + 2 * granule);
  s.check();

  block& front = s.water.split_front(whole, 512);
  s.split(front.begin, 512);
  CHECK(front.size == 512);
  CHECK(whole.begin == front.end());
  s.check();

  block& middle = s.water.split_front(whole, 2 * granule);  // its end lies in the second chunk
  s.split(front.end(), 2 * granule);
  CHECK(whole.first_chunk == s.chunk_at(s.r->begin + 2 * granule));
  s.check();

  s.joined(front.begin, middle.begin);
  s.water.absorb_previous(middle);
  CHECK(middle.begin == s.r->begin);
  s.check();
  s.joined(middle.begin, whole.begin);
  s.water.absorb_previous(whole);
  CHECK(whole.size == 3 * granule);
  s.check();
}

TEST_CASE("splitting and joining say the new end to whoever keeps the block in order") {
  surveyed s;
  block& b = s.extend(granule);
  REQUIRE(s.water.reserve_blocks(1));
  std::vector<std::pair<address, bytes>> told;
  auto const resize = [&](block& of, address begin, bytes size) {
    CHECK(&of == &b);
    CHECK(of.begin != begin);  // not changed before it is said
    told.emplace_back(begin, size);
    of.begin = begin;
    of.size = size;
  };
  s.water.split_front(b, 512, resize);
  s.water.absorb_previous(b, resize);
  CHECK(told == std::vector<std::pair<address, bytes>>{{s.r->begin + 512, granule - 512}, {s.r->begin, granule}});
}

TEST_CASE("a part keeps its block's state, stream and stamp") {
  surveyed s;
  block& b = s.extend(granule);
  b.state = block_state::taken;
  b.on = 3;
  b.stamp = 77;
  REQUIRE(s.water.reserve_blocks(1));
  block const& front = s.water.split_front(b, 1_MiB);
  CHECK(front.state == block_state::taken);
  CHECK(front.on == 3);
  CHECK(front.stamp == 77);
}

TEST_CASE("a chunk in the middle leaves a hole, which can be filled again in another shape") {
  surveyed s;
  s.extend(granule);
  block& b = s.extend(4 * granule);
  block& c = s.extend(granule);
  address const at = b.begin;
  must(s.water.vacate(b));
  s.vacated(at, 4 * granule);
  s.check();
  CHECK(s.water.reserved() == 2 * granule);

  block& hole = s.water.holes().front();
  CHECK(hole.begin == at);
  block& first = *must(s.water.fill(hole, 3 * granule));
  s.entered(first);
  s.check();
  block& rest = s.water.holes().front();
  CHECK(rest.size == granule);
  block& second = *must(s.water.fill(rest, granule));
  s.entered(second);
  s.check();
  CHECK(s.water.holes().empty());
  CHECK(second.next == &c);
}

TEST_CASE("holes that touch are one, on either side") {
  for (std::vector<std::size_t> const& order : {std::vector<std::size_t>{1, 2, 3}, {3, 2, 1}, {1, 3, 2}, {3, 1, 2}}) {
    surveyed s;
    std::vector<block*> b;
    for (int i = 0; i < 5; ++i) b.push_back(&s.extend(granule));
    std::vector<address> const at = {b[0]->begin, b[1]->begin, b[2]->begin, b[3]->begin};
    for (std::size_t const i : order) {
      must(s.water.vacate(*b[i]));
      s.vacated(at[i], granule);
      s.check();
    }
    CHECK(s.water.holes().front().size == 3 * granule);
  }
}

TEST_CASE("a hole at the end of a range is given up, with the one before it") {
  surveyed s;
  s.extend(granule);
  block& b = s.extend(granule);
  block& c = s.extend(granule);
  must(s.water.vacate(b));
  CHECK(s.r->grown == 3 * granule);
  must(s.water.vacate(c));
  CHECK(s.r->grown == granule);
  CHECK(s.water.holes().empty());
  must(s.water.vacate(*s.r->first));
  CHECK(s.r->grown == 0);
  CHECK(s.r->first == nullptr);
  CHECK(s.r->first_chunk == nullptr);
  s.water.close_range(*s.r);
  CHECK(s.backend.wrapped().idle());
}

TEST_CASE("a range without addresses or a node changes nothing") {
  surveyed s;
  s.backend.arm({.first = 0, .only = driver_call::reserve});
  fails_with(s.water.open_range(granule, area::small), errc::out_of_addresses);
  std::size_t ranges = 0;
  for (range const& each : s.water.ranges()) ranges += each.size > 0 ? 1 : 0;
  CHECK(ranges == 1);
}

TEST_CASE("whichever call fails, growing and filling change nothing, and can be done again") {
  for (driver_call const call : {driver_call::create, driver_call::map, driver_call::set_access}) {
    CAPTURE(static_cast<int>(call));
    surveyed s;
    s.extend(granule);
    block& b = s.extend(2 * granule);
    s.extend(granule);
    address const at = b.begin;
    must(s.water.vacate(b));
    s.vacated(at, 2 * granule);

    s.backend.arm({.first = 0, .only = call});
    errc const expected = call == driver_call::create ? errc::out_of_memory : errc::driver_failure;
    fails_with(s.water.extend(*s.r, granule), expected);
    s.check();
    s.backend.arm({.first = 0, .only = call});
    fails_with(s.water.fill(s.water.holes().front(), granule), expected);
    s.check();
    s.entered(*must(s.water.fill(s.water.holes().front(), granule)));
    s.extend(granule);
    s.check();
  }
}

TEST_CASE("where even undoing fails, the device is owed it") {
  surveyed s;
  // create, map and set_access: the last fails, and then unmap and release.
  s.backend.arm({.first = 2, .count = 3});
  fails_with(s.water.extend(*s.r, granule), errc::driver_failure);
  CHECK_FALSE(s.owed.clear());
  CHECK(s.r->grown == 0);
  s.owed.settle();
  s.check();
  s.extend(granule);
  s.check();
}

TEST_CASE("a chunk that can't be unmapped stays; one that can't be released is owed") {
  surveyed s;
  s.extend(granule);
  block& b = s.extend(granule);
  s.extend(granule);
  s.backend.arm({.first = 0, .only = driver_call::unmap});
  fails_with(s.water.vacate(b), errc::driver_failure);
  s.check();
  address const at = b.begin;
  s.backend.arm({.first = 0, .only = driver_call::release});
  must(s.water.vacate(b));
  s.vacated(at, granule);
  CHECK_FALSE(s.owed.clear());
  s.owed.settle();
  s.check();
}

TEST_CASE("everything is released at once, whatever state it is in") {
  for (bool const failing : {false, true}) {
    device backend{simulated{}};
    arrears<device> owed{backend};
    lake<device> water{owed};
    range& r = *must(water.open_range(16 * granule, area::large));
    range& other = *must(water.open_range(16 * granule, area::small));
    block& a = *must(water.extend(r, granule));
    block& b = *must(water.extend(r, granule));
    block& c = *must(water.extend(r, granule));
    (void)must(water.extend(other, granule));
    must(water.vacate(b));
    a.state = block_state::live;
    c.state = block_state::taken;
    if (failing) backend.arm({.first = 2, .count = 5});
    water.release_all();
    CHECK(water.reserved() == 0);
    CHECK(water.ranges().empty());
    CHECK(owed.clear() == !failing);
    backend.disarm();
    owed.settle();
    CHECK(backend.wrapped().idle());
    (void)must(water.open_range(granule, area::large));  // it can be used again
    water.release_all();
    CHECK(backend.wrapped().idle());
  }
}

TEST_CASE("a lake keeps its invariants through whatever is done to it, and whatever fails") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    surveyed s;
    auto const any_block = [&]() -> block* {
      if (s.blocks.empty()) return nullptr;
      block* b = s.r->first;
      for (std::size_t i = random() % s.blocks.size(); i > 0; --i) b = b->next;
      return b;
    };
    auto const joins = [](block const* a, block const* b) {
      return a != nullptr && b != nullptr && a->state == block_state::free && b->state == block_state::free;
    };
    for (int step = 0; step < 1500; ++step) {
      bool const fault = random() % 4 == 0;
      if (fault) s.backend.arm({.first = random() % 4, .count = 1 + random() % 3});
      else s.backend.disarm();
      REQUIRE(s.water.reserve_blocks(3));
      switch (random() % 6) {
        case 0: {
          bytes const n = (1 + random() % 6) * granule;
          if (s.r->grown + n > s.r->size) break;
          result<block*> const b = s.water.extend(*s.r, n);
          REQUIRE((b.has_value() || fault));
          if (b) s.entered(**b);
          break;
        }
        case 1: {
          if (s.water.holes().empty()) break;
          auto hole = s.water.holes().begin();
          if (random() % 2 == 0) hole = std::prev(s.water.holes().end());
          bytes const n = (1 + random() % (hole->size / granule)) * granule;
          result<block*> const b = s.water.fill(*hole, n);
          REQUIRE((b.has_value() || fault));
          if (b) s.entered(**b);
          break;
        }
        case 2: {  // isolate a chunk, and vacate it
          if (s.chunks.empty()) break;
          auto const at = std::next(s.chunks.begin(), static_cast<std::ptrdiff_t>(random() % s.chunks.size()));
          auto const [home, size] = *at;
          block* b = s.chunk_at(home)->first;
          if (b->begin < home) {
            s.split(b->begin, home - b->begin);
            s.water.split_front(*b, home - b->begin);
          }
          while (b->size < size) {
            s.joined(b->begin, b->next->begin);
            s.water.absorb_next(*b);
          }
          if (b->size > size) {
            s.split(b->begin, size);
            b = &s.water.split_front(*b, size);
          }
          if (random() % 2 == 0) break;
          result<void> const done = s.water.vacate(*b);
          REQUIRE((done.has_value() || fault));
          if (done) s.vacated(home, size);
          break;
        }
        case 3: {
          block* const b = any_block();
          if (b == nullptr || b->state == block_state::hole || b->size == 512) break;
          bytes const n = (1 + random() % (b->size / 512 - 1)) * 512;
          s.split(b->begin, n);
          s.water.split_front(*b, n);
          break;
        }
        case 4: {
          block* const b = any_block();
          if (b == nullptr || !joins(b, b->next)) break;
          s.joined(b->begin, b->next->begin);
          s.water.absorb_next(*b);
          break;
        }
        default: {
          block* const b = any_block();
          if (b == nullptr || !joins(b->previous, b)) break;
          s.joined(b->previous->begin, b->begin);
          s.water.absorb_previous(*b);
          break;
        }
      }
      s.backend.disarm();
      s.owed.settle();
      s.check();
    }
  }
}

}  // namespace
