#if __has_include(<cuda.h>)

#include "gmlake/swap/cuda_lane_timer.hpp"

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::cuda_lane_timer_test {
namespace {

/// A stream of commands, so many of which are over; an event is over once those before it are.
struct fake_stream {
  std::uint64_t queued = 0, over = 0;
  std::vector<std::uint64_t> events;  ///< by number from 1: commands before it
} fake;

[[nodiscard]] std::uint64_t& commands_before(CUevent e) { return fake.events[reinterpret_cast<std::uintptr_t>(e) - 1]; }

[[nodiscard]] cuda_driver driver() {
  fake = {};
  cuda_driver d;
  d.event_create = [](CUevent* e, unsigned) {
    fake.events.push_back(0);
    *e = reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(fake.events.size()));
    return CUDA_SUCCESS;
  };
  d.event_destroy = [](CUevent) { return CUDA_SUCCESS; };
  d.event_record = [](CUevent e, CUstream) {
    commands_before(e) = fake.queued;
    return CUDA_SUCCESS;
  };
  d.event_query = [](CUevent e) { return commands_before(e) <= fake.over ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; };
  d.event_elapsed_time = [](float* ms, CUevent, CUevent) {
    *ms = 2;
    return CUDA_SUCCESS;
  };
  return d;
}

struct rig {
  cuda_driver d = driver();
  cuda_lane_timer timer;

  /// So many copies of n bytes, a command each.
  void copy(int copies, bytes n) {
    for (int i = 0; i < copies; ++i) {
      timer.queued(1);
      bool const noted = timer.begin(d, n, nullptr);
      ++fake.queued;
      if (noted) timer.end(d, nullptr);
    }
  }
};

}  // namespace

TEST_CASE("of large copies some are timed at once, and what is under way is known by these") {
  rig r;
  r.copy(20, 16_MiB);
  CHECK(r.timer.under_way(r.d) == 20);
  fake.over = 3;
  CHECK(r.timer.under_way(r.d) == 17);
  fake.over = 20;
  CHECK(r.timer.under_way(r.d) == 12);  // eight were timed
  r.copy(1, 16_MiB);
  CHECK(r.timer.under_way(r.d) == 13);
  fake.over = 21;
  CHECK(r.timer.under_way(r.d) == 0);
  lane_load const over = r.timer.take(r.d);
  CHECK(over.size == 9 * 16_MiB);
  CHECK(over.took == time(9 * 2'000'000));
}

TEST_CASE("small copies are not timed, but where many came on end it is noted when they are over") {
  rig r;
  r.copy(1000, 1_MiB);
  CHECK(r.timer.under_way(r.d) == 1000);
  fake.over = 1000;
  CHECK(r.timer.under_way(r.d) < 1000);
  r.copy(100, 1_MiB);
  fake.over = 1100;
  CHECK(r.timer.under_way(r.d) < 200);
  CHECK(r.timer.take(r.d).size == 0);
}

TEST_CASE("without events nothing is timed, and all counts as under way") {
  rig r;
  r.d.event_create = [](CUevent*, unsigned) { return CUDA_ERROR_OUT_OF_MEMORY; };
  r.copy(10, 16_MiB);
  fake.over = 10;
  CHECK(r.timer.under_way(r.d) == 10);
  CHECK(r.timer.take(r.d).size == 0);
}

}  // namespace gmlake::swap::cuda_lane_timer_test

#endif
