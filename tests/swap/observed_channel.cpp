/// A channel is taken to be what transfers make of it, each way by itself.

#include "gmlake/swap/observed_channel.hpp"

#include <chrono>

#include <doctest/doctest.h>

using namespace gmlake;
using namespace gmlake::swap;
using namespace std::chrono_literals;

namespace {

constexpr channel calibrated{.out = {.latency = 10us, .bytes_per_second = 50'000'000'000},
                             .in = {.latency = 20us, .bytes_per_second = 40'000'000'000}};

/// So many transfers of a megabyte, each in that time.
[[nodiscard]] lane_load megabytes(std::uint32_t count, swap::time each) {
  lane_load all;
  for (std::uint32_t i = 0; i < count; ++i) all.add(1'000'000, each);
  return all;
}

}  // namespace

TEST_CASE("before any transfer was timed a channel is as calibrated") {
  observed_channel c(calibrated);
  c.note({}, 0.25);
  CHECK(c.now().out.bytes_per_second == 50'000'000'000);
  CHECK(c.now().in.bytes_per_second == 40'000'000'000);
}

TEST_CASE(
    "the first transfers stand for all before, later ones have their weight, and latencies are no part of a rate") {
  observed_channel c(calibrated);
  c.note({.out = megabytes(3, 10us + 25us), .in = {}}, 0.25);
  CHECK(c.now().out.bytes_per_second == 40'000'000'000);
  CHECK(c.now().in.bytes_per_second == 40'000'000'000);
  c.note({.out = megabytes(2, 10us + 50us), .in = megabytes(1, 20us + 50us)}, 0.25);
  CHECK(c.now().out.bytes_per_second == 32'000'000'000);  // a quarter of the way from 25 us to 50
  CHECK(c.now().in.bytes_per_second == 20'000'000'000);
  CHECK(c.now().out.latency == swap::time(10us));
}

TEST_CASE("times that tell nothing change nothing") {
  observed_channel c(calibrated);
  c.note({.out = megabytes(4, 10us), .in = megabytes(1, 0us)}, 1);  // no longer than the latency
  c.note({.out = {.transfers = 1, .size = 0, .took = 1s}, .in = {.transfers = 1, .size = 1, .took = 1h}}, 1);
  CHECK(c.now().out.bytes_per_second == 50'000'000'000);
  CHECK(c.now().in.bytes_per_second == 40'000'000'000);
}
