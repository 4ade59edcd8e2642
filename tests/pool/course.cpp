#include "gmlake/pool/course.hpp"

#include <optional>
#include <vector>

#include "tests/pool/parts_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr bytes place = 256_KiB;
constexpr bytes size = 2 * chunk_bytes;

/// A course over two chunks, where a track places four blocks side by side, two of them on each chunk, in one stream.
struct course_rig : parts_rig {
  course_rig() {
    lay_chunks(2);
    REQUIRE(must(c.memory().claim(first, size, false)));
    base = c.memory().segments()[0].at;
    std::vector<plan::step_request> requests;
    for (plan::instant i = 0; i < 4; ++i) requests.push_back({place, 0, i, i + 4, i * half_chunk});
    way.emplace(plan_of(requests, 8), c.memory().segments());
    must(c.served().follow(&*way, 0, first));
  }
  ~course_rig() { sound(); }

  course<config> c{parts, stitch, grow};
  std::optional<plan::track> way;
  address base{};

  std::vector<address> take_places(std::size_t count) {
    std::vector<address> all;
    for (std::size_t i = 0; i < count; ++i) {
      follower<config>::verdict why{};
      all.push_back(c.served().serve({.size = place, .on = one}, first, place, why));
      REQUIRE(all.back() == base + i * half_chunk);
    }
    return all;
  }
  [[nodiscard]] bool gives(address at, std::optional<stream> after = {}) {
    course<config>::freed gone;
    return c.take_back(at, after ? &*after : nullptr, after ? enter(*after) : nobody, gone);
  }

  void sound() const {
    parts_rig::sound();
    char const* const fault = c.find_fault();
    CHECK_MESSAGE(fault == nullptr, fault);
  }
  /// Nothing is held; the view's mapping stays.
  void over() const {
    CHECK(c.over());
    CHECK(c.memory().taken() == 0);
    CHECK(free() == size);
    CHECK(parts.stitches.live() == 0);
    CHECK(parts.stitches.idle().count == 1);
    CHECK(c.served().used().empty());
    sound();
  }
};

}  // namespace

TEST_CASE("a course that is kept holds its memory, whatever is freed in it") {
  course_rig r;
  for (address const at : r.take_places(4)) CHECK(r.gives(at));
  CHECK(r.c.memory().held());
  CHECK_FALSE(r.c.leaving());
  CHECK_FALSE(r.c.over());
  r.c.settle(r.first);
  CHECK(r.c.memory().held());
}

TEST_CASE("left while nothing lives, all of it goes back at once") {
  course_rig r;
  r.c.leave(r.first);
  CHECK(r.c.leaving());
  r.over();
  CHECK(r.order().device_waits() == 0);
}

TEST_CASE("left while blocks live, what is idle goes back at once, and the rest as it is freed") {
  course_rig r;
  auto const at = r.take_places(4);
  CHECK(r.gives(at[1]));
  r.c.leave(r.first);
  r.sound();
  CHECK_FALSE(r.c.over());
  CHECK(r.c.memory().taken() == 3 * place);
  CHECK(r.free() == size - 3 * place);
  for (bytes left = 3; std::size_t const i : {2u, 0u, 3u}) {
    CHECK(r.c.memory().holds(at[i], place));
    CHECK(r.gives(at[i]));
    CHECK_FALSE(r.gives(at[i]));
    CHECK(r.c.memory().taken() == --left * place);
    CHECK_FALSE(r.c.memory().holds(at[i], place));
    r.sound();
  }
  r.over();
}

TEST_CASE("a course takes back its own blocks only") {
  course_rig r;
  CHECK_FALSE(r.gives(r.base));
  auto const at = r.take_places(2);
  address const other = r.parts.space.home().ranges().front().first_chunk->next->home;
  REQUIRE(r.live.find(other) != nullptr);
  CHECK_FALSE(r.gives(other));
  CHECK_FALSE(r.gives(at[0] + 512));
  r.c.leave(r.first);
  CHECK_FALSE(r.gives(other));
  CHECK_FALSE(r.gives(at[1] + place));
  CHECK(r.c.served().live() == 2);
}

