#include <doctest/doctest.h>

#include "gmlake/adapter/torch_text.hpp"
#include "tests/adapter/torch_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream s{5};

[[nodiscard]] torch_rig_options swapping(bytes capacity = 1_GiB) {
  return {.capacity = capacity, .lag = 0, .swaps = true};
}
[[nodiscard]] address swappable(torch_rig& r, bytes n, std::uint32_t group = 0) {
  return must(r.device().allocate(n, s, placement::movable, swap::tag{group}));
}
[[nodiscard]] result<void> announce(torch_swapper& by, swap::block_use const& what, stream on) {
  return by.access({&what, 1}, on);
}

}  // namespace

TEST_CASE("without a swapper, blocks can't be made to leave") {
  torch_rig r;
  CHECK(r.device().swapper() == nullptr);
  CHECK_THROWS_AS((void)r.device().make_swapper(), std::logic_error);
  CHECK(stats_text(r.device()).find("swap_") == std::string::npos);
}

TEST_CASE("a swappable block leaves, comes back and is freed through the device") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  CHECK(&r.device().make_swapper() == &swapper);
  address const at = swappable(r, 64_MiB);
  CHECK(swapper.figures().swaps.swappable == 64_MiB);
  must(swapper.swap_out(at, s));
  must(swapper.swap_in(at, s));
  must(swapper.swap_out(at, s));
  CHECK(swapper.pause({}, true).moved == 64_MiB);
  CHECK(swapper.figures().swaps.absent == 64_MiB);
  r.give(at);
  CHECK(swapper.figures().swaps.swappable == 0);
  CHECK(swapper.figures().swaps.on_host == 0);
  r.sound();
  r.destroy();
}

TEST_CASE("what is not swappable goes by the pool, and can't leave") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  address const plain = r.take(64_MiB, s);
  address const small = swappable(r, 1_MiB);
  for (address const at : {plain, small}) {
    result<void> const done = swapper.swap_out(at, s);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == errc::unknown_pointer);
    must(swapper.pin(at, s));  // it never leaves
    r.give(at);
  }
  CHECK(swapper.figures().swaps.swappable == 0);
}

TEST_CASE("what is asked to be swappable is, within paging too, and says so; pinned, it stays") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  REQUIRE(swapper.start(200_MiB));
  address const asked = swappable(r, torch_swapper::smallest);
  address const not_asked = r.take(torch_swapper::smallest, s);
  (void)swapper.end_operation(s);
  CHECK(swapper.knows(asked));
  CHECK_FALSE(swapper.knows(not_asked));
  CHECK_FALSE(swapper.knows(asked + 1));
  must(swapper.pin(asked, s));
  CHECK_FALSE(swapper.swap_out(asked, s));
  must(swapper.unpin(asked));
  CHECK(swapper.unpin(asked).error().code == errc::invalid_argument);
  must(swapper.pin(not_asked, s));  // it never leaves
  must(swapper.unpin(not_asked));
  must(swapper.swap_out(asked, s));
  CHECK(swapper.stop(1_GiB).stayed == 0);
  for (address const at : {asked, not_asked}) r.give(at);
  r.destroy();
}

TEST_CASE("what nobody writes leaves without being copied again, until somebody may") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  address const at = swappable(r, 64_MiB, 1);
  must(swapper.set_read_only(at, true));
  auto const copied_by_a_pause = [&] {
    bytes const before = swapper.figures().swaps.copied_out;
    CHECK(swapper.pause(swap::tag{1}, true).moved == 64_MiB);
    CHECK(swapper.resume(swap::tag{1}).moved == 64_MiB);
    return swapper.figures().swaps.copied_out - before;
  };
  CHECK(copied_by_a_pause() == 64_MiB);
  CHECK(copied_by_a_pause() == 0);
  must(swapper.set_read_only(at, false));
  CHECK(copied_by_a_pause() == 64_MiB);
  r.give(at);
}

TEST_CASE("a paused group's memory is the device's") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  std::vector<address> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(swappable(r, 100_MiB, 1));
  address const other = swappable(r, 50_MiB, 2);
  bytes const before = r.gpu.created();
  swap::pause_outcome const out = swapper.pause(swap::tag{1}, true);
  CHECK(out.moved == 400_MiB);
  CHECK(out.stayed == 0);
  CHECK(before - r.gpu.created() >= 390_MiB);
  CHECK(swapper.resume(swap::tag{1}).moved == 400_MiB);
  for (address const at : blocks) r.give(at);
  r.give(other);
}

