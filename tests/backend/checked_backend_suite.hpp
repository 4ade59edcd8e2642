#pragma once
/// What a backend that checks its caller adds to the contract: every broken rule is an error that names the rule, and
/// changes nothing. Invoke after specialising `make_backend`: TEST_CASE_TEMPLATE_INVOKE(checked_backend, simulated);

#include "tests/backend/physical_backend_suite.hpp"

namespace gmlake::test {

/// All that a checked backend says about what it holds.
struct holdings {
  bytes handles, created, reservations, reserved, mappings;
  friend bool operator==(holdings const&, holdings const&) = default;
};
template <PhysicalBackend B>
holdings holdings_of(B const& b) {
  return {b.live_handles(), b.created_bytes(), b.reservations(), b.reserved_bytes(), b.mappings()};
}

TEST_CASE_TEMPLATE_DEFINE("a checked backend refuses whatever breaks a rule, and changes nothing", B, checked_backend) {
  B b = *make_backend<B>();
  bytes const g = b.granularity();
  REQUIRE(b.idle());

  // 0    1    2    3    4    5    6
  // | a: 2g   |  b |    | c: 2g   |
  mapped_range r(b, 6 * g, {2 * g, g});
  handle const c = must(b.create(2 * g));
  must(b.map(r.at + 4 * g, 2 * g, c));
  must(b.set_access(r.at + 4 * g, 2 * g, access::read));
  handle const loose = must(b.create(g));
  handle const stale = must(b.create(g));
  must(b.release(stale));
  address const beside = must(b.reserve(2 * g, 0));
  address const gone = must(b.reserve(2 * g, 0));
  must(b.unreserve(gone, 2 * g));

  holdings const before = holdings_of(b);
  CHECK(before == holdings{4, 6 * g, 2, 8 * g, 3});
  CHECK_FALSE(b.idle());

  auto const refused = [&](auto const& outcome, char const* rule) {
    CAPTURE(rule);
    fails_with(outcome, errc::invalid_argument, rule);
    CHECK(holdings_of(b) == before);
  };

  SUBCASE("create") {
    refused(b.create(0), "create: size");
    refused(b.create(g - 1), "create: size");
  }
  SUBCASE("release") {
    refused(b.release(handle{}), "release: unknown handle");
    refused(b.release(static_cast<handle>(12345)), "release: unknown handle");
    refused(b.release(stale), "release: unknown handle");
    refused(b.release(r.handles[0]), "release: still mapped");
  }
  SUBCASE("a handle is not taken for a later one in its place") {
    handle const later = must(b.create(g));
    CHECK(later != stale);
    must(b.release(later));
    refused(b.release(later), "release: unknown handle");
    refused(b.release(stale), "release: unknown handle");
  }
  SUBCASE("reserve") {
    refused(b.reserve(0, 0), "reserve: size");
    refused(b.reserve(g + 1, 0), "reserve: size");
    refused(b.reserve(g, 3 * g), "reserve: alignment");
  }
  SUBCASE("unreserve") {
    refused(b.unreserve(gone, 2 * g), "unreserve: not reserved");
    refused(b.unreserve(beside + g, g), "unreserve: not reserved");
    refused(b.unreserve(beside, g), "unreserve: not the whole range");
    refused(b.unreserve(beside, 3 * g), "unreserve: not the whole range");
    refused(b.unreserve(r.at, 6 * g), "unreserve: still mapped");
  }
  SUBCASE("map") {
    refused(b.map(beside, g, handle{}), "map: unknown handle");
    refused(b.map(beside, g, stale), "map: unknown handle");
    refused(b.map(beside, 2 * g, loose), "map: not the whole handle");
    refused(b.map(beside, g, c), "map: not the whole handle");
    refused(b.map(gone, g, loose), "map: not reserved");
    refused(b.map(beside - g, g, loose), "map: not reserved");
    refused(b.map(beside + g, 2 * g, c), "map: not reserved");  // begins inside and ends outside
    refused(b.map(beside + 1, g, loose), "map: alignment");
    refused(b.map(r.at + 2 * g, g, loose), "map: overlaps a mapping");
    refused(b.map(r.at + 3 * g, 2 * g, c), "map: overlaps a mapping");  // its second half does
    refused(b.map(r.at + g, g, loose), "map: overlaps a mapping");
  }
  SUBCASE("unmap") {
    refused(b.unmap(gone, g), "unmap: not reserved");
    refused(b.unmap(r.at + 4 * g, 4 * g), "unmap: not reserved");
    refused(b.unmap(beside, g), "unmap: nothing mapped");
    refused(b.unmap(r.at + 3 * g, g), "unmap: nothing mapped");
    refused(b.unmap(r.at + 3 * g, 2 * g), "unmap: part of a mapping");
    refused(b.unmap(r.at, g), "unmap: part of a mapping");
    refused(b.unmap(r.at + g, g), "unmap: part of a mapping");
    refused(b.unmap(r.at + g, 2 * g), "unmap: part of a mapping");
    refused(b.unmap(r.at, 0), "unmap: part of a mapping");
    refused(b.unmap(r.at + 1, 2 * g), "unmap: part of a mapping");
  }
  SUBCASE("set_access") {
    refused(b.set_access(gone, g, access::read), "set_access: not reserved");
    refused(b.set_access(r.at + 4 * g, 4 * g, access::read), "set_access: not reserved");
    refused(b.set_access(beside, g, access::read), "set_access: a hole");
    refused(b.set_access(r.at, 6 * g, access::read), "set_access: a hole");
    refused(b.set_access(r.at, g, access::read), "set_access: part of a mapping");
    refused(b.set_access(r.at + g, 2 * g, access::read), "set_access: part of a mapping");
  }

  if constexpr (CopyingBackend<B>) {
    SUBCASE("copies stay within what is mapped, and within its access") {
      std::vector<std::byte> data(2 * g);
      std::span<std::byte> const all(data);
      must(b.read(all, r.at + g));
      must(b.write(r.at + g, all));
      must(b.read(all, r.at + 4 * g));
      must(b.read(all.first(0), gone));
      refused(b.read(all, gone), "read: no access");
      refused(b.read(all, r.at + 2 * g), "read: no access");
      refused(b.read(all.first(2), r.at + 3 * g - 1), "read: no access");
      refused(b.read(all, r.at + 4 * g + 1), "read: no access");
      refused(b.write(r.at + 4 * g, all), "write: no access");
      refused(b.write(r.at + 5 * g, all.first(1)), "write: no access");  // not a mapping's first granule
      must(b.set_access(r.at + 4 * g, 2 * g, access::none));
      refused(b.read(all, r.at + 4 * g), "read: no access");
    }
  }

  must(b.unmap(r.at, 3 * g));
  must(b.unmap(r.at + 4 * g, 2 * g));
  must(b.release(c));
  must(b.release(loose));
  must(b.unreserve(beside, 2 * g));
  r.give_back();
  CHECK(b.idle());
}

TEST_CASE_TEMPLATE_DEFINE("a checked backend runs out of memory at its capacity", B, bounded_backend) {
  B b = *make_backend<B>();
  bytes const g = b.granularity();
  b.set_capacity(4 * g);
  handle const first = must(b.create(3 * g));
  fails_with(b.create(2 * g), errc::out_of_memory);
  handle const second = must(b.create(g));
  fails_with(b.create(g), errc::out_of_memory);
  CHECK(b.created_bytes() == 4 * g);

  SUBCASE("what is released can be created again") {
    must(b.release(first));
    must(b.release(must(b.create(3 * g))));
    must(b.release(second));
  }
  SUBCASE("a capacity below what is held takes nothing away, but nothing more is created") {
    b.set_capacity(2 * g);
    CHECK(b.capacity() == 2 * g);
    CHECK(b.live_handles() == 2);
    must(b.release(second));
    fails_with(b.create(g), errc::out_of_memory);
    b.set_capacity(4 * g);
    must(b.release(must(b.create(g))));
    must(b.release(first));
  }
  CHECK(b.idle());
}

}  // namespace gmlake::test
