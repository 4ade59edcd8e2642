#include "gmlake/core/atomic_mutex.hpp"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;

TEST_CASE("an atomic mutex lets one thread in at a time, and the others in turn") {
  atomic_mutex m;
  constexpr int threads = 4;
  constexpr int rounds = 20'000;
  long count = 0;  // a race, if two are in
  int inside = 0;
  bool alone = true;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        std::scoped_lock const lock(m);
        alone = alone && ++inside == 1;
        ++count;
        if (i % 1'000 == 0) std::this_thread::yield();
        --inside;
      }
    });
  }
  for (std::thread& t : all) t.join();
  CHECK(alone);
  CHECK(count == long{threads} * rounds);
}

TEST_CASE("a thread that waits for an atomic mutex sleeps until it is unlocked, however long that takes") {
  atomic_mutex m;
  bool done = false;
  m.lock();
  std::thread waits([&] {
    std::scoped_lock const lock(m);
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK_FALSE(done);
  m.unlock();
  waits.join();
  CHECK(done);
}