TEST_CASE("a course that is over can be held again, with no driver call") {
  course_rig r;
  auto const at = r.take_places(1);
  r.c.leave(r.first);
  CHECK(r.gives(at[0]));
  r.over();
  auto const calls = r.device.calls.calls();
  r.c.hold_again();
  CHECK_FALSE(r.c.leaving());
  CHECK(must(r.c.memory().hold(r.first)) == arena<parts_rig::config>::holding::all);
  must(r.c.served().follow(&*r.way, 0, r.first));
  (void)r.take_places(4);
  CHECK(r.device.calls.calls() == calls);
  r.sound();
}

TEST_CASE("what another stream still uses goes back once somebody has waited for it") {
  course_rig r;
  stream_index const second = r.enter(two);
  auto const at = r.take_places(2);
  must(r.c.served().record(at[0], second).value());
  r.c.leave(r.first);
  auto const work = r.time->queued(two);
  CHECK(r.gives(at[0]));
  CHECK(r.c.memory().taken() == 2 * place);
  SUBCASE("on settling") {
    r.c.settle(r.first);
    CHECK(r.c.memory().taken() == place);
    CHECK(r.time->ordered(work, one));
    CHECK(r.gives(at[1]));
  }
  SUBCASE("with the last block") {
    CHECK(r.gives(at[1]));
    CHECK(r.time->ordered(work, one));
  }
  r.over();
}

TEST_CASE("freed after another stream's work, memory goes back for that stream") {
  course_rig r;
  stream_index const second = r.enter(two);
  auto const at = r.take_places(2);
  r.c.leave(r.first);
  CHECK(r.gives(at[0], two));
  CHECK(r.c.memory().taken() == place);
  block const* on_second = nullptr;
  r.parts.space.each_free(second, 512, [&](block& b) {
    if (b.on == second) on_second = &b;
  });
  REQUIRE(on_second != nullptr);
  CHECK(on_second->size == place);
  CHECK(on_second->stamp == r.order().latest(second));
  CHECK(r.gives(at[1]));
  CHECK(r.c.over());
}

TEST_CASE("a stream that can't be made to wait leaves the memory for another time") {
  course_rig r;
  stream_index const second = r.enter(two);
  auto const at = r.take_places(1);
  must(r.c.served().record(at[0], second).value());
  (void)r.stamp(second);
  must(r.time->set_captured(one, true));
  r.c.leave(r.first);
  CHECK(r.c.leaving());
  CHECK(r.c.memory().taken() == size);
  CHECK(r.gives(at[0]));
  CHECK(r.c.memory().taken() == size);
  CHECK_FALSE(r.c.over());
  r.c.settle(r.first);
  CHECK(r.c.memory().taken() == size);
  must(r.time->set_captured(one, false));
  r.c.settle(r.first);
  r.over();
}

TEST_CASE("whoever comes after all of a course comes after what every stream freed, and nothing is in use any more") {
  course_rig r;
  stream_index const second = r.enter(two);
  auto const at = r.take_places(2);
  must(r.c.served().record(at[0], second).value());
  auto const work = r.time->queued(two);
  CHECK(r.gives(at[0]));
  stream_index const third = r.enter(stream{3});
  std::optional<tick> const stamp = r.c.come_after_all(third);
  REQUIRE(stamp.has_value());
  CHECK(*stamp == r.order().latest(third));
  CHECK(r.time->ordered(work, stream{3}));
  CHECK(r.c.served().used().size() == 1);  // the block that lives
}

TEST_CASE("nobody waits where all is known to be over") {
  course_rig r;
  (void)r.enter(two);
  CHECK(r.gives(r.take_places(1)[0]));
  must(r.order().synchronize());
  std::optional<tick> const stamp = r.c.come_after_all(r.first);
  REQUIRE(stamp.has_value());
  CHECK(*stamp == 0);
  CHECK(r.order().device_waits() == 0);
}