TEST_CASE("a paged program keeps to its limit, and gets it back") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  address const before = swappable(r, 100_MiB);
  REQUIRE(swapper.start(300_MiB));
  CHECK(swapper.paging());
  std::vector<address> blocks;
  for (int i = 0; i < 6; ++i) {
    blocks.push_back(r.take(80_MiB, s));  // any request is swappable now
    must(announce(swapper, {.at = blocks.back(), .writes = true}, s));
    (void)swapper.end_operation(s);
    CHECK(r.device().limit().held() <= 300_MiB);
  }
  CHECK(swapper.figures().swaps.absent >= 280_MiB);
  for (address const at : blocks) {
    must(announce(swapper, {.at = at, .reads = true}, s));
    swapper.took(swapper.end_operation(s), {swap::time(1000)});
    CHECK(r.device().limit().held() <= 300_MiB);
  }
  CHECK(swapper.figures().pages.misses >= 3);
  swap::pause_outcome const back = swapper.stop(1_GiB);
  CHECK(back.stayed == 0);
  CHECK_FALSE(swapper.paging());
  CHECK(swapper.figures().swaps.absent == 0);
  std::string const text = stats_text(r.device());
  CHECK(text.find("\npage_evictions ") != std::string::npos);
  CHECK(text.find("\nswap_departures ") != std::string::npos);
  for (address const at : blocks) r.give(at);
  r.give(before);
  address const after = r.take(80_MiB, s);
  CHECK_FALSE(swapper.swap_out(after, s));
  r.give(after);
  r.destroy();
}

TEST_CASE("what running operations use does not fit: an error, and nothing is lost") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  REQUIRE(swapper.start(200_MiB));
  address const a = r.take(80_MiB, s);
  (void)swapper.end_operation(s);
  address const b = r.take(80_MiB, s);
  must(announce(swapper, {.at = a, .reads = true}, s));
  result<address> const third = r.device().allocate(80_MiB, s);
  REQUIRE_FALSE(third);
  CHECK(third.error().code == errc::out_of_memory);
  (void)swapper.end_operation(s);
  address const c = r.take(80_MiB, s);
  (void)swapper.end_operation(s);
  for (address const at : {a, b, c}) r.give(at);
  r.sound();
}

TEST_CASE("who is asked for help where memory is out may free blocks") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  REQUIRE(swapper.start(200_MiB));
  std::vector<address> spare = {r.take(80_MiB, s)};
  (void)swapper.end_operation(s);
  must(swapper.pin(spare.front(), s));
  r.device().on_out_of_memory([&](memory_account const&) {
    CHECK_FALSE(torch_swapper::busy());
    for (address const at : spare) r.give(at);
    return !std::exchange(spare, {}).empty();
  });
  address const a = r.take(80_MiB, s);
  address const b = r.take(80_MiB, s);
  CHECK(spare.empty());
  CHECK_FALSE(r.device().allocate(80_MiB, s));
  (void)swapper.end_operation(s);
  for (address const at : {a, b}) r.give(at);
  r.sound();
}

TEST_CASE("what is captured, or used beyond its operation, stays for good") {
  torch_rig r(swapping());
  torch_swapper& swapper = r.device().make_swapper();
  REQUIRE(swapper.start(400_MiB));
  auto const used = [&](address at, bool lingers) {
    swap::block_use const one{.at = at, .reads = true};
    must(r.device().use(swapper, {&one, 1}, lingers, s));
    (void)swapper.end_operation(s);
  };
  std::vector<address> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(r.take(80_MiB, s));
    used(blocks.back(), i == 1);
  }
  r.gpu.set_captured(s, true);
  REQUIRE(r.device().begin({1, 1}, only({s})));
  used(blocks[2], false);
  address const captured = r.take(1_MiB, s);
  REQUIRE(r.device().end({1, 1}));
  r.gpu.set_captured(s, false);
  for (int i = 0; i < 3; ++i) {
    bool const leaves = swapper.swap_out(blocks[static_cast<std::size_t>(i)], s).has_value();
    CHECK(leaves == (i == 0));
  }
  CHECK(swapper.stop(1_GiB).stayed == 0);
  for (address const at : blocks) r.give(at);
  r.give(captured);
  REQUIRE(r.device().release({1, 1}));
  r.sound();
}

TEST_CASE("steps that repeat are followed by schedule") {
  torch_rig r(swapping(2_GiB));
  torch_swapper& swapper = r.device().make_swapper();
  REQUIRE(swapper.start(400_MiB));
  for (int step = 0; step < 1500 && swapper.figures().pages.steps_by_schedule < 4; ++step) {
    swapper.begin_step(s, true);
    std::vector<address> saved;
    auto const run = [&](address reads, address writes) {
      for (address const at : {reads, writes}) {
        if (at != address{}) must(announce(swapper, {.at = at, .reads = at == reads, .writes = at == writes}, s));
      }
      swapper.took(swapper.end_operation(s), {std::chrono::milliseconds(5)});
    };
    for (int i = 0; i < 10; ++i) {
      saved.push_back(r.take(60_MiB, s));
      run(i > 0 ? saved[saved.size() - 2] : address{}, saved.back());
    }
    for (; !saved.empty(); saved.pop_back()) {
      run(saved.back(), {});
      r.give(saved.back());
    }
    CHECK(r.device().limit().held() <= 400_MiB);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the thread that plans
  }
  torch_swap_figures const f = swapper.figures();
  CHECK(f.link.out.bytes_per_second > 1'000'000);  // the host's own copies, measured
  CHECK(f.link.out.bytes_per_second != swap::lane{}.bytes_per_second);
  CHECK(f.pages.plans_made >= 1);
  CHECK(f.pages.steps_by_schedule >= 4);
  CHECK(f.pages.planned_in > 0);
  REQUIRE(f.expected);
  CHECK(f.expected->peak <= 400_MiB);
  (void)swapper.stop(2_GiB);
  r.destroy();
}

