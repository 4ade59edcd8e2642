#pragma once
/// What every PhysicalBackend must do. To hold one to it, specialise `make_backend` and invoke the suite:
///
///     template <> std::optional<simulated> gmlake::test::make_backend() { return simulated{}; }
///     TEST_CASE_TEMPLATE_INVOKE(physical_backend, gmlake::simulated);

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/alignment.hpp"
#include "tests/backend/must.hpp"

namespace gmlake::test {

/// A fresh backend; or none, having said why in a message.
template <class B>
std::optional<B> make_backend();

/// A reservation with handles mapped side by side from its start, readable and writable.
template <PhysicalBackend B>
struct mapped_range {
  B& backend;
  bytes size;
  address at;
  std::vector<handle> handles;

  mapped_range(B& b, bytes reserved, std::vector<bytes> const& sizes)
      : backend(b), size(reserved), at(must(b.reserve(reserved, 0))) {
    address next = at;
    for (bytes n : sizes) {
      handles.push_back(must(b.create(n)));
      must(b.map(next, n, handles.back()));
      next = next + n;
    }
    must(b.set_access(at, next - at, access::read_write));
  }

  /// Precondition: nothing of it is mapped any more.
  void give_back() {
    for (handle h : handles) must(backend.release(h));
    must(backend.unreserve(at, size));
  }
};

template <CopyingBackend B>
std::vector<std::byte> contents(B& b, address va, bytes n) {
  std::vector<std::byte> to(n);
  must(b.read(to, va));
  return to;
}

inline std::vector<std::byte> noise(bytes n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> data(n);
  for (std::byte& x : data) x = static_cast<std::byte>(random());
  return data;
}

TEST_CASE_TEMPLATE_DEFINE("a physical backend keeps its contract", B, physical_backend) {
  std::optional<B> made = make_backend<B>();
  if (!made) return;
  B& b = *made;
  bytes const g = b.granularity();
  REQUIRE(std::has_single_bit(g));

  SUBCASE("handles are distinct, and none is the null handle") {
    std::array<handle, 3> h{};
    for (handle& x : h) x = must(b.create(g));
    for (handle x : h) CHECK(x != handle{});
    CHECK(h[0] != h[1]);
    CHECK(h[1] != h[2]);
    CHECK(h[0] != h[2]);
    for (handle x : h) must(b.release(x));
  }

  SUBCASE("a size that is zero or no multiple of the granule is refused") {
    CHECK_FALSE(b.create(0).has_value());
    CHECK_FALSE(b.create(g + g / 2).has_value());
    CHECK_FALSE(b.reserve(0, 0).has_value());
    CHECK_FALSE(b.reserve(g / 2, 0).has_value());
  }

  SUBCASE("reserved ranges are aligned as asked, to the granule at least, and don't overlap") {
    std::array<bytes, 4> const sizes{g, 5 * g, 3 * g, 64 * g};
    std::array<bytes, 4> const alignments{0, g, 8 * g, 32 * g};
    std::array<address, 4> at{};
    for (std::size_t i = 0; i != at.size(); ++i) {
      at[i] = must(b.reserve(sizes[i], alignments[i]));
      CHECK(at[i] != address{});
      CHECK(is_aligned(at[i], std::max(alignments[i], g)));
    }
    for (std::size_t i = 0; i != at.size(); ++i) {
      for (std::size_t k = 0; k != i; ++k) CHECK((at[i] + sizes[i] <= at[k] || at[k] + sizes[k] <= at[i]));
    }
    for (std::size_t i = 0; i != at.size(); ++i) must(b.unreserve(at[i], sizes[i]));
  }

  SUBCASE("one unmap spans several mappings") {
    mapped_range r(b, 8 * g, {g, 2 * g, 4 * g, g});
    must(b.unmap(r.at, 8 * g));
    r.give_back();
  }

  SUBCASE("one unmap passes over holes") {
    mapped_range r(b, 1024 * g, {g, 2 * g, g});
    must(b.unmap(r.at + g, 2 * g));
    handle const far = must(b.create(g));
    must(b.map(r.at + 1020 * g, g, far));
    must(b.unmap(r.at, 1024 * g));
    must(b.release(far));
    r.give_back();
  }

  SUBCASE("access is not set for part of a mapping, or where nothing is mapped") {
    mapped_range r(b, 4 * g, {2 * g});
    CHECK_FALSE(b.set_access(r.at, g, access::read).has_value());
    CHECK_FALSE(b.set_access(r.at + 3 * g, g, access::read).has_value());
    must(b.unmap(r.at, 2 * g));
    r.give_back();
  }

  SUBCASE("a range with a mapping in it is not given back") {
    mapped_range r(b, 4 * g, {g});
    CHECK_FALSE(b.unreserve(r.at, 4 * g).has_value());
    must(b.unmap(r.at, g));
    r.give_back();
  }

  SUBCASE("a handle unmapped from the middle of a range leaves a hole, where another is mapped") {
    mapped_range r(b, 4 * g, {g, 2 * g, g});
    must(b.unmap(r.at + g, 2 * g));
    handle const first = must(b.create(g));
    handle const second = must(b.create(g));
    must(b.map(r.at + g, g, first));
    must(b.map(r.at + 2 * g, g, second));
    must(b.set_access(r.at + g, 2 * g, access::read_write));
    must(b.unmap(r.at, 4 * g));
    must(b.release(first));
    must(b.release(second));
    r.give_back();
  }

  SUBCASE("a handle is mapped at several addresses at once, also twice in one range") {
    mapped_range r(b, 3 * g, {g});
    address const other = must(b.reserve(g, 0));
    must(b.map(other, g, r.handles[0]));
    must(b.map(r.at + 2 * g, g, r.handles[0]));
    must(b.set_access(other, g, access::read_write));
    must(b.set_access(r.at + 2 * g, g, access::read_write));
    must(b.unmap(r.at, g));
    must(b.unmap(r.at + 2 * g, g));
    must(b.unmap(other, g));
    must(b.unreserve(other, g));
    r.give_back();
  }

  SUBCASE("a handle can't be mapped in part") {
    address const va = must(b.reserve(4 * g, 0));
    handle const h = must(b.create(2 * g));
    CHECK_FALSE(b.map(va, g, h).has_value());
    CHECK_FALSE(b.map(va, 3 * g, h).has_value());
    must(b.map(va, 2 * g, h));  // the failures changed nothing
    must(b.unmap(va, 2 * g));
    must(b.release(h));
    must(b.unreserve(va, 4 * g));
  }

  SUBCASE("a mapping can't be overlapped") {
    mapped_range r(b, 4 * g, {2 * g});
    handle const h = must(b.create(2 * g));
    CHECK_FALSE(b.map(r.at, 2 * g, h).has_value());
    CHECK_FALSE(b.map(r.at + g, 2 * g, h).has_value());
    must(b.map(r.at + 2 * g, 2 * g, h));
    must(b.unmap(r.at, 4 * g));
    must(b.release(h));
    r.give_back();
  }

  SUBCASE("a mapping can't be unmapped in part") {
    mapped_range r(b, 2 * g, {2 * g});
    CHECK_FALSE(b.unmap(r.at, g).has_value());
    CHECK_FALSE(b.unmap(r.at + g, g).has_value());
    must(b.unmap(r.at, 2 * g));
    r.give_back();
  }

  SUBCASE("nothing is mapped at addresses that were not reserved") {
    address const va = must(b.reserve(2 * g, 0));
    must(b.unreserve(va, 2 * g));
    handle const h = must(b.create(g));
    CHECK_FALSE(b.map(va, g, h).has_value());
    must(b.release(h));
  }

  SUBCASE("a range is given back whole") {
    address const va = must(b.reserve(4 * g, 0));
    CHECK_FALSE(b.unreserve(va, 2 * g).has_value());
    CHECK_FALSE(b.unreserve(va + 2 * g, 2 * g).has_value());
    must(b.unreserve(va, 4 * g));
  }

  SUBCASE("a moved backend goes on with what the first one began") {
    mapped_range r(b, 2 * g, {g, g});
    B moved = std::move(b);
    must(moved.unmap(r.at, 2 * g));
    for (handle h : r.handles) must(moved.release(h));
    must(moved.unreserve(r.at, 2 * g));
    CHECK(moved.granularity() == g);
    b = std::move(moved);
    must(b.release(must(b.create(g))));
  }

  if constexpr (CopyingBackend<B>) {
    SUBCASE("what is written through one mapping is read through another") {
      mapped_range r(b, g, {g});
      address const other = must(b.reserve(g, 0));
      must(b.map(other, g, r.handles[0]));
      must(b.set_access(other, g, access::read_write));
      auto const there = noise(g, 1);
      must(b.write(r.at, there));
      CHECK(contents(b, other, g) == there);
      auto const back = noise(g, 2);
      must(b.write(other, back));
      CHECK(contents(b, r.at, g) == back);
      must(b.unmap(r.at, g));
      must(b.unmap(other, g));
      must(b.unreserve(other, g));
      r.give_back();
    }

    SUBCASE("handles stitched out of order are one contiguous range") {
      mapped_range r(b, 4 * g, {g, 2 * g, g});
      address const stitch = must(b.reserve(4 * g, 0));
      must(b.map(stitch, g, r.handles[2]));
      must(b.map(stitch + g, g, r.handles[0]));
      must(b.map(stitch + 2 * g, 2 * g, r.handles[1]));
      must(b.set_access(stitch, 4 * g, access::read_write));
      auto const data = noise(4 * g - 200, 3);
      must(b.write(stitch + 100, data));  // neither end is a granule's
      CHECK(contents(b, stitch + 100, data.size()) == data);
      CHECK(contents(b, r.at, g) == contents(b, stitch + g, g));
      CHECK(contents(b, r.at + g, 2 * g) == contents(b, stitch + 2 * g, 2 * g));
      CHECK(contents(b, r.at + 3 * g, g) == contents(b, stitch, g));
      must(b.unmap(r.at, 4 * g));
      CHECK(contents(b, stitch + 100, data.size()) == data);
      must(b.unmap(stitch, 4 * g));
      must(b.unreserve(stitch, 4 * g));
      r.give_back();
    }

    SUBCASE("contents outlive their mapping") {
      mapped_range r(b, 2 * g, {g});
      auto const data = noise(g, 4);
      must(b.write(r.at, data));
      must(b.unmap(r.at, g));
      must(b.map(r.at + g, g, r.handles[0]));
      must(b.set_access(r.at + g, g, access::read));
      CHECK(contents(b, r.at + g, g) == data);
      must(b.unmap(r.at + g, g));
      r.give_back();
    }

    SUBCASE("a mapping for reading only is read and not written, and another of the same handle is written still") {
      mapped_range r(b, 2 * g, {g});
      must(b.map(r.at + g, g, r.handles[0]));
      must(b.set_access(r.at + g, g, access::read));
      auto const data = noise(g, 7);
      CHECK_FALSE(b.write(r.at + g, data).has_value());
      must(b.write(r.at, data));
      CHECK(contents(b, r.at + g, g) == data);
      must(b.unmap(r.at, 2 * g));
      r.give_back();
    }

    SUBCASE("two handles never share contents") {
      mapped_range r(b, 2 * g, {g, g});
      auto const first = noise(g, 5);
      auto const second = noise(g, 6);
      must(b.write(r.at, first));
      must(b.write(r.at + g, second));
      CHECK(contents(b, r.at, g) == first);
      must(b.unmap(r.at, 2 * g));
      r.give_back();
    }
  }

  if constexpr (ClockedBackend<B>) {
    SUBCASE("the clock never runs back, and calls advance it") {
      auto const begin = b.now();
      mapped_range r(b, 2 * g, {g, g});
      auto const middle = b.now();
      must(b.unmap(r.at, 2 * g));
      r.give_back();
      CHECK(middle > begin);
      CHECK(b.now() > middle);
    }
  }
}

}  // namespace gmlake::test
