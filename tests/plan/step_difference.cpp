#include "gmlake/plan/step_difference.hpp"

#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;

namespace {

bool at_most(std::vector<bytes> const& a, std::vector<bytes> const& b, std::uint64_t allowed) {
  plan::step_log log;
  for (bytes n : a) (void)log.allocated(n, 0);
  for (bytes n : b) (void)log.allocated(n, 0);
  return plan::step_difference(log, {0, a.size()}, {a.size(), log.end()}).at_most(allowed);
}

std::vector<bytes> any_step(std::mt19937_64& random, std::size_t length) {
  std::vector<bytes> step(length);
  for (bytes& n : step) n = 512 * (1 + random() % 20);
  return step;
}

}  // namespace

TEST_CASE("equal stretches differ in nothing, and a longer one by the rest") {
  std::vector<bytes> const a = {1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(at_most(a, a, 0));
  CHECK(at_most({}, {}, 0));
  CHECK_FALSE(at_most(a, {1, 2, 3, 4, 5, 6}, 1));
  CHECK(at_most(a, {1, 2, 3, 4, 5, 6}, 2));
  CHECK_FALSE(at_most({}, a, 7));
}

TEST_CASE("one more, one fewer and one other request count as one") {
  std::vector<bytes> const a = {1, 2, 3, 4, 5, 6, 7, 8};
  for (auto const& b :
       {std::vector<bytes>{1, 2, 3, 99, 4, 5, 6, 7, 8}, {1, 2, 3, 5, 6, 7, 8}, {1, 2, 3, 99, 5, 6, 7, 8}}) {
    CHECK(at_most(a, b, 1));
    CHECK_FALSE(at_most(a, b, 0));
  }
  CHECK(at_most(a, {99, 1, 2, 3, 4, 5, 6, 7, 8}, 1));
  CHECK(at_most(a, {1, 2, 3, 4, 5, 6, 7, 8, 99}, 1));
}

TEST_CASE("what differs throughout is told apart, whatever the streams' sizes") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  CHECK_FALSE(at_most(any_step(random, 2000), any_step(random, 2000), 40));
  plan::step_log log;
  for (int i = 0; i < 200; ++i) (void)log.allocated(512, i < 100 ? 0 : 1);
  CHECK_FALSE(plan::step_difference(log, {0, 100}, {100, 200}).at_most(50));
}

TEST_CASE("requests strewn in are counted, more or less one by one") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  auto const a = any_step(random, 3000);
  auto b = a;
  for (int i = 0; i < 30; ++i) b.insert(b.begin() + static_cast<std::ptrdiff_t>(random() % b.size()), 77);
  CHECK(at_most(a, b, 60));
  CHECK(at_most(b, a, 60));
  CHECK_FALSE(at_most(a, b, 29));
}