/// Of two jobs, and of none.
constexpr stream first{11};
constexpr stream second{12};
constexpr stream side{13};

TEST_CASE("each job's steps are timed or not, whatever others' are") {
  torch_rig r(swapping(2_GiB));
  torch_swapper& swapper = r.device().make_swapper();
  REQUIRE(swapper.start(500_MiB));
  CHECK(swapper.timed(s));
  swapper.begin_step(s, false);
  CHECK(!swapper.timed(s));
  CHECK(!swapper.timed(side));
  must(swapper.begin_job(first, 0));
  must(swapper.begin_job(second, 0));
  CHECK(swapper.timed(first));
  swapper.begin_step(first, false);
  CHECK(swapper.timed(second));
  CHECK(!swapper.timed(first));
  CHECK(!swapper.timed(side));  // this thread works for the first
  swapper.begin_step(first, true);
  CHECK(swapper.timed(first));
  CHECK(swapper.timed(side));
  must(swapper.end_job(first));
  must(swapper.end_job(second));
  CHECK(!swapper.timed(first));  // the program's
  (void)swapper.stop(2_GiB);
  REQUIRE(swapper.start(500_MiB));
  CHECK(swapper.timed(s));
  (void)swapper.stop(2_GiB);
  r.destroy();
}

TEST_CASE("jobs on streams of their own have steps of their own, and share the limit") {
  torch_rig r(swapping(2_GiB));
  torch_swapper& swapper = r.device().make_swapper();
  REQUIRE(swapper.start(500_MiB));
  must(swapper.begin_job(first, 0));
  must(swapper.begin_job(second, 1));
  CHECK(swapper.begin_job(second, 0).error().code == errc::invalid_argument);
  CHECK(swapper.end_job(side).error().code == errc::invalid_argument);

  struct job {
    stream on;
    bytes size;
    std::vector<address> saved{};
    bool forward = true;
  };
  job jobs[] = {{first, 60_MiB}, {second, 40_MiB}};
  auto const run = [&](job& j, address reads, address writes) {
    for (address const at : {reads, writes}) {
      if (at != address{}) must(announce(swapper, {.at = at, .reads = at == reads, .writes = at == writes}, j.on));
    }
    swapper.took(swapper.end_operation(j.on), {std::chrono::milliseconds(5)});
  };
  // One operation of each in turn; both have steps of as many.
  auto const advance = [&](job& j) {
    if (j.forward) {
      if (j.saved.empty()) swapper.begin_step(j.on, true);
      // What is made for a stream that nobody knows is the job's whose thread makes it.
      address const made = r.take(j.size, j.saved.size() == 3 ? side : j.on);
      address const before = j.saved.empty() ? address{} : j.saved.back();
      j.saved.push_back(made);
      run(j, before, made);
      j.forward = j.saved.size() < 8;
    } else {
      run(j, j.saved.back(), {});
      r.give(j.saved.back());
      j.saved.pop_back();
      j.forward = j.saved.empty();
    }
  };
  auto const by_schedule = [&] { return swapper.figures().pages.steps_by_schedule; };
  for (int step = 0; step < 1500 && by_schedule() < 8; ++step) {
    for (int i = 0; i < 16; ++i) {
      for (job& j : jobs) advance(j);
      CHECK(r.device().limit().held() <= 500_MiB);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the thread that plans
  }
  CHECK(by_schedule() >= 8);
  CHECK(swapper.figures().pages.steps >= 16);

  // One goes in the middle of a step; what it leaves is freed like any other, and its stream may be a job's again.
  for (int i = 0; i < 5; ++i) advance(jobs[1]);
  must(swapper.end_job(second));
  CHECK(swapper.end_job(second).error().code == errc::invalid_argument);
  for (int i = 0; i < 64; ++i) advance(jobs[0]);
  for (address const at : jobs[1].saved) r.give(at);
  must(swapper.begin_job(second, 0));
  must(swapper.end_job(second));
  must(swapper.end_job(first));
  for (address const at : jobs[0].saved) r.give(at);
  CHECK(swapper.stop(2_GiB).stayed == 0);
  r.sound();
  r.destroy();
}
