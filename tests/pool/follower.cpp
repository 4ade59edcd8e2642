#include "gmlake/pool/follower.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tests/pool/parts_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using served_by = follower<parts_rig::config>;
using verdict = served_by::verdict;
using plan::step_request;

/// A megabyte at home, and who follows plans in it.
struct follower_rig : parts_rig {
  follower_rig() {
    lay({{chunk_bytes, true}});
    REQUIRE(must(memory.claim(first, chunk_bytes, false)));
    base = memory.segments()[0].at;
  }
  ~follower_rig() { sound(); }

  arena<config> memory{parts, stitch, grow};
  served_by f{parts, memory};
  std::vector<std::unique_ptr<plan::track>> tracks;
  address base{};

  [[nodiscard]] plan::track const& track_of(plan::plan p) {
    tracks.push_back(std::make_unique<plan::track>(std::move(p), memory.segments()));
    return *tracks.back();
  }
  void follow(std::vector<step_request> requests, plan::instant period, std::uint32_t from = 0) {
    must(f.follow(&track_of(plan_of(std::move(requests), period)), from, first));
  }
  /// The place of a request of n bytes, or why it has none.
  struct answer {
    address at{};
    std::optional<verdict> why;
  };
  answer serve(bytes n, stream_index user) {
    verdict why{};
    address const at = f.serve({.size = n, .on = order().name(user)}, user, n, why);
    sound();
    return at != address{} ? answer{at, {}} : answer{at, why};
  }
  answer serve(bytes n) { return serve(n, first); }
  [[nodiscard]] bool places(bytes n, address at) {
    answer const a = serve(n);
    return !a.why && a.at == at;
  }
  address squeeze(bytes n, plan::instant events) {
    address const at = f.squeeze({.size = n, .on = one}, first, n, events);
    sound();
    return at;
  }
  [[nodiscard]] bool restore(address at, bytes n) { return f.restore(at, n, {.size = n, .on = one}, first); }
  served_by::freed give(address at) {
    served_by::freed gone;
    REQUIRE(f.take_back(at, nullptr, nobody, gone));
    sound();
    return gone;
  }
  served_by::freed give(address at, stream after) {
    served_by::freed gone;
    REQUIRE(f.take_back(at, &after, enter(after), gone));
    sound();
    return gone;
  }
  [[nodiscard]] bool gives(address at) {
    served_by::freed gone;
    return f.take_back(at, nullptr, nobody, gone);
  }

  void sound() const {
    parts_rig::sound();
    char const* fault = memory.find_fault();
    if (fault == nullptr) fault = f.find_fault();
    CHECK_MESSAGE(fault == nullptr, fault);
  }
};

constexpr bytes kib = 1_KiB;
constexpr auto stays = step_request::stays;

/// Four requests; the last has the first one's place.
///
///     384  |     c c
///     256  |   b b b b
///       0  | a a a       d
///            0 1 2 3 4 5 6 7
[[nodiscard]] std::vector<step_request> four() {
  return {{256 * kib, 0, 0, 3, 0},
          {128 * kib, 0, 1, 5, 256 * kib},
          {64 * kib, 0, 2, 4, 384 * kib},
          {256 * kib, 0, 6, 7, 0}};
}
constexpr plan::instant four_period = 8;

/// A step of `four`, of which every request gets its place.
void keeps_to_four(follower_rig& r) {
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  CHECK(r.places(64 * kib, r.base + 384 * kib));
  r.give(r.base);
  r.give(r.base + 384 * kib);
  r.give(r.base + 256 * kib);
  CHECK(r.places(256 * kib, r.base));
  r.give(r.base);
}

}  // namespace

TEST_CASE("a program that keeps to its track gets every place, step after step") {
  follower_rig r;
  r.follow(four(), four_period);
  for (int step = 0; step < 3; ++step) {
    CHECK(r.f.cursor() == 0);
    keeps_to_four(r);
    CHECK(r.f.live() == 0);
    CHECK(r.f.at_end());
    r.f.begin_again();
  }
  CHECK(r.parts.observer.seen().allocations == 12);
  CHECK(r.parts.observer.seen().deallocations == 12);
  CHECK(r.parts.observer.seen().live.now == 0);
}

