/// What the host says of its memory can be believed.

#include "gmlake/backend/host_memory_info.hpp"

#include "tests/backend/must.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE("the host has some memory left, and no more than it has in all") {
  device_memory const m = must(host_memory_info());
  CHECK(m.free > 0);
  CHECK(m.free <= m.total);
}
