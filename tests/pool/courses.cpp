#include "gmlake/pool/courses.hpp"

#include <memory>
#include <vector>

#include "tests/pool/parts_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr bytes place = 256_KiB;

/// What the planner sees of them.
class opened : public courses<parts_rig::config> {
 public:
  using base = courses<parts_rig::config>;
  using base::base;
  using base::freed_block;
  using base::fresh_course;
  using base::leave_behind;
  using base::now_;
  using base::take_back;
};

struct courses_rig : parts_rig {
  explicit courses_rig(std::size_t chunks = 2) { lay_chunks(chunks); }
  ~courses_rig() { sound(); }

  opened all{parts, stitch, grow};
  std::vector<std::unique_ptr<plan::track>> tracks;

  /// Claims a chunk for the course now and places a block at its beginning.
  address begin() {
    REQUIRE(all.fresh_course());
    REQUIRE(must(all.now_->memory().claim(first, chunk_bytes, false)));
    tracks.push_back(std::make_unique<plan::track>(plan_of({{place, 0, 0, 1, 0}}, 2), all.now_->memory().segments()));
    must(all.now_->served().follow(tracks.back().get(), 0, first));
    follower<config>::verdict why{};
    return all.now_->served().serve({.size = 1000, .on = one}, first, place, why);
  }
  /// The same, and the course is left behind with its block.
  address begin_and_leave() {
    address const at = begin();
    all.now_->leave(first);
    CHECK(all.leave_behind(first));
    return at;
  }
  [[nodiscard]] bool gives(address at) {
    opened::freed_block gone;
    return all.take_back(at, nullptr, nobody, gone);
  }
  [[nodiscard]] std::vector<address> live_blocks() const {
    std::vector<address> at;
    all.each_live([&](block const& b, stream on) {
      CHECK(on == one);
      CHECK(b.size == place);
      CHECK(b.requested == 1000);
      at.push_back(b.begin);
    });
    return at;
  }
  [[nodiscard]] pool_snapshot shot() const {
    pool_snapshot s;
    all.add_to(s);
    return s;
  }
  void sound() const {
    parts_rig::sound();
    char const* const fault = all.find_fault();
    CHECK_MESSAGE(fault == nullptr, fault);
  }
};

}  // namespace

TEST_CASE("without a course there is nothing to find") {
  courses_rig r;
  CHECK_FALSE(r.gives(address{512}));
  CHECK_FALSE(r.all.record(address{512}, r.first).has_value());
  CHECK_FALSE(r.all.was_placed(address{512}));
  CHECK_FALSE(r.all.settle_rest(r.first));
  CHECK_FALSE(r.all.look_at(address{512}, [](block const&, stream) {}));
  CHECK(r.all.leave_behind(r.first));
  CHECK(r.live_blocks().empty());
  CHECK(r.shot().planned.empty());
}

TEST_CASE("a course that is held makes no room, and needs none") {
  courses_rig r;
  address const at = r.begin();
  auto const* const before = r.all.now_.get();
  CHECK(r.all.leave_behind(r.first));
  CHECK(r.all.now_.get() == before);
  CHECK(r.all.now_->memory().held());
  CHECK(r.gives(at));
  CHECK(r.all.fresh_course());
  CHECK(r.all.now_.get() == before);
}

TEST_CASE("a course that was left and is over is held again in place of a new one") {
  courses_rig r;
  address const at = r.begin();
  r.all.now_->leave(r.first);
  CHECK(r.shot().planned.size() == 1);
  CHECK(r.gives(at));
  CHECK(r.shot().planned.empty());
  auto const* const before = r.all.now_.get();
  CHECK(r.all.leave_behind(r.first));
  CHECK_FALSE(r.all.now_->leaving());
  r.all.now_->leave(r.first);
  CHECK(r.all.fresh_course());
  CHECK_FALSE(r.all.now_->leaving());
  CHECK(r.all.now_.get() == before);
}

TEST_CASE("a course left behind goes on until its last block is freed") {
  courses_rig r;
  address const old = r.begin_and_leave();
  CHECK(r.all.now_ == nullptr);
  CHECK(r.free() == 2 * chunk_bytes - place);
  address const now = r.begin();
  CHECK(now != old);
  r.tracks.erase(r.tracks.begin());  // nobody goes by it any more
  r.sound();
  CHECK(r.live_blocks() == std::vector<address>{now, old});
  CHECK(r.gives(old));
  CHECK_FALSE(r.gives(old));
  CHECK(r.free() == chunk_bytes);
  CHECK(r.live_blocks() == std::vector<address>{now});
  CHECK(r.shot().planned.size() == 1);
  CHECK(r.gives(now));
}