TEST_CASE("what is freed early, or in another order, is no matter") {
  follower_rig r;
  r.follow(four(), four_period);
  for (int step = 0; step < 2; ++step) {
    CHECK(r.places(256 * kib, r.base));
    r.give(r.base);
    CHECK(r.places(128 * kib, r.base + 256 * kib));
    CHECK(r.places(64 * kib, r.base + 384 * kib));
    r.give(r.base + 256 * kib);
    r.give(r.base + 384 * kib);
    CHECK(r.places(256 * kib, r.base));
    r.f.begin_again();
    r.give(r.base);  // after its time
  }
  CHECK(r.f.used().empty());
}

TEST_CASE("a request of another size or stream is astray, and the track waits for its own") {
  follower_rig r;
  r.follow(four(), four_period);
  stream_index const other = r.enter(two);
  CHECK(r.serve(512).why == verdict::astray);
  CHECK(r.serve(256 * kib, other).why == verdict::astray);
  CHECK(r.f.cursor() == 0);
  CHECK(r.f.live() == 0);
  CHECK(r.places(256 * kib, r.base));
}

TEST_CASE("a request that the track has no place for is passed over") {
  follower_rig r;
  r.follow({{512, 0, 0, stays, step_request::nowhere}, {1024, 0, 1, 2, chunk_bytes}, {512, 0, 3, 4, 0}}, 5);
  CHECK(r.serve(512).why == verdict::unplanned);
  CHECK(r.serve(1024).why == verdict::unplanned);  // beyond the arena
  CHECK(r.f.live() == 0);
  CHECK(r.places(512, r.base));
}

TEST_CASE("a place that is in use beyond its time displaces, until it is freed") {
  follower_rig r;
  r.follow(four(), four_period);
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  CHECK(r.places(64 * kib, r.base + 384 * kib));
  r.give(r.base + 384 * kib);
  r.give(r.base + 256 * kib);
  CHECK(r.serve(256 * kib).why == verdict::displaced);
  CHECK(r.f.at_end());
  r.f.begin_again();
  CHECK(r.serve(256 * kib).why == verdict::displaced);
  CHECK(r.f.cursor() == 1);
  r.give(r.base);
  r.f.begin_again();
  keeps_to_four(r);
}

TEST_CASE("a block that dies in the next step keeps its place until then") {
  follower_rig r;
  r.follow({{512, 0, 1, 2, 0}, {1024, 0, 3, 5, 512}}, 4);  // the second one dies at 1
  CHECK(r.places(512, r.base));
  r.give(r.base);
  CHECK(r.places(1024, r.base + 512));
  r.f.begin_again();
  bool late = false;
  SUBCASE("freed in time") {}
  SUBCASE("freed too late") { late = true; }
  if (!late) r.give(r.base + 512);
  CHECK(r.places(512, r.base));
  r.give(r.base);
  CHECK((r.serve(1024).why == verdict::displaced) == late);
}

TEST_CASE("the program may be found again ahead or behind; what it left behind is looked out for") {
  follower_rig r;
  r.follow(four(), four_period);
  CHECK(r.places(256 * kib, r.base));
  r.f.move_to(2);
  CHECK(r.places(64 * kib, r.base + 384 * kib));
  CHECK(r.serve(256 * kib).why == verdict::displaced);  // the first is still there
  r.f.move_to(1);
  CHECK(r.f.cursor() == 1);
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  CHECK(r.serve(64 * kib).why == verdict::displaced);
  CHECK(r.f.live() == 3);
  for (bytes const at : {0 * kib, 256 * kib, 384 * kib}) r.give(r.base + at);
  r.f.begin_again();
  keeps_to_four(r);
}

