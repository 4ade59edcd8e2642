#include "gmlake/swap/swap_worker.hpp"

#include <atomic>
#include <string>
#include <thread>

#include <doctest/doctest.h>

namespace gmlake::swap::worker_test {
namespace {

using namespace std::chrono_literals;

/// Moves that take so many looks, of which the first ones fail.
struct slow_moves {
  int fails = 0;
  int takes = 0;
  std::atomic<int> looks{0};

  [[nodiscard]] result<bool> progress() {
    int const look = looks++;
    if (look < fails) return failure(errc::driver_failure, "event_query");
    return look + 1 < takes;
  }
};

[[nodiscard]] bool comes_true(auto&& what) {
  for (int i = 0; i < 5'000 && !what(); ++i) std::this_thread::sleep_for(1ms);
  return what();
}

TEST_CASE("it looks until nothing moves any more, and again when it is woken") {
  slow_moves pool{.fails = 0, .takes = 3};
  swap_worker worker(pool);
  std::this_thread::sleep_for(5ms);
  CHECK(pool.looks == 0);
  worker.wake();
  CHECK(comes_true([&] { return pool.looks == 3; }));
  std::this_thread::sleep_for(5ms);
  CHECK(pool.looks == 3);
  worker.wake();
  CHECK(comes_true([&] { return pool.looks == 4; }));
}

TEST_CASE("errors that moves meet are told, and the moves tried again") {
  slow_moves pool{.fails = 2, .takes = 4};
  std::atomic<int> told{0}, others{0};
  swap_worker worker(pool, {.failed = [&](error const& e) {
                       ++(std::string(e.call) == "event_query" && e.code == errc::driver_failure ? told : others);
                     }});
  worker.wake();
  CHECK(comes_true([&] { return pool.looks == 4; }));
  std::this_thread::sleep_for(5ms);
  CHECK(pool.looks == 4);
  CHECK(told == 2);
  CHECK(others == 0);
}

TEST_CASE("it ends while moves are under way, and without a listener for errors") {
  slow_moves pool{.fails = 1 << 30, .takes = 0};
  {
    swap_worker worker(pool, {.interval = 1h});
    worker.wake();
    CHECK(comes_true([&] { return pool.looks == 1; }));
  }
  CHECK(pool.looks == 1);
}

}  // namespace
}  // namespace gmlake::swap::worker_test
