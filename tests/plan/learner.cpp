#include "gmlake/plan/learner.hpp"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/plan/plan_rules.hpp"

using namespace gmlake;
using namespace gmlake::plan;

namespace {

/// A program as the learner sees it; plans that it is told of are kept.
class program {
 public:
  learner watched;
  std::vector<gmlake::plan::plan> told;
  std::vector<std::uint64_t> told_before;  ///< the request, for each

  std::uint64_t allocate(bytes n, std::uint32_t stream = 0) {
    if (std::optional<gmlake::plan::plan> step = watched.next()) {
      told.push_back(std::move(*step));
      told_before.push_back(watched.count());
    }
    live_ += n;
    return watched.allocated(n, stream);
  }
  void free(std::uint64_t number, bytes n) {
    live_ -= n;
    watched.freed(number, n);
  }

  /// Forty activations, freed in reverse; the first request's size varies with `shape`.
  void step(bytes shape = 1) {
    std::vector<std::uint64_t> kept;
    std::uint64_t const input = allocate(shape * 512);
    for (bytes i = 0; i < 40; ++i) kept.push_back(allocate(1_MiB + i * 512));
    for (bytes i = 40; i-- > 0;) free(kept[i], 1_MiB + i * 512);
    free(input, shape * 512);
  }
  /// Beginning with a mark.
  void marked_step(bytes shape = 1) {
    watched.mark_step();
    step(shape);
  }
  [[nodiscard]] bytes live() const { return live_; }

 private:
  bytes live_ = 0;
};

}  // namespace