TEST_CASE("a track is joined at any of its requests") {
  follower_rig r;
  r.follow(four(), four_period, 2);
  CHECK(r.places(64 * kib, r.base + 384 * kib));
  r.give(r.base + 384 * kib);
  CHECK(r.places(256 * kib, r.base));
  r.give(r.base);
  r.f.begin_again();
  keeps_to_four(r);
}

TEST_CASE("only the beginning of a live block is taken back, and once") {
  follower_rig r;
  r.follow(four(), four_period);
  CHECK_FALSE(r.gives(r.base));
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  CHECK_FALSE(r.gives(r.base + 512));
  CHECK_FALSE(r.gives(r.base - 512));
  CHECK_FALSE(r.gives(r.base + chunk_bytes));
  CHECK(r.gives(r.base + 256 * kib));
  CHECK(r.gives(r.base));
  CHECK_FALSE(r.gives(r.base));
  CHECK_FALSE(r.gives(r.base + 256 * kib));
  CHECK(r.f.live() == 0);
}

TEST_CASE("what a block occupied is told when it goes, with its number, on the plan or astray") {
  follower_rig r;
  r.follow(four(), four_period);
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  r.f.number(r.base, 17);
  SUBCASE("on the plan") {}
  SUBCASE("astray") { r.f.begin_again(); }
  served_by::freed const gone = r.give(r.base);
  CHECK(gone.at == r.base);
  CHECK(gone.size == 256 * kib);
  CHECK(gone.on == r.first);
  CHECK(gone.stamp == r.order().latest(r.first));
  CHECK(gone.number == 17);
  CHECK(gone.at_once);
  CHECK(r.give(r.base + 256 * kib).number == 0);
  r.f.begin_again();
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.give(r.base).number == 0);  // it was the other block's
}

TEST_CASE("live blocks are seen as they are, on the plan and astray") {
  follower_rig r;
  r.follow(four(), four_period);
  verdict why{};
  REQUIRE(r.f.serve({.size = 1000, .on = one}, r.first, 256 * kib, why) == r.base);
  r.f.begin_again();
  r.f.move_to(1);
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  std::map<address, bytes> seen;
  r.f.each_live([&](address at, bytes size, bytes requested, stream_index on) {
    CHECK(on == r.first);
    CHECK(requested == (at == r.base ? 1000 : size));
    seen[at] = size;
  });
  CHECK(seen == std::map<address, bytes>{{r.base, 256 * kib}, {r.base + 256 * kib, 128 * kib}});
  for (auto const& [at, n] : seen) {
    bytes const expected = n;
    CHECK(r.f.look_at(at, [&](bytes size, bytes, stream_index) { CHECK(size == expected); }));
    CHECK_FALSE(r.f.look_at(at + 512, [](bytes, bytes, stream_index) {}));
  }
  std::vector<address_run> const used = r.f.used();
  REQUIRE(used.size() == 2);
  CHECK(used[0].begin == r.base);
  CHECK(used[0].end == used[1].begin);
  CHECK(used[1].end == r.base + 384 * kib);
}

TEST_CASE("going by another track, or none, leaves blocks where they are and in nobody's way") {
  follower_rig r;
  r.follow(four(), four_period);
  CHECK(r.places(256 * kib, r.base));
  r.f.number(r.base, 5);
  must(r.f.follow(nullptr, 0, r.first));
  CHECK(r.f.on() == nullptr);
  CHECK(r.f.live() == 1);
  r.sound();
  r.follow({{1024, 0, 0, 3, 512}, {1024, 0, 1, 3, 256 * kib}}, 4);
  CHECK(r.serve(1024).why == verdict::displaced);
  CHECK(r.places(1024, r.base + 256 * kib));
  CHECK(r.give(r.base).number == 5);
  r.f.begin_again();
  CHECK(r.places(1024, r.base + 512));
}

