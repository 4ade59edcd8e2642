#include "gmlake/swap/plan_trial.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>

#include <doctest/doctest.h>

namespace gmlake::swap::plan_trial_test {
namespace {

using plan = std::shared_ptr<step_plan const>;

[[nodiscard]] plan any_plan() {
  step_program p;
  p.program.operations.assign(2, time(1));
  p.prefixes.assign(2, 0);
  return std::make_shared<step_plan const>(p, planned_moves{}, forecast{});
}

struct rig {
  plan first = any_plan(), second = any_plan();
  plan_trial trial;
  bool waits = false;  ///< what was gone back to, for what is mapped

  rig() { trial.begin(); }
  /// So many steps that take so long each; what was gone back to, if anything.
  plan steps(int n, int t) {
    plan back;
    for (int k = 0; k < n; ++k) {
      if (auto const to = trial.step_took(time(t))) {
        CHECK(back == nullptr);
        back = to->plan;
        waits = to->waits;
      }
    }
    return back;
  }
};

}  // namespace

TEST_CASE("a plan by which steps take longer yields to the one before") {
  rig r;
  CHECK(r.steps(14, 1000) == nullptr);
  r.trial.begin({r.first});
  CHECK(r.steps(13, 1100) == nullptr);  // six to settle, and eight are looked at
  CHECK(r.steps(1, 1100) == r.first);
  CHECK(r.steps(30, 5000) == nullptr);  // there is nothing to go back to any more
}

TEST_CASE("one by which they take as long stays") {
  rig r;
  (void)r.steps(14, 1000);
  r.trial.begin({r.first});
  CHECK(r.steps(30, 1010) == nullptr);
}

TEST_CASE("what the change upsets counts for nothing, nor do five long steps of eight") {
  rig r;
  (void)r.steps(14, 1000);
  r.trial.begin({r.first});
  CHECK(r.steps(6, 9000) == nullptr);
  CHECK(r.steps(2, 1000) == nullptr);
  CHECK(r.steps(5, 3000) == nullptr);
  CHECK(r.steps(1, 1000) == nullptr);
}

TEST_CASE("a plan before whose steps were too few to tell is not gone back to") {
  rig r;
  (void)r.steps(13, 1000);
  r.trial.begin({r.first});
  CHECK(r.steps(30, 2000) == nullptr);
  r.trial.begin();
  (void)r.steps(13, 1000);
  r.trial.begin({r.first});
  CHECK(r.steps(30, 2000) == nullptr);
}

TEST_CASE("where there was none before, or none of use, there is nothing to go back to") {
  rig r;
  CHECK(r.steps(30, 1000) == nullptr);
  r.trial.begin();
  CHECK(r.steps(30, 2000) == nullptr);
  r.trial.begin({r.second});
  CHECK(r.steps(30, 1000) == nullptr);
}

TEST_CASE("what replaces a plan that was not judged yet is held against the one before both") {
  rig r;
  (void)r.steps(14, 1000);
  r.trial.begin({r.first});
  CHECK(r.steps(13, 2000) == nullptr);
  r.trial.begin({r.second});
  CHECK(r.steps(14, 1500) == r.first);
}

TEST_CASE("and as strictly as either was to be") {
  rig r;
  (void)r.steps(14, 1000);
  r.trial.begin({r.first}, plan_trial::shorter);
  (void)r.steps(1, 1000);
  r.trial.begin({r.second});
  CHECK(r.steps(14, 1000) == r.first);
}

TEST_CASE("a way that is to take less time stays only if it does") {
  rig r;
  bool waited = false;
  SUBCASE("") {}
  SUBCASE("and is gone back from as a whole") { waited = true; }
  (void)r.steps(14, 1000);
  r.trial.begin({r.first, waited}, plan_trial::shorter);
  CHECK(r.steps(14, 995) == r.first);
  CHECK(r.waits == waited);
  (void)r.steps(14, 1000);
  r.trial.begin({r.first, waited}, plan_trial::shorter);
  CHECK(r.steps(30, 990) == nullptr);
}

TEST_CASE("a way that takes long to settle is looked at as often as it may be") {
  rig r;
  (void)r.steps(14, 1000);
  r.trial.begin({r.first}, plan_trial::shorter, 3);
  CHECK(r.steps(29, 1000) == nullptr);
  CHECK(r.steps(1, 1000) == r.first);
  (void)r.steps(14, 1000);
  r.trial.begin({r.first}, plan_trial::shorter, 3);
  CHECK(r.steps(14, 1040) == nullptr);
  CHECK(r.steps(8, 900) == nullptr);
  CHECK(r.steps(30, 1100) == nullptr);  // it stays
  r.trial.begin({r.first}, plan_trial::shorter, 3);
  CHECK(r.steps(16, 1150) == nullptr);
  r.trial.begin({r.second});  // it was not judged yet
  CHECK(r.steps(21, 1100) == nullptr);
  CHECK(r.steps(1, 1100) == r.first);
}

TEST_CASE("but no more often where steps take longer by far") {
  rig r;
  (void)r.steps(14, 1000);
  r.trial.begin({r.first}, plan_trial::shorter, 3);
  CHECK(r.steps(13, 1051) == nullptr);
  CHECK(r.steps(1, 1051) == r.first);
}

TEST_CASE("what steps take is told once they have gone one way for long") {
  rig r;
  (void)r.steps(19, 1000);
  CHECK(r.trial.took() == time::zero());
  (void)r.steps(1, 1000);
  CHECK(r.trial.took() == time(1000));
  r.trial.begin({r.first});
  (void)r.steps(13, 900);
  CHECK(r.trial.took() == time::zero());
  (void)r.steps(7, 900);
  CHECK(r.trial.took() == time(900));
}

}  // namespace gmlake::swap::plan_trial_test
