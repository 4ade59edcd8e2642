#include "gmlake/backend/placed_memory.hpp"

#include <map>

#include <doctest/doctest.h>

#include "tests/backend/must.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// Gives out made-up addresses, each `gap` beyond the one before, and remembers what it has out.
struct ledger {
  std::map<address, bytes> out{};
  bytes gap = 1_GiB;
  bytes offset = 0;
  bool full = false;
  bool stuck = false;
  std::uintptr_t next = 1;
};
struct made_up {
  ledger* l;
  result<address> allocate(bytes n) noexcept {
    if (l->full) return failure(errc::out_of_memory, "allocate");
    address const at{l->gap * l->next++ + l->offset};
    l->out[at] = n;
    return at;
  }
  result<void> deallocate(address at, bytes n) noexcept {
    if (l->stuck) return failure(errc::driver_failure, "deallocate");
    REQUIRE(l->out.at(at) == n);
    l->out.erase(at);
    return {};
  }
};
static_assert(PhysicalBackend<placed_memory<made_up>> && PlacedBackend<placed_memory<made_up>>);

}  // namespace

TEST_CASE("a reservation is one allocation of its size") {
  ledger l;
  placed_memory<made_up> backend(made_up{&l});
  CHECK(backend.granularity() == 2_MiB);
  address const at = must(backend.reserve(4_MiB, 0));
  REQUIRE(l.out.size() == 1);
  CHECK(l.out.at(at) == 4_MiB);
  must(backend.unreserve(at, 4_MiB));
  CHECK(l.out.empty());
}

TEST_CASE("mapping shows what the reservation holds, and nothing outside it") {
  ledger l;
  placed_memory<made_up> backend(made_up{&l});
  address const at = must(backend.reserve(4_MiB, 0));
  handle const h = must(backend.create(2_MiB));
  CHECK(h != handle{});
  must(backend.map(at + 2_MiB, 2_MiB, h));
  must(backend.set_access(at, 4_MiB, access::read_write));
  must(backend.unmap(at, 4_MiB));
  must(backend.release(h));
  CHECK(backend.map(at + 2_MiB, 4_MiB, h).error().code == errc::invalid_argument);
  CHECK(backend.unmap(at - 2_MiB, 2_MiB).error().code == errc::invalid_argument);
  CHECK(backend.unreserve(at + 2_MiB, 2_MiB).error().code == errc::invalid_argument);
  CHECK(l.out.size() == 1);
}

TEST_CASE("a source that does not align is asked for more from then on") {
  ledger l{.offset = 512};
  placed_memory<made_up> backend(made_up{&l});
  address const first = must(backend.reserve(4_MiB, 0));
  CHECK(is_aligned(first, 2_MiB));
  REQUIRE(l.out.size() == 1);
  CHECK(l.out.begin()->first < first);
  CHECK(l.out.begin()->first + l.out.begin()->second >= first + 4_MiB);
  address const second = must(backend.reserve(2_MiB, 0));
  CHECK(l.out.size() == 2);
  CHECK(l.next == 4);  // the second was right at once
  must(backend.unreserve(first, 4_MiB));
  must(backend.unreserve(second, 2_MiB));
  CHECK(l.out.empty());
}

TEST_CASE("what can't be given back is tried again") {
  ledger l{.offset = 512, .stuck = true};
  placed_memory<made_up> backend(made_up{&l});
  address const at = must(backend.reserve(2_MiB, 0));
  CHECK(l.out.size() == 2);  // the misaligned one could not be given back
  CHECK(backend.unreserve(at, 2_MiB).error().code == errc::driver_failure);
  l.stuck = false;
  must(backend.unreserve(at, 2_MiB));
  must(backend.unreserve(must(backend.reserve(2_MiB, 0)), 2_MiB));
  CHECK(l.out.empty());
}

TEST_CASE("a source that has no more says so") {
  ledger l{.full = true};
  placed_memory<made_up> backend(made_up{&l});
  CHECK(backend.reserve(2_MiB, 0).error().code == errc::out_of_memory);
  CHECK(backend.unreserve(address{2_MiB}, 2_MiB).error().code == errc::invalid_argument);
}
