#include "gmlake/swap/chunk_choice.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <doctest/doctest.h>

#include "gmlake/swap/pager.hpp"
#include "tests/swap/paged_program.hpp"
#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::chunk_for;

namespace {

constexpr swap::block_counting present{.smallest = 8_MiB, .chunk = 2_MiB};

/// Of a step in which blocks of these sizes are there together.
[[nodiscard]] bytes chosen(std::initializer_list<bytes> sizes, swap::block_counting const& counted = present) {
  swap::step_log log(1000);
  std::array<swap::page, 8> pages;
  log.begin_step();
  std::size_t i = 0;
  for (bytes const n : sizes) {
    swap::page& p = pages.at(i++);
    p.size = n;
    log.born(p);
    log.accessed(p, false, true);
  }
  log.end_operation();
  return chunk_for(log, counted, 0.01);
}

}  // namespace

TEST_CASE("chunks are the largest by which a step takes hardly more") {
  CHECK(chosen({32_MiB, 48_MiB}) == 16_MiB);
  CHECK(chosen({32_MiB, 40_MiB}) == 8_MiB);
  CHECK(chosen({32_MiB, 36_MiB}) == 4_MiB);
  CHECK(chosen({32_MiB, 38_MiB}) == 2_MiB);
  CHECK(chosen({800_MiB, 10_MiB}) == 16_MiB);  // 6 MiB of 810
  CHECK(chosen({400_MiB, 10_MiB}) == 4_MiB);   // 6 of 410 are more than a hundredth, 2 are not
  CHECK(chosen({3_MiB, 5_MiB}) == 16_MiB);     // none of them is movable
  CHECK(chosen({}) == 16_MiB);
  CHECK(chosen({64_MiB}, {.smallest = 8_MiB, .chunk = 64_MiB}) == 64_MiB);
}

TEST_CASE("what the present size wastes already counts for nothing") {
  // 9 MiB take 10 or 12 MiB, of 100: more than a hundredth.
  CHECK(chosen({9_MiB, 91_MiB}) == 2_MiB);
  CHECK(chosen({11_MiB, 91_MiB}) == 4_MiB);  // 12 and 92 either way
}

TEST_CASE("before the first schedule movable blocks move to larger chunks where that costs next to nothing") {
  swap_rig r({.device = 256_MiB, .host = 512_MiB});
  bytes const before = r.on_device->movable_chunk();
  bytes const n = 16 * before;
  double worth = 0.01;
  bytes limit = 4 * n;  // of five
  SUBCASE("") {}
  SUBCASE("unless they are not to") { worth = -1; }
  SUBCASE("unless nothing has to leave") { limit = 8 * n; }
  swap::pager<swap_rig::pool_type> memory(*r.pool,
                                          {.limit = limit, .ahead = {}, .look_every = {}, .larger_chunks = worth});
  swap::program p;
  p.operations.assign(6, swap::time(1000));
  for (std::uint32_t v = 0; v < 4; ++v) {
    p.variables.push_back({.size = n, .birth = 0, .death = 6, .carried = true, .accesses = {{v}, {v + 2}}});
  }
  p.variables.push_back({.size = n, .birth = 1, .death = 5, .accesses = {{1, false, true}, {4}}});
  paged_program<swap::pager<swap_rig::pool_type>> running(memory, p);
  running.step();
  CHECK(r.on_device->movable_chunk() == before);
  for (int i = 0; i < 4; ++i) running.step();
  bytes const larger = std::min(16 * before, swap::largest_chosen_chunk);
  CHECK(r.on_device->movable_chunk() == (worth > 0 && limit < 5 * n ? larger : before));
  CHECK(memory.set_limit(limit - n / 2));
  CHECK(r.on_device->movable_chunk() == before);
  for (int i = 0; i < 4; ++i) running.step();
  CHECK(r.on_device->movable_chunk() == (worth > 0 && limit < 5 * n ? larger : before));
}
