#include "gmlake/plan/adherence.hpp"

#include <doctest/doctest.h>

#include "gmlake/plan/plan.hpp"

using namespace gmlake;
using plan::adherence;

namespace {

[[nodiscard]] plan::plan of_requests(std::size_t count, bytes size = 512) {
  plan::plan p;
  for (std::size_t i = 0; i < count; ++i) p.requests.push_back({.size = size, .birth = i, .death = i + 1});
  p.period = 2 * count;
  return p;
}

/// Steps of a plan, with what comes of its requests.
class program {
 public:
  explicit program(plan::plan p) : plan_(std::move(p)) { kept.begin(0); }

  bool step(std::size_t misses, std::size_t placeless = 0) {
    for (std::size_t i = 0; i < misses; ++i) kept.miss();
    for (std::size_t i = 0; i < placeless; ++i) kept.lack_place();
    placed_ += plan_.requests.size() - misses - placeless;
    return kept.end_step(plan_, placed_);
  }
  /// Steps of that kind until the program is found to go on otherwise than planned; at most so many.
  int steps_until_it_departs(std::size_t misses, std::size_t placeless, int most) {
    for (int i = 1; i <= most; ++i) {
      (void)step(misses, placeless);
      if (kept.departs()) return i;
    }
    return most + 1;
  }

  adherence kept;

 private:
  plan::plan plan_;
  std::uint64_t placed_ = 0;
};

}  // namespace

TEST_SUITE("adherence") {
  TEST_CASE("steps as planned are counted, and never depart") {
    program p(of_requests(100));
    for (int i = 1; i <= 1000; ++i) {
      CHECK(p.step(0));
      CHECK(p.kept.steps() == i);
      CHECK_FALSE(p.kept.departs());
      CHECK_FALSE(p.kept.missed());
    }
  }
  TEST_CASE("a step that departs in more than a fifth has not kept to it") {
    program p(of_requests(100));
    CHECK(p.step(20));
    CHECK_FALSE(p.step(21));
    CHECK(p.kept.steps() == 1);
    CHECK_FALSE(p.step(100));
  }
  TEST_CASE("one is lost after as many misses as its length allows") {
    program p(of_requests(10));
    for (int i = 0; i < 16; ++i) p.kept.miss();
    CHECK(p.kept.missed());
    CHECK_FALSE(p.kept.lost(10, 10));
    p.kept.miss();
    CHECK(p.kept.lost(10, 10));
    CHECK(p.kept.lost(17 * 16 - 1, 17 * 16 - 1));
    CHECK_FALSE(p.kept.lost(17 * 16, 17 * 16));
  }
  TEST_CASE("it is lost sooner where a quarter of what has passed were misses") {
    program p(of_requests(1000));
    for (int i = 0; i < 17; ++i) p.kept.miss();
    CHECK(p.kept.lost(1000, 17 * 4 - 1));
    CHECK_FALSE(p.kept.lost(1000, 17 * 4));
    for (int i = 17; i < 63; ++i) p.kept.miss();
    CHECK(p.kept.lost(1000, 1000));
  }
  TEST_CASE("departing in the same number again and again is regular, in another is not") {
    program same(of_requests(100));
    CHECK(same.steps_until_it_departs(3, 0, 100) == 33);
    program other(of_requests(100));
    for (std::size_t i = 0; i < 200; ++i) {
      (void)other.step(1 + i % 2);
      CHECK_FALSE(other.kept.departs());
    }
    program good_between(of_requests(100));
    for (int i = 0; i < 20; ++i) (void)good_between.step(3);
    (void)good_between.step(0);
    CHECK(good_between.steps_until_it_departs(3, 0, 100) == 33);
  }
  TEST_CASE("few steps suffice where less is placed than not") {
    program p(of_requests(100));
    CHECK(p.steps_until_it_departs(60, 0, 100) == 4);
    p.kept.change();
    CHECK_FALSE(p.kept.departs());
  }
  TEST_CASE("requests without a place have another plan made, at longer and longer intervals") {
    program p(of_requests(100));
    CHECK(p.steps_until_it_departs(0, 2, 100) == 101);  // as many as live on
    CHECK(p.steps_until_it_departs(0, 3, 100) == 4);
    p.kept.change();
    CHECK(p.steps_until_it_departs(0, 3, 100) == 16);
    p.kept.change();
    CHECK(p.steps_until_it_departs(0, 3, 100) == 64);
  }
  TEST_CASE("taking up a plan begins anew") {
    program p(of_requests(100));
    for (int i = 0; i < adherence::trusted_after; ++i) (void)p.step(3);
    (void)p.step(3);
    CHECK(p.kept.departs());
    CHECK(p.kept.steps() > adherence::trusted_after);
    p.kept.begin(0);
    CHECK_FALSE(p.kept.departs());
    CHECK(p.kept.steps() == 0);
    p.kept.trust();
    CHECK(p.kept.steps() == adherence::trusted_after);
  }
}