TEST_CASE("eight courses may be left behind; another has to wait until one is over") {
  courses_rig r(9);
  stream_index const second = r.enter(two);
  std::vector<address> old;
  while (old.size() < 8) old.push_back(r.begin_and_leave());
  address const last = r.begin();
  r.all.now_->leave(r.first);
  CHECK_FALSE(r.all.leave_behind(r.first));
  REQUIRE(r.all.now_ != nullptr);
  CHECK(r.all.now_->leaving());
  CHECK(r.live_blocks().size() == 9);
  must(r.all.record(old[3], second).value());
  must(r.time->set_captured(one, true));
  CHECK(r.gives(old[3]));  // not over: stream two still uses its memory
  CHECK_FALSE(r.all.leave_behind(r.first));
  must(r.time->set_captured(one, false));
  CHECK(r.all.leave_behind(r.first));
  CHECK(r.all.now_ == nullptr);
  CHECK(r.gives(last));
  old.erase(old.begin() + 3);
  for (address const at : old) CHECK(r.gives(at));
  CHECK(r.live_blocks().empty());
  CHECK(r.free() == 9 * chunk_bytes);
}

TEST_CASE("what other streams keep goes back on settling, and a course that is over then is forgotten") {
  courses_rig r;
  stream_index const second = r.enter(two);
  address const old = r.begin_and_leave();
  must(r.all.record(old, second).value());
  must(r.time->set_captured(one, true));
  CHECK(r.gives(old));  // nobody can wait for stream two now
  CHECK(r.shot().planned.size() == 1);
  CHECK_FALSE(r.all.settle_rest(r.first));
  must(r.time->set_captured(one, false));
  CHECK(r.all.settle_rest(r.first));
  CHECK_FALSE(r.all.settle_rest(r.first));
  CHECK(r.shot().planned.empty());
  CHECK(r.free() == 2 * chunk_bytes);
}

TEST_CASE("a use is recorded with whoever has the block") {
  courses_rig r;
  stream_index const second = r.enter(two);
  address const old = r.begin_and_leave();
  address const now = r.begin();
  for (address const at : {now, old}) {
    must(r.all.record(at, second).value());
    CHECK_FALSE(r.all.record(at + 512, second).has_value());
    opened::freed_block gone;
    REQUIRE(r.all.take_back(at, nullptr, nobody, gone));
    CHECK_FALSE(gone.at_once);
    CHECK_FALSE(r.all.record(at, second).has_value());
  }
}

TEST_CASE("a block may have been where a plan's memory is and nothing lives") {
  courses_rig r;
  address const old = r.begin_and_leave();
  address const now = r.begin();
  CHECK_FALSE(r.all.was_placed(now));
  CHECK_FALSE(r.all.was_placed(now + 512));
  CHECK(r.all.was_placed(now + place));
  CHECK_FALSE(r.all.was_placed(now + place + 1));
  CHECK_FALSE(r.all.was_placed(old));
  CHECK_FALSE(r.all.was_placed(old + place));  // the lake has it again
  CHECK(r.gives(now));
  CHECK(r.all.was_placed(now));
}

TEST_CASE("plans' blocks are seen from outside: one, all, and in a snapshot") {
  courses_rig r;
  address const old = r.begin_and_leave();
  address const now = r.begin();
  for (address const at : {old, now}) {
    address seen{};
    CHECK(r.all.look_at(at, [&](block const& b, stream on) {
      CHECK(on == one);
      CHECK(b.size == place);
      CHECK(b.requested == 1000);
      CHECK(b.first_chunk->home == at);
      seen = b.begin;
    }));
    CHECK(seen == at);
    CHECK_FALSE(r.all.look_at(at + 512, [](block const&, stream) {}));
  }
  pool_snapshot const s = r.shot();
  REQUIRE(s.planned.size() == 2);
  REQUIRE(s.planned_live.size() == 2);
  CHECK(s.planned[0].begin < s.planned[1].begin);
  CHECK(s.planned_live[0].begin < s.planned_live[1].begin);
  for (planned_run const& run : s.planned) {
    CHECK((run.begin == old || run.begin == now));
    CHECK(run.size == chunk_bytes);
    CHECK(run.held == (run.begin == now));
  }
  CHECK(s.planned_live[0].size == place);
  CHECK(s.planned_live[0].requested == 1000);
  CHECK(s.planned_live[0].owner == one);
}