TEST_CASE("off the plan a request goes into the smallest gap between what is live") {
  follower_rig r;
  r.follow(four(), four_period);
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  CHECK(r.places(64 * kib, r.base + 384 * kib));
  r.give(r.base + 256 * kib);
  CHECK(r.squeeze(64 * kib, 1) == r.base + 256 * kib);
  CHECK(r.squeeze(65 * kib, 1) == r.base + 448 * kib);
  CHECK(r.squeeze(64 * kib, 1) == r.base + 320 * kib);
  CHECK(r.squeeze(chunk_bytes, 1) == address{});
  CHECK(r.f.live() == 5);
  for (bytes const at : {0 * kib, 256 * kib, 320 * kib, 384 * kib, 448 * kib}) r.give(r.base + at);
  CHECK(r.f.used().empty());
}

TEST_CASE("off the plan a request keeps clear of places that are needed meanwhile") {
  follower_rig r;
  r.follow(four(), four_period, 3);  // the last, at 6; the next step's come 2, 3 and 4 events later
  struct {
    plan::instant events;
    bytes offset;
  } const expected[] = {{1, 256 * kib}, {3, 256 * kib}, {4, 384 * kib}, {5, 448 * kib}, {100, 448 * kib}};
  for (auto const& e : expected) {
    CAPTURE(e.events);
    address const at = r.squeeze(128 * kib, e.events);
    CHECK(at == r.base + e.offset);
    r.give(at);
  }
}

TEST_CASE("a block off the plan that stays displaces whose place it has come to lie in") {
  follower_rig r;
  r.follow(four(), four_period, 3);
  address const at = r.squeeze(128 * kib, 1);
  REQUIRE(at == r.base + 256 * kib);
  CHECK(r.places(256 * kib, r.base));
  r.give(r.base);
  r.f.begin_again();
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.serve(128 * kib).why == verdict::displaced);
  r.give(at);
  CHECK(r.places(64 * kib, r.base + 384 * kib));
}

TEST_CASE("a block is put back only where nothing is") {
  follower_rig r;
  r.follow(four(), four_period);
  CHECK(r.places(256 * kib, r.base));
  CHECK_FALSE(r.restore(r.base, 512));
  CHECK_FALSE(r.restore(r.base + 255 * kib, 2 * kib));
  CHECK_FALSE(r.restore(r.base + chunk_bytes - 512, 1024));
  CHECK_FALSE(r.restore(r.base - 512, 512));
  CHECK(r.restore(r.base + 256 * kib, 1024));
  CHECK_FALSE(r.restore(r.base + 256 * kib + 512, 1024));
  CHECK(r.restore(r.base + chunk_bytes - 512, 512));
  CHECK(r.f.live() == 3);
  r.sound();
  CHECK(r.serve(128 * kib).why == verdict::displaced);
  for (address const at : {r.base, r.base + 256 * kib, r.base + chunk_bytes - 512}) r.give(at);
}

TEST_CASE("every request is placed whose place nothing overlaps, whatever the program does") {
  std::uint64_t const seed = 5;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  int placed = 0;
  int displaced = 0;
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    // First fit, so that no two of the plan overlap while they live; all die with the step.
    std::vector<step_request> requests;
    std::vector<std::size_t> alive;
    plan::instant now = 0;
    for (; requests.size() < 40; ++now) {
      if (!alive.empty() && random() % 2 == 0) {
        std::swap(alive[random() % alive.size()], alive.back());
        requests[alive.back()].death = now;
        alive.pop_back();
        continue;
      }
      step_request q{512 * (1 + random() % 64), 0, now, 0, 0};
      std::ranges::sort(alive, {}, [&](std::size_t i) { return requests[i].offset; });
      for (std::size_t const i : alive) {
        if (requests[i].offset >= q.offset + q.size) break;
        q.offset = std::max(q.offset, requests[i].offset + requests[i].size);
      }
      alive.push_back(requests.size());
      requests.push_back(q);
    }
    for (std::size_t const i : alive) requests[i].death = now++;
    follower_rig r;
    r.follow(requests, now);
    std::map<address, bytes> live;
    for (int event = 0; event < 400; ++event) {
      if (r.f.at_end()) r.f.begin_again();
      if (random() % 40 == 0) r.f.move_to(static_cast<std::uint32_t>(random() % requests.size()));
      step_request const& q = requests[r.f.cursor()];
      // Most of what is due goes in time.
      for (auto i = live.begin(); i != live.end();) {
        auto const here = i++;
        auto const mine = [&](step_request const& p) { return r.base + p.offset == here->first; };
        auto const due = std::ranges::find_if(requests, [&](step_request const& p) {
          return mine(p) && p.size == here->second && p.birth < q.birth && p.death > q.birth;
        });
        if (due != requests.end() || random() % 8 == 0) continue;
        r.give(here->first);
        live.erase(here);
      }
      address const place = r.base + q.offset;
      bool const in_use = std::ranges::any_of(live, [&](auto const& b) {
        return address_run{b.first, b.first + b.second}.overlaps(place, place + q.size);
      });
      follower_rig::answer const a = r.serve(q.size);
      REQUIRE(a.why.has_value() == in_use);
      if (in_use) REQUIRE(a.why == verdict::displaced);
      ++(in_use ? displaced : placed);
      address const at = in_use && random() % 2 == 0 ? r.squeeze(q.size, 1 + random() % now) : a.at;
      if (at != address{}) live[at] = q.size;
      REQUIRE(r.f.live() == live.size());
    }
    for (auto const& [at, n] : live) r.give(at);
    CHECK(r.f.used().empty());
  }
  CHECK(placed > 500);
  CHECK(displaced > 100);
}

