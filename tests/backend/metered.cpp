#include "gmlake/backend/metered.hpp"

#include "gmlake/backend/faulty.hpp"
#include "gmlake/backend/memfd.hpp"
#include "gmlake/backend/simulated.hpp"
#include "tests/backend/physical_backend_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
std::optional<metered<simulated>> gmlake::test::make_backend() {
  return metered{simulated{}};
}
template <>
std::optional<metered<memfd>> gmlake::test::make_backend() {
  return metered{must(memfd::open())};
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(physical_backend, metered<simulated>, metered<memfd>);
}

static_assert(ClockedBackend<metered<simulated>> && !CopyingBackend<metered<simulated>>);
static_assert(CopyingBackend<metered<memfd>> && !ClockedBackend<metered<memfd>>);

TEST_CASE("every call is counted under its kind and timed on the backend's clock") {
  metered b{simulated{}};
  mapped_range r(b, 4_MiB, {2_MiB, 2_MiB});
  must(b.unmap(r.at, 4_MiB));
  r.give_back();

  driver_usage const& u = b.usage();
  CHECK(u[driver_call::create].calls == 2);
  CHECK(u[driver_call::map].calls == 2);
  CHECK(u[driver_call::set_access].calls == 1);
  CHECK(u[driver_call::unmap].calls == 1);
  CHECK(u[driver_call::release].calls == 2);
  CHECK(u[driver_call::reserve].calls == 1);
  CHECK(u[driver_call::unreserve].calls == 1);
  CHECK(u.total().calls == 10);
  CHECK(u.total().time == b.wrapped().now());
  CHECK(u[driver_call::map].time.count() == 900);
  CHECK(u[driver_call::reserve].time.count() == 1500);
}

TEST_CASE("a call that failed is counted too") {
  metered b{faulty(simulated{}, {.first = 0})};
  fails_with(b.create(2_MiB), errc::out_of_memory);
  CHECK(b.usage()[driver_call::create].calls == 1);
  CHECK(b.usage()[driver_call::create].time.count() == 0);
}

TEST_CASE("without a clock of the backend's, calls are timed on the steady clock") {
  metered b{must(memfd::open())};
  for (int i = 0; i != 100; ++i) must(b.create(64_KiB));
  CHECK(b.usage()[driver_call::create].calls == 100);
  CHECK(b.usage()[driver_call::create].time.count() > 0);
}

TEST_CASE("every kind of call has its name") {
  CHECK(driver_call_names[static_cast<std::size_t>(driver_call::create)] == "create");
  CHECK(driver_call_names[static_cast<std::size_t>(driver_call::set_access)] == "set_access");
  CHECK(driver_call_names[static_cast<std::size_t>(driver_call::unreserve)] == "unreserve");
}
