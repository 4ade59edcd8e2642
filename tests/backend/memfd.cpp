#include "gmlake/backend/memfd.hpp"

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/backend/checked_backend_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
std::optional<memfd> gmlake::test::make_backend() {
  return must(memfd::open());
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(physical_backend, memfd);
TEST_CASE_TEMPLATE_INVOKE(checked_backend, memfd);
TEST_CASE_TEMPLATE_INVOKE(bounded_backend, memfd);
}  // namespace gmlake::test

namespace {

/// Whether the process has a mapping that covers the address.
bool is_mapped(address a) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    if (begin <= to_integer(a) && to_integer(a) < end) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a granularity that is no power of two, or less than a page, can't be opened") {
  fails_with(memfd::open({.granularity = 3 * 65'536}), errc::invalid_argument);
  fails_with(memfd::open({.granularity = 512}), errc::invalid_argument);
  fails_with(memfd::open({.granularity = 0}), errc::invalid_argument);
  CHECK(must(memfd::open({.granularity = 2_MiB})).granularity() == 2_MiB);
}

TEST_CASE("the host writes and reads mapped memory directly") {
  memfd b = must(memfd::open());
  bytes const g = b.granularity();
  mapped_range r(b, g, {g});
  address const other = must(b.reserve(g, 0));
  must(b.map(other, g, r.handles[0]));
  must(b.set_access(other, g, access::read));
  static_cast<int*>(to_pointer(r.at))[7] = 42;
  CHECK(static_cast<int const*>(to_pointer(other))[7] == 42);
}

TEST_CASE("memory created where other memory was released begins as zeros") {
  memfd b = must(memfd::open());
  bytes const g = b.granularity();
  for (int round = 0; round != 3; ++round) {
    mapped_range r(b, g, {g});
    CHECK(contents(b, r.at, g) == std::vector<std::byte>(g));
    must(b.write(r.at, noise(g, 8)));
    must(b.unmap(r.at, g));
    r.give_back();
  }
  CHECK(b.idle());
}

TEST_CASE("a range is the process's until it is given back, and the backend takes what is left along") {
  address kept{};
  {
    memfd b = must(memfd::open());
    bytes const g = b.granularity();
    address const va = must(b.reserve(4 * g, 4 * g));
    CHECK(is_mapped(va));
    CHECK(is_mapped(va + 3 * g));
    must(b.unreserve(va, 4 * g));
    CHECK_FALSE(is_mapped(va));

    mapped_range r(b, 2 * g, {g});
    kept = r.at;
    CHECK(is_mapped(kept));
  }
  CHECK_FALSE(is_mapped(kept));
}

TEST_CASE("many handles take no file descriptors") {
  memfd b = must(memfd::open());
  std::vector<handle> handles;
  for (int i = 0; i != 20'000; ++i) handles.push_back(must(b.create(b.granularity())));
  CHECK(b.live_handles() == 20'000);
  for (handle h : handles) must(b.release(h));
  CHECK(b.idle());
}

TEST_CASE("more addresses than there are can't be reserved") {
  memfd b = must(memfd::open());
  fails_with(b.reserve(bytes{1} << 62, 0), errc::out_of_addresses);
  fails_with(b.reserve(align_down(~bytes{0}, 65'536), 0), errc::out_of_addresses);
  CHECK(b.idle());
}
