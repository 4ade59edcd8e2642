#pragma once
/// What both models of PyTorch's allocators must do alike, as checks over a pool type: each file beside this one names
/// them in tests of its own. The backend is borrowed, so that it can be looked at after its pool has gone.

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/backend/faulty.hpp"
#include "gmlake/backend/simulated.hpp"
#include "gmlake/pool/pool_concept.hpp"

namespace gmlake::peer_suite {

/// Passes every call on to a backend that outlives it.
template <PhysicalBackend B>
struct borrowed {
  B* lender;

  [[nodiscard]] bytes granularity() const noexcept { return lender->granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept { return lender->create(n); }
  [[nodiscard]] result<void> release(handle h) noexcept { return lender->release(h); }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept { return lender->reserve(n, alignment); }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept { return lender->unreserve(va, n); }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept { return lender->map(va, n, h); }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept { return lender->unmap(va, n); }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept { return lender->set_access(va, n, a); }
};
// Not literals where they are used: Clang 14 leaves consteval literals in templates uncompiled.
inline constexpr bytes part = 3_MiB;    ///< a large block that shares a segment
inline constexpr bytes whole = 12_MiB;  ///< one that has the native rules' segment to itself
inline constexpr bytes device_size = 160_MiB;
inline constexpr bytes most_of_it = 140_MiB;

using device = simulated;
using faulty_device = faulty<simulated>;
static_assert(PhysicalBackend<borrowed<faulty_device>>);

/// A block that must be had.
template <Pool P>
[[nodiscard]] address take(P& pool, bytes n, stream s = {}) {
  auto a = pool.allocate(n, s);
  REQUIRE(a);
  return *a;
}

template <Pool P>
void give(P& pool, address a) {
  REQUIRE(pool.deallocate(a));
}

template <Pool P>
[[nodiscard]] errc refused(P& pool, bytes n, stream s = {}) {
  auto a = pool.allocate(n, s);
  REQUIRE_FALSE(a);
  return a.error().code;
}

template <Pool P>
[[nodiscard]] errc refused_back(P& pool, address a) {
  auto done = pool.deallocate(a);
  REQUIRE_FALSE(done);
  return done.error().code;
}

/// Random blocks on three streams, of sizes around the rules' thresholds: they must not overlap, and the gauges must
/// agree with a naive account. What the pool refuses is skipped.
template <Pool P>
void walk(P& pool, std::uint32_t seed, int steps) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::map<address, bytes> live;
  std::vector<address> order;
  bytes requested = 0;
  for (int i = 0; i < steps; ++i) {
    if (order.empty() || below(5) < 3) {
      bytes const scale = bytes{1} << (8 + below(18));
      bytes const n = below(scale);
      auto a = pool.allocate(n, stream{below(3)});
      if (!a) continue;
      auto const next = live.lower_bound(*a);
      REQUIRE((next == live.end() || *a + n <= next->first));
      REQUIRE((next == live.begin() || std::prev(next)->first + std::prev(next)->second <= *a));
      live[*a] = n;
      order.push_back(*a);
      requested += n;
    } else {
      std::size_t const pick = below(order.size());
      give(pool, order[pick]);
      requested -= live[order[pick]];
      live.erase(order[pick]);
      order[pick] = order.back();
      order.pop_back();
    }
  }
  pool_stats const s = pool.stats();
  CHECK(s.requested.now == requested);
  CHECK(s.live.now >= requested);
  CHECK(s.reserved.now >= s.live.now);
  CHECK(s.mapped.now == s.reserved.now);
  CHECK(s.allocations - s.deallocations == order.size());
  for (address a : order) give(pool, a);
  CHECK(pool.stats().live.now == 0);
  CHECK(pool.stats().requested.now == 0);
}

template <template <class> class PoolOf>
void an_empty_request_gets_a_block_of_its_own() {
  PoolOf<device> pool{device{}};
  address const a = take(pool, 0);
  address const b = take(pool, 0);
  CHECK(a != b);
  CHECK(pool.stats().live.now == 1024);
  CHECK(pool.stats().requested.now == 0);
  give(pool, a);
  give(pool, b);
}

template <template <class> class PoolOf>
void a_size_that_cannot_be_rounded_is_an_invalid_argument() {
  PoolOf<device> pool{device{}};
  CHECK(refused(pool, std::numeric_limits<bytes>::max()) == errc::invalid_argument);
  CHECK(pool.stats().driver.total().calls == 0);
}

template <template <class> class PoolOf>
void what_is_not_a_block_is_an_unknown_pointer() {
  PoolOf<device> pool{device{}};
  CHECK(refused_back(pool, address{}) == errc::unknown_pointer);
  address const a = take(pool, part);
  CHECK(refused_back(pool, a + 1) == errc::unknown_pointer);
  CHECK(refused_back(pool, a + 512) == errc::unknown_pointer);
  CHECK(refused_back(pool, a - 2 * part) == errc::unknown_pointer);
  give(pool, a);
}

template <template <class> class PoolOf>
void a_second_free_is_reported_even_after_coalescing() {
  PoolOf<device> pool{device{}};
  address const a = take(pool, part);
  address const b = take(pool, part);
  give(pool, a);
  CHECK(refused_back(pool, a) == errc::double_free);
  give(pool, b);
  CHECK(refused_back(pool, b) == errc::double_free);
}

template <template <class> class PoolOf>
void a_stream_is_never_served_from_another_s_memory() {
  PoolOf<device> pool{device{}};
  address const a = take(pool, whole, stream{1});
  give(pool, a);
  bytes const reserved = pool.stats().reserved.now;
  address const b = take(pool, whole, stream{2});
  CHECK(b != a);
  CHECK(pool.stats().reserved.now == 2 * reserved);
  CHECK(take(pool, whole, stream{1}) == a);
}

/// However long a pool lived and whatever is live, nothing stays with the backend.
template <template <class> class PoolOf>
void destruction_returns_everything() {
  device lender;
  {
    PoolOf<borrowed<device>> pool{borrowed<device>{&lender}};
    walk(pool, 7, 500);
    (void)take(pool, whole);
    CHECK_FALSE(lender.idle());
  }
  CHECK(lender.idle());
}

/// Fails each backend call of a walk in turn, once and then for good, in a device small enough that the walk releases
/// memory too: the gauges must stay those of the backend, the pool must serve afterwards, and nothing may leak.
template <template <class> class PoolOf>
void a_failing_call_leaks_nothing() {
  constexpr std::uint32_t seed = 11;
  constexpr int steps = 400;
  constexpr std::uint64_t run_of_failures = 40;
  for (std::uint64_t count : {std::uint64_t{1}, run_of_failures}) {
    for (std::uint64_t first = 0;; ++first) {
      CAPTURE(count);
      CAPTURE(first);
      faulty_device lender(device({.capacity = device_size}));
      lender.arm({.first = first, .count = count});
      {
        PoolOf<borrowed<faulty_device>> pool{borrowed<faulty_device>{&lender}};
        std::mt19937 random(seed);
        std::vector<address> live;
        for (int i = 0; i < steps; ++i) {
          if (live.empty() || random() % 5 < 3) {
            bytes const scale = bytes{1} << (10 + random() % 17);
            bytes const n = random() % scale;
            stream const s{random() % 2};
            if (auto a = pool.allocate(n, s)) {
              live.push_back(*a);
            }
          } else {
            std::swap(live[random() % live.size()], live.back());
            give(pool, live.back());
            live.pop_back();
          }
          REQUIRE(pool.stats().reserved.now == lender.wrapped().created_bytes());
        }
        lender.disarm();
        for (address a : live) give(pool, a);
        give(pool, take(pool, most_of_it));
      }
      REQUIRE(lender.wrapped().idle());
      if (lender.faults() == 0) break;
    }
  }
}

}  // namespace gmlake::peer_suite
