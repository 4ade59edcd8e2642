#include "gmlake/adapter/torch_together.hpp"

#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;

namespace {

[[nodiscard]] block_event block_of(bytes requested, bytes size) {
  return {address{4096}, requested, size, stream{}, nullptr};
}

}  // namespace

TEST_CASE("the most that was there at a time is told, of blocks and of bytes") {
  torch_together all;
  all.allocated(block_of(1000, 1024));
  all.allocated(block_of(500, 512));
  all.deallocated(block_of(1000, 1024));
  all.allocated(block_of(100, 512));
  CHECK(all.blocks.peak() == 2);
  CHECK(all.placed.peak() == 1536);
  CHECK(all.requested.peak() == 1500);
  all.reset_peaks();
  CHECK(all.blocks.peak() == 2);
  CHECK(all.placed.peak() == 1024);
  CHECK(all.requested.peak() == 600);
}

TEST_CASE("a peak from before may be raised, and is never lowered") {
  torch_together all;
  all.placed.raise(100);
  all.placed.raise(50);
  all.placed.add(60);
  CHECK(all.placed.peak() == 100);
  all.placed.add(60);
  CHECK(all.placed.peak() == 120);
}

TEST_CASE("threads' blocks add up") {
  torch_together all;
  constexpr int threads = 4, rounds = 1000;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      for (int k = 0; k < rounds; ++k) all.allocated(block_of(1, 2));
      for (int k = 0; k < rounds; ++k) all.deallocated(block_of(1, 2));
    });
  }
  for (std::thread& t : running) t.join();
  CHECK(all.blocks.peak() >= rounds);
  CHECK(all.blocks.peak() <= threads * rounds);
  all.reset_peaks();
  CHECK(all.blocks.peak() == 0);
  CHECK(all.requested.peak() == 0);
}

TEST_CASE("pools' figures are added up, and of one that is gone only what it did") {
  pool_stats one;
  one.live.add(70);
  one.live.sub(20);
  one.retries = 2;
  one.stitches_cached = 3;
  one.driver[driver_call::map].calls = 5;
  pool_stats sum;
  merge(sum, one);
  merge(sum, one);
  CHECK(sum.live.now == 100);
  CHECK(sum.live.peak == 140);
  CHECK(sum.retries == 4);
  CHECK(sum.driver.total().calls == 10);
  leave(one);
  CHECK(one.live.now == 0);
  CHECK(one.live.peak == 0);
  CHECK(one.stitches_cached == 0);
  CHECK(one.retries == 2);
  CHECK(one.driver[driver_call::map].calls == 5);
}
