#include "gmlake/backend/arrears.hpp"

#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/backend/faulty.hpp"
#include "gmlake/backend/simulated.hpp"
#include "tests/backend/must.hpp"

namespace {
using namespace gmlake;
using namespace gmlake::test;

constexpr bytes granule = 2_MiB;
constexpr fault_plan all_fail{.first = 0, .count = fault_plan::endless};

/// A range with one handle mapped in it.
struct mapped {
  explicit mapped(faulty<simulated>& b) : at(must(b.reserve(granule, 0))), memory(must(b.create(granule))) {
    must(b.map(at, granule, memory));
  }
  /// Whoever gives it back does so in this order.
  void give_back(arrears<faulty<simulated>>& owed) const {
    owed.unmap(at, granule);
    owed.release(memory);
    owed.unreserve(at, granule);
  }
  address at;
  handle memory;
};

TEST_CASE("what can be given back is given back at once") {
  faulty b{simulated{}};
  arrears owed(b);
  mapped(b).give_back(owed);
  CHECK(owed.clear());
  CHECK(b.wrapped().idle());
}

TEST_CASE("what fails is owed, and paid later") {
  faulty b{simulated{}};
  arrears owed(b);
  mapped const m(b);
  b.arm(all_fail);
  m.give_back(owed);
  CHECK_FALSE(owed.clear());
  CHECK(b.wrapped().mappings() == 1);
  b.disarm();
  owed.settle();
  CHECK(owed.clear());
  CHECK(b.wrapped().idle());
}

TEST_CASE("one failing call does not hold up the rest for long: what rests on it is owed too") {
  for (driver_call const first : {driver_call::unmap, driver_call::release, driver_call::unreserve}) {
    CAPTURE(static_cast<int>(first));
    faulty b{simulated{}};
    arrears owed(b);
    mapped const m(b);
    b.arm({.first = 0, .only = first});
    m.give_back(owed);
    CHECK_FALSE(owed.clear());
    owed.settle();
    CHECK(owed.clear());
    CHECK(b.wrapped().idle());
  }
}

TEST_CASE("a debt that can't be paid yet stays") {
  faulty b{simulated{}};
  arrears owed(b);
  mapped const m(b);
  b.arm({.first = 0, .count = 3, .only = driver_call::unmap});
  m.give_back(owed);  // the first
  for (int i = 0; i < 2; ++i) {
    owed.settle();
    CHECK_FALSE(owed.clear());
    CHECK(b.wrapped().mappings() == 1);
  }
  owed.settle();
  CHECK(owed.clear());
  CHECK(b.wrapped().idle());
}

TEST_CASE("settling where nothing is owed calls nothing") {
  faulty b{simulated{}};
  arrears owed(b);
  owed.settle();
  CHECK(b.calls() == 0);
}

/// Writes its calls down, and fails while it is told to.
struct scribe {
  std::string* calls;
  bool* failing;
  result<void> note(char c) noexcept {
    *calls += c;
    if (*failing) return failure(errc::driver_failure);
    return {};
  }
  bytes granularity() const noexcept { return granule; }
  result<handle> create(bytes) noexcept { return handle{1}; }
  result<void> release(handle) noexcept { return note('r'); }
  result<address> reserve(bytes, bytes) noexcept { return address{granule}; }
  result<void> unreserve(address, bytes) noexcept { return note('v'); }
  result<void> map(address, bytes, handle) noexcept { return {}; }
  result<void> unmap(address, bytes) noexcept { return note('u'); }
  result<void> set_access(address, bytes, gmlake::access) noexcept { return {}; }
};
static_assert(PhysicalBackend<scribe>);

TEST_CASE("debts are paid in the order in which they were made, each once") {
  std::string calls;
  bool failing = true;
  scribe b{&calls, &failing};
  arrears owed(b);
  owed.unmap(address{granule}, granule);
  owed.release(handle{1});
  owed.unmap(address{2 * granule}, granule);
  owed.unreserve(address{granule}, granule);
  CHECK(calls == "uruv");
  calls.clear();
  owed.settle();
  CHECK(calls == "uruv");
  calls.clear();
  failing = false;
  owed.settle();
  CHECK(calls == "uruv");
  calls.clear();
  owed.settle();
  CHECK(calls.empty());
}

TEST_CASE("whatever fails and when, nothing is lost") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    faulty b{simulated{}};
    arrears owed(b);
    std::vector<mapped> held;
    for (int step = 0; step < 60; ++step) {
      switch (random() % 4) {
        case 0:
          b.disarm();
          held.emplace_back(b);
          break;
        case 1: b.arm({.first = random() % 3, .count = random() % 6}); break;
        case 2: owed.settle(); break;
        default:
          if (held.empty()) break;
          held.back().give_back(owed);
          held.pop_back();
      }
    }
    b.disarm();
    owed.settle();
    REQUIRE(owed.clear());
    REQUIRE(b.wrapped().live_handles() == held.size());
    REQUIRE(b.wrapped().reservations() == held.size());
    REQUIRE(b.wrapped().mappings() == held.size());
  }
}

}  // namespace