// ---- several streams

namespace {

/// Two streams whose memory is one place: a of stream one, then b of stream two, then again.
struct two_streams : follower_rig {
  stream_index second = enter(two);
  two_streams() { follow({{512, 0, 0, 1, 0}, {512, 1, 2, 3, 0}}, 4); }
};

}  // namespace

TEST_CASE("memory that a track hands to another stream comes after its last use there") {
  two_streams r;
  for (int step = 0; step < 2; ++step) {
    auto const before = r.time->queued(one);
    CHECK(r.places(512, r.base));
    r.give(r.base);
    CHECK(r.serve(512, r.second).at == r.base);
    CHECK(r.time->ordered(before, two));
    auto const work = r.time->queued(two);
    r.give(r.base);
    r.f.begin_again();
    CHECK(r.places(512, r.base));
    CHECK(r.time->ordered(work, one));
    r.give(r.base);
    r.f.begin_again();
  }
}

TEST_CASE("so does memory that was freed before its turn") {
  follower_rig r;
  stream_index const second = r.enter(two);
  r.follow({{512, 1, 0, 6, 1024}, {512, 0, 1, 4, 0}, {512, 0, 2, 3, 512}, {512, 1, 5, 6, 0}}, 7);
  CHECK(r.serve(512, second).at == r.base + 1024);  // has waited for what was there before
  CHECK(r.places(512, r.base));
  CHECK(r.places(512, r.base + 512));
  auto const work = r.time->queued(one);
  r.give(r.base);
  r.give(r.base + 512);
  CHECK(r.serve(512, second).at == r.base);
  CHECK(r.time->ordered(work, two));
}

TEST_CASE("every stream comes after what the follower began with") {
  two_streams r;
  auto const before = r.time->queued(one);
  must(r.f.follow(r.f.on(), 1, r.first));
  CHECK_FALSE(r.time->ordered(before, two));
  CHECK(r.serve(512, r.second).at == r.base);
  CHECK(r.time->ordered(before, two));
}

TEST_CASE("a second stream that comes later comes after all that the first one did") {
  follower_rig r;
  r.follow({{512, 0, 0, 1, 0}, {512, 1, 2, 3, 0}}, 4);
  CHECK(r.places(512, r.base));
  auto const work = r.time->queued(one);
  r.give(r.base);
  stream_index const second = r.enter(two);
  CHECK(r.serve(512, second).at == r.base);
  CHECK(r.time->ordered(work, two));
}

