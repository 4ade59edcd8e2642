#include "gmlake/backend/copy_gate.hpp"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/backend/gate_keeper.hpp"

using namespace gmlake;

namespace {

/// Whether it is open within ten seconds.
[[nodiscard]] bool opens(copy_gate const& gate) {
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (gate.word() != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return gate.word() == 0;
}

}  // namespace

TEST_SUITE_BEGIN("backend");

TEST_CASE("a copy gate is closed while anybody keeps it so") {
  copy_gate gate;
  CHECK(gate.word() == 0);
  std::optional first(gate.close());
  CHECK(gate.word() != 0);
  CHECK(gate.open_word() == 0);
  {
    auto const second = gate.close();
    first.reset();
    CHECK(gate.word() != 0);
  }
  CHECK(gate.word() == 0);
  CHECK(gate.closings() == 2);
}

TEST_CASE("a closing that has been moved ends once") {
  copy_gate gate;
  auto first = gate.close();
  {
    auto const other = std::move(first);
    CHECK(gate.word() != 0);
  }
  CHECK(gate.word() == 0);
  auto const next = gate.close();
  copy_gate::closure const nobodys;
  CHECK(gate.word() != 0);
}

TEST_CASE("a copy gate that stays closed is opened, one that has been open meanwhile is not") {
  copy_gate gate;
  std::uint64_t const open = gate.changes();
  CHECK_FALSE(gate.open_if_closed_since(open));
  std::optional kept(gate.close());
  CHECK_FALSE(gate.open_if_closed_since(open));
  std::uint64_t const closed = gate.changes();
  kept.reset();
  kept.emplace(gate.close());
  CHECK_FALSE(gate.open_if_closed_since(closed));
  CHECK(gate.word() != 0);
  CHECK(gate.open_if_closed_since(gate.changes()));
  CHECK(gate.word() == 0);
  CHECK_FALSE(gate.open_if_closed_since(gate.changes()));
  kept.reset();
  CHECK(gate.word() == 0);
  auto const next = gate.close();
  CHECK(gate.word() != 0);
}

TEST_CASE("a copy gate that somebody or other keeps closed is opened, until nobody does") {
  copy_gate gate;
  std::optional one(gate.close());
  std::uint64_t const closed = gate.changes();
  std::optional other(gate.close());
  one.reset();
  one.emplace(gate.close());
  other.reset();
  CHECK(gate.open_if_closed_since(closed));
  other.emplace(gate.close());
  one.reset();
  CHECK(gate.word() == 0);
  other.reset();
  one.emplace(gate.close());
  CHECK(gate.word() != 0);
}

TEST_CASE("threads that close a gate leave it open") {
  copy_gate gate;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        auto const closed = gate.close();
      }
    });
  }
  for (int i = 0; i < 1000; ++i) gate.open_if_closed_since(gate.changes());
  for (std::thread& t : threads) t.join();
  CHECK(gate.word() == 0);
  CHECK(gate.closings() == 20000);
}

TEST_CASE("keepers open a gate that is stuck") {
  copy_gate gate;
  gate_keeper const keeper(gate, std::chrono::milliseconds(1)), another(gate, std::chrono::milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    auto const kept = gate.close();
    CHECK(opens(gate));
  }
}

TEST_SUITE_END();
