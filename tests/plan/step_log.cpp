#include "gmlake/plan/step_log.hpp"

#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;
using plan::step_log;
using plan::step_request;

TEST_CASE("requests are numbered, and their lives are counted in requests and frees") {
  step_log log;
  CHECK(log.allocated(512, 0) == 0);
  CHECK(log.allocated(1024, 3) == 1);
  log.freed(0, 512);
  CHECK(log.allocated(2048, 0) == 2);
  CHECK(log.live() == 3072);
  CHECK(log.now() == 4);
  CHECK(log[0].birth == 0);
  CHECK(log[0].death == 2);
  CHECK(log[1].stream == 3);
  CHECK(log[1].death == step_request::stays);
  CHECK(log[2].birth == 3);
}

TEST_CASE("a step's times begin with its first request, and what lives longer than a period stays") {
  step_log log;
  (void)log.allocated(512, 0);                        // before the step
  std::uint64_t const first = log.allocated(512, 1);  // event 1: freed at once
  log.freed(first, 512);
  std::uint64_t const wraps = log.allocated(1024, 2);  // event 3: freed in the next step
  std::uint64_t const stays = log.allocated(1536, 0);  // event 4: freed a period and more later
  std::uint64_t const lives = log.allocated(2048, 0);  // event 5: not freed
  log.freed(0, 512);
  std::uint64_t const next = log.allocated(512, 0);  // event 7
  log.freed(wraps, 1024);
  log.freed(next, 512);
  (void)log.allocated(512, 0);
  log.freed(stays, 1536);
  CHECK(log.period(first, next) == 6);
  auto const step = log.step(first, next);
  REQUIRE(step.size() == 4);
  CHECK(step[0].birth == 0);
  CHECK(step[0].death == 1);
  CHECK(step[1].stream == 2);
  CHECK(step[1].birth == 2);
  CHECK(step[1].death == 7);
  CHECK(step[2].birth == 3);
  CHECK(step[2].death == step_request::stays);
  CHECK(step[3].size == 2048);
  CHECK(step[3].death == step_request::stays);
  CHECK(step[3].offset == step_request::nowhere);
  CHECK(lives == 4);
  CHECK(log.step(next, next).empty());
  CHECK(log.period(next, next) == 0);
  CHECK(log.period(next, log.end()) == log.now() - 7);
}

TEST_CASE("a range's fingerprint is that of its requests one by one") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  step_log log({.most = 4096});
  for (int i = 0; i < 10'000; ++i) {
    (void)log.allocated(512 * (1 + random() % 100), static_cast<std::uint32_t>(random() % 3));
    if (log.end() >= 4 && log.end() - log.first() >= 4) {
      REQUIRE(log.last_fingerprint<4>() == log.fingerprint(log.end() - 4, log.end()));
    }
  }
  CHECK(log.end() - log.first() == 4096);
  for (int i = 0; i < 300; ++i) {
    std::uint64_t const a = log.first() + random() % 4097;
    std::uint64_t const b = a + random() % (log.end() - a + 1);
    REQUIRE(log.fingerprint(a, b) == plan::fingerprint(log.step(a, b)));
  }
}

TEST_CASE("a full log forgets its eldest, and their frees still count") {
  step_log log({.most = 1});  // as few as it can do with
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 5000; ++i) numbers.push_back(log.allocated(512, 0));
  CHECK(log.end() == 5000);
  CHECK(log.first() == 5000 - 4096);
  CHECK_FALSE(log.stopped());
  CHECK(log.live() == 5000 * 512);
  for (std::uint64_t n : numbers) log.freed(n, 512);
  CHECK(log.live() == 0);
  CHECK(log[log.first()].death == 5000 + log.first());
}

TEST_CASE("cleared, it goes on with its numbers, so that late frees hit nobody else") {
  step_log log;
  std::uint64_t const before = log.allocated(512, 0);
  log.clear(log.live());
  CHECK(log.first() == log.end());
  std::uint64_t const after = log.allocated(1024, 0);
  CHECK(after == before + 1);
  log.freed(before, 512);
  CHECK(log[after].death == step_request::stays);
  CHECK(log.live() == 1024);
  log.freed(step_log::unlogged, 1024);
  CHECK(log.live() == 0);
}
