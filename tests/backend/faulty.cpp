#include "gmlake/backend/faulty.hpp"

#include "gmlake/backend/memfd.hpp"
#include "gmlake/backend/simulated.hpp"
#include "tests/backend/physical_backend_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
std::optional<faulty<simulated>> gmlake::test::make_backend() {
  return faulty{simulated{}};
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(physical_backend, faulty<simulated>);
}

static_assert(ClockedBackend<faulty<simulated>> && !CopyingBackend<faulty<simulated>>);
static_assert(CopyingBackend<faulty<memfd>> && !ClockedBackend<faulty<memfd>>);

TEST_CASE("each kind of call fails with an error apt to it, and doesn't reach the backend") {
  faulty b{simulated{}};
  bytes const g = b.granularity();
  mapped_range r(b, g, {g});
  auto const begin = b.now();
  auto const calls = b.calls();
  b.arm({.first = 0, .count = fault_plan::endless});
  fails_with(b.create(g), errc::out_of_memory);
  fails_with(b.reserve(g, 0), errc::out_of_addresses);
  fails_with(b.map(r.at, g, r.handles[0]), errc::driver_failure);
  fails_with(b.set_access(r.at, g, access::read), errc::driver_failure);
  fails_with(b.unmap(r.at, g), errc::driver_failure);
  fails_with(b.release(r.handles[0]), errc::driver_failure);
  fails_with(b.unreserve(r.at, g), errc::driver_failure);
  CHECK(b.faults() == 7);
  CHECK(b.calls() == calls + 7);
  CHECK(b.now() == begin);
  CHECK(b.wrapped().mappings() == 1);
  b.disarm();
  must(b.unmap(r.at, g));
  r.give_back();
  CHECK(b.wrapped().idle());
}

TEST_CASE("the n-th call fails, and only that one") {
  faulty b(simulated{}, {.first = 2});
  must(b.create(2_MiB));
  must(b.reserve(2_MiB, 0));
  fails_with(b.create(2_MiB), errc::out_of_memory);
  must(b.create(2_MiB));
  CHECK(b.faults() == 1);
}

TEST_CASE("the n-th call of a kind fails, whatever is called in between") {
  faulty b(simulated{}, {.first = 1, .only = driver_call::reserve});
  must(b.create(2_MiB));
  must(b.reserve(2_MiB, 0));
  must(b.create(2_MiB));
  fails_with(b.reserve(2_MiB, 0), errc::out_of_addresses);
  must(b.reserve(2_MiB, 0));
  CHECK(b.calls(driver_call::create) == 2);
  CHECK(b.calls(driver_call::reserve) == 3);
  CHECK(b.calls(driver_call::map) == 0);
}

TEST_CASE("every call of a kind fails from the n-th on, and others don't") {
  faulty b(simulated{}, {.first = 1, .count = fault_plan::endless, .only = driver_call::create});
  must(b.create(2_MiB));
  for (int i = 0; i != 5; ++i) fails_with(b.create(2_MiB), errc::out_of_memory);
  must(b.reserve(2_MiB, 0));
  CHECK(b.faults() == 5);
}

TEST_CASE("a plan counts from when it was armed") {
  faulty b{simulated{}};
  for (int i = 0; i != 10; ++i) must(b.create(2_MiB));
  b.arm({.first = 1});
  must(b.create(2_MiB));
  fails_with(b.create(2_MiB), errc::out_of_memory);
  must(b.create(2_MiB));
}
