#include "gmlake/swap/channel.hpp"

#include <random>

#include <doctest/doctest.h>

namespace gmlake::swap::channel_test {
namespace {

TEST_CASE("a transfer takes the latency and its bytes at the rate, rounded up") {
  constexpr lane l{time(7), 2'000'000'000};
  static_assert(l.time_of(0) == time(7));
  static_assert(l.time_of(1) == time(8));
  static_assert(l.time_of(2) == time(8));
  static_assert(l.time_of(3) == time(9));
  static_assert(lane{}.time_of(55'000'000'000) == std::chrono::seconds(1) + std::chrono::microseconds(10));
}

TEST_CASE("what fits into a time is what takes no longer") {
  std::mt19937_64 random(1);
  for (int k = 0; k < 10'000; ++k) {
    lane const l{time(static_cast<time::rep>(random() % 20'000)), 1 + random() % 100'000'000'000};
    bytes const n = random() % (bytes{1} << (10 + random() % 30));
    CAPTURE(l.latency.count());
    CAPTURE(l.bytes_per_second);
    CAPTURE(n);
    CHECK(l.most_in(l.time_of(n)) >= n);
    if (l.time_of(n) > l.latency + time(1)) CHECK(l.most_in(l.time_of(n) - time(1)) < n);
    CHECK(l.most_in(l.latency) == 0);
  }
}

}  // namespace
}  // namespace gmlake::swap::channel_test