TEST_SUITE("learner") {
  TEST_CASE("a step that has come twice on end is worth a plan") {
    program p;
    for (bytes i = 0; i < 10; ++i) p.allocate(2_MiB + i * 512);
    p.marked_step();
    p.marked_step();
    CHECK(p.told.empty());
    p.marked_step();
    REQUIRE(p.told.size() == 1);
    CHECK(p.told_before[0] == 10 + 2 * 41);
    CHECK(p.told[0].requests.size() == 41);
    CHECK(p.told[0].period == 2 * 41);
    CHECK(p.told[0].repeats);
    for (step_request const& r : p.told[0].requests) CHECK(r.death != step_request::stays);
  }

  TEST_CASE("without marks too") {
    program p;
    for (bytes i = 0; i < 10; ++i) p.allocate(2_MiB + i * 512);
    for (int i = 0; i < 6; ++i) p.step();
    REQUIRE_FALSE(p.told.empty());
    CHECK(p.told[0].requests.size() == 41);
    CHECK(p.told_before[0] <= 10 + 4 * 41);
  }

  TEST_CASE("what came before the steps is kept, with what outlives it staying") {
    program p;
    std::uint64_t const scratch = p.allocate(4_MiB);
    std::uint64_t const weight = p.allocate(2_MiB);
    p.free(scratch, 4_MiB);
    for (int i = 0; i < 3; ++i) p.marked_step();
    gmlake::plan::plan const& before = p.watched.prologue();
    REQUIRE(before.requests.size() == 2);
    CHECK_FALSE(before.repeats);
    CHECK(before.requests[0].death == 2);
    CHECK(before.requests[1].death == step_request::stays);
    p.free(weight, 2_MiB);
  }

  TEST_CASE("what lives on into the next step wraps") {
    program p;
    std::uint64_t kept = 0;
    for (int i = 0; i < 4; ++i) {
      p.watched.mark_step();
      p.step();
      if (i > 0) p.free(kept, 3_MiB);
      kept = p.allocate(3_MiB);
    }
    REQUIRE_FALSE(p.told.empty());
    gmlake::plan::plan const& step = p.told.back();
    step_request const& last = step.requests.back();
    CHECK(last.size == 3_MiB);
    CHECK(last.death != step_request::stays);
    CHECK(last.death > step.period);
  }

  TEST_CASE("what outlives the next step is planned in laps, as soon as it is known how long it lives") {
    for (std::size_t carried_for = 1; carried_for <= 3; ++carried_for) {
      CAPTURE(carried_for);
      program p;
      std::vector<std::uint64_t> results;
      std::size_t steps = 0;
      for (; steps < 10 && p.told.empty(); ++steps) {
        p.watched.mark_step();
        results.push_back(p.allocate(3_MiB));
        if (results.size() > carried_for) p.free(results[results.size() - 1 - carried_for], 3_MiB);
        p.step();
      }
      REQUIRE(p.told.size() == 1);
      CHECK(p.told[0].laps == carried_for + 1);
      CHECK(p.told[0].requests.size() == (carried_for + 1) * 42);
      // The first steps free nothing of those before, so theirs live some events less.
      CHECK(p.told[0].requests[0].death + 3 >= carried_for * (p.told[0].period / p.told[0].laps) + 1);
      CHECK(steps <= carried_for + 3);
    }
  }
  TEST_CASE("what stays for good delays a plan by two steps, and a loop that carries a block along has no laps") {
    program leaking;
    for (int i = 0; i < 5; ++i) {
      leaking.watched.mark_step();
      leaking.allocate(3_MiB);
      leaking.step();
      CHECK(leaking.told.size() == (i < 4 ? 0 : 1));
    }
    REQUIRE_FALSE(leaking.told.empty());
    CHECK(leaking.told[0].laps == 1);
    CHECK(leaking.told[0].requests[0].death == step_request::stays);

    program unmarked;
    std::vector<std::uint64_t> results;
    for (int i = 0; i < 6; ++i) {
      results.push_back(unmarked.allocate(3_MiB));
      if (i > 0) unmarked.free(results[results.size() - 2], 3_MiB);
      unmarked.step();
    }
    REQUIRE_FALSE(unmarked.told.empty());
    CHECK(unmarked.told[0].laps == 1);
  }

  TEST_CASE("a program that keeps changing its steps must repeat one more often") {
    program p;
    for (bytes i = 0; i < 10; ++i) p.allocate(2_MiB + i * 512);
    for (bytes shape = 1; shape <= 8; ++shape) p.marked_step(shape);
    for (int i = 0; i < 3; ++i) p.marked_step(20);
    CHECK(p.told.empty());
    for (int i = 0; i < 2; ++i) p.marked_step(20);
    CHECK_FALSE(p.told.empty());
  }

  TEST_CASE("steps that never come again are worth none") {
    program p;
    for (bytes i = 0; i < 60; ++i) p.marked_step(1 + i);
    CHECK(p.told.empty());
  }

  TEST_CASE("a program that chooses among a few shapes has each planned, though none comes twice on end") {
    program p;
    for (bytes i = 0; i < 40; ++i) p.marked_step(1 + i % 5);
    REQUIRE_FALSE(p.told.empty());
    for (bytes shape = 1; shape <= 5; ++shape) {
      CHECK(std::ranges::any_of(
          p.told, [=](gmlake::plan::plan const& step) { return step.requests.front().size == shape * 512; }));
    }
    for (gmlake::plan::plan const& step : p.told) {
      for (step_request const& r : step.requests) CHECK(r.death != step_request::stays);
    }
  }

  TEST_CASE("of two equal steps, the later tells how long blocks live") {
    program p;
    p.watched.mark_step();
    p.step();
    std::uint64_t const kept = p.allocate(3_MiB);  // as gradients that are allocated once
    for (int i = 0; i < 2; ++i) {
      p.watched.mark_step();
      p.step();
      p.free(p.allocate(3_MiB), 3_MiB);
    }
    p.watched.mark_step();
    p.step();
    REQUIRE_FALSE(p.told.empty());
    for (step_request const& r : p.told.front().requests) CHECK(r.death != step_request::stays);
    p.free(kept, 3_MiB);
  }

  TEST_CASE("what repeats between updates is part of the step that has one") {
    program p;
    for (bytes i = 0; i < 10; ++i) p.allocate(2_MiB + i * 512);
    p.watched.note_update();
    for (int i = 0; i < 12; ++i) {
      for (bytes micro = 0; micro < 3; ++micro) p.step();
      p.watched.note_update();
    }
    REQUIRE_FALSE(p.told.empty());
    CHECK(p.told.back().requests.size() == 3 * 41);
  }

  TEST_CASE("once updates are noted, what repeats without one is no step") {
    program p;
    for (bytes i = 0; i < 10; ++i) p.allocate(2_MiB + i * 512);
    p.watched.note_update();
    for (int i = 0; i < 30; ++i) p.step();
    CHECK(p.told.empty());
    for (int i = 0; i < 4; ++i) {
      p.step();
      p.watched.note_update();
    }
    p.step();
    CHECK_FALSE(p.told.empty());
  }

  TEST_CASE("where updates are expected, what repeats before the first must come often") {
    program p;
    p.watched.expect_updates();
    for (bytes i = 0; i < 10; ++i) p.allocate(2_MiB + i * 512);
    for (int i = 0; i < 12; ++i) p.step();
    CHECK(p.told.empty());
    for (int i = 0; i < 20; ++i) p.step();
    CHECK_FALSE(p.told.empty());
  }

  TEST_CASE("a refused shape is not offered again") {
    program p;
    for (int i = 0; i < 4; ++i) p.marked_step();
    REQUIRE_FALSE(p.told.empty());
    p.watched.refuse(fingerprint(p.told[0].requests));
    std::size_t const before = p.told.size();
    for (int i = 0; i < 5; ++i) p.marked_step();
    CHECK(p.told.size() == before);
    for (int i = 0; i < 5; ++i) p.marked_step(9);
    CHECK(p.told.size() > before);
  }

  TEST_CASE("after a restart the steps are learnt anew") {
    program p;
    for (int i = 0; i < 4; ++i) p.marked_step();
    std::size_t const before = p.told.size();
    REQUIRE(before > 0);
    p.watched.restart(p.live(), true);
    p.marked_step();
    p.marked_step();
    CHECK(p.told.size() == before);
    p.marked_step();
    p.marked_step();
    CHECK(p.told.size() > before);
  }

  TEST_CASE("what is left of a marked step after a restart is no step, though it comes again") {
    program p;
    auto const broken_off = [&](bool at_mark) {
      p.watched.mark_step();
      p.free(p.allocate(7 * 512), 7 * 512);
      p.watched.restart(p.live(), at_mark);
      p.step(9);
    };
    broken_off(false);
    for (int i = 0; i < 40; ++i) broken_off(false);
    CHECK(p.told.empty());
    for (int i = 0; i < 40; ++i) broken_off(true);  // were it one
    p.marked_step();
    CHECK_FALSE(p.told.empty());
  }
}