TEST_CASE("a stream that can't wait now gets no place that it would have to wait for") {
  two_streams r;
  CHECK(r.places(512, r.base));
  r.give(r.base);
  must(r.time->set_captured(two, true));
  CHECK(r.serve(512, r.second).why == verdict::displaced);
  CHECK(r.f.squeeze({.size = 512, .on = two}, r.second, 512, 1) == address{});
  CHECK_FALSE(r.f.wait_for_all(r.second));
  CHECK_FALSE(r.f.wait_for_all(nobody));
  CHECK(r.f.live() == 0);
  must(r.time->set_captured(two, false));
  CHECK(r.f.wait_for_all(r.second));
}

TEST_CASE("what is freed after another stream's work is kept for that") {
  follower_rig r;
  (void)r.enter(two);
  r.follow({{512, 0, 0, 1, 0}}, 2);
  CHECK(r.places(512, r.base));
  auto const work = r.time->queued(two);
  served_by::freed const gone = r.give(r.base, two);
  CHECK(gone.on == r.enter(two));
  CHECK(r.f.live() == 0);
  CHECK(r.f.used().size() == 1);
  r.f.begin_again();
  CHECK(r.places(512, r.base));
  CHECK(r.time->ordered(work, one));
  r.give(r.base);
  CHECK(r.f.used().empty());
}

TEST_CASE("a use that another stream recorded keeps the block's memory after it is freed") {
  follower_rig r;
  stream_index const second = r.enter(two);
  r.follow(four(), four_period);
  CHECK(r.places(256 * kib, r.base));
  CHECK(r.places(128 * kib, r.base + 256 * kib));
  CHECK_FALSE(r.f.record(r.base + 512, second).has_value());
  CHECK_FALSE(r.f.record(r.base - 512, second).has_value());
  CHECK(r.f.record(r.base + 256 * kib, r.first).has_value());  // its own stream's
  CHECK(r.give(r.base + 256 * kib).at_once);
  for (int again = 0; again < 2; ++again) must(r.f.record(r.base, second).value());
  auto const work = r.time->queued(two);
  CHECK_FALSE(r.give(r.base).at_once);
  CHECK_FALSE(r.f.record(r.base, second).has_value());
  CHECK(r.f.live() == 0);
  r.f.tend();
  CHECK(r.f.used().size() == 1);
  SUBCASE("until the place is wanted: then its stream waits") {
    r.f.begin_again();
    CHECK(r.places(256 * kib, r.base));
    CHECK(r.time->ordered(work, one));
    r.give(r.base);
  }
  SUBCASE("until it is known to be over") {
    must(r.order().synchronize());
    r.f.tend();
    CHECK(r.time->ordered(work, stream{3}));
  }
  SUBCASE("until a stream is made to wait") {
    r.f.tend(r.first);
    CHECK(r.time->ordered(work, one));
  }
  CHECK(r.f.used().empty());
}

TEST_CASE("off the plan a request comes after all that anyone has done") {
  two_streams r;
  CHECK(r.places(512, r.base));
  r.give(r.base);
  CHECK(r.serve(512, r.second).at == r.base);
  auto const work = r.time->queued(two);
  r.give(r.base);
  address const at = r.squeeze(512, 1);
  CHECK(at != address{});
  CHECK(r.time->ordered(work, one));
  r.give(at);
}

TEST_CASE("what sticks out of a place that one stream has waited for is waited for by the next one too") {
  follower_rig r;
  stream_index const second = r.enter(two);
  stream_index const third = r.enter(stream{3});
  r.follow({{1024, 0, 0, 1, 0}, {512, 1, 2, 5, 0}, {512, 2, 3, 5, 512}}, 6);
  must(r.order().synchronize());
  // One block over both places, whose use by another stream goes on.
  CHECK(r.restore(r.base, 1024));
  stream_index const user = r.enter(stream{4});
  must(r.f.record(r.base, user).value());
  auto const work = r.time->queued(stream{4});
  CHECK_FALSE(r.give(r.base).at_once);
  r.f.move_to(1);
  CHECK(r.serve(512, second).at == r.base);
  CHECK(r.time->ordered(work, two));
  CHECK(r.serve(512, third).at == r.base + 512);
  CHECK(r.time->ordered(work, stream{3}));
}
