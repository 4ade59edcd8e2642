#pragma once
/// What every Observer must do: take whatever a pool reports, and where it counts or logs, tell the same as a naive
/// tally. To hold one to it: TEST_CASE_TEMPLATE_INVOKE(observer, gmlake::counters);

#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/observe/counters.hpp"
#include "gmlake/observe/event_log.hpp"
#include "gmlake/observe/observer.hpp"

namespace gmlake::test {

/// What a pool might have done, remembered plainly.
struct reports {
  struct level {
    bytes now = 0;
    bytes peak = 0;
    void to(bytes n) {
      now = n;
      peak = peak < n ? n : peak;
    }
  };
  level requested, live, reserved, mapped;
  std::uint64_t allocations = 0, deallocations = 0, stitches = 0, hits = 0, failures = 0;
  std::vector<logged_event> log;

  std::vector<block_event> blocks;
  std::vector<bytes> chunks;
  std::vector<stitch_event> idle;
};

/// One random thing that a pool may do, told to the observer and written down.
template <Observer O>
void report_any(O& o, reports& r, std::mt19937_64& random) {
  auto const take = [&random](auto& from) {
    std::swap(from[random() % from.size()], from.back());
    auto const one = from.back();
    from.pop_back();
    return one;
  };
  switch (random() % 9) {
    case 0:
    case 1: {
      block_event const b{.at = static_cast<address>(random()),
                          .requested = random() % 1_GiB,
                          .size = random() % 1_GiB,
                          .on = static_cast<stream>(random() % 3)};
      r.blocks.push_back(b);
      r.log.push_back({b.at, b.requested, b.size, b.on, nullptr, logged_event::kind::allocated});
      r.requested.to(r.requested.now + b.requested);
      r.live.to(r.live.now + b.size);
      ++r.allocations;
      return o.allocated(b);
    }
    case 2: {
      if (r.blocks.empty()) return;
      block_event const b = take(r.blocks);
      r.log.push_back({b.at, b.requested, b.size, b.on, nullptr, logged_event::kind::deallocated});
      r.requested.to(r.requested.now - b.requested);
      r.live.to(r.live.now - b.size);
      ++r.deallocations;
      return o.deallocated(b);
    }
    case 3: {
      r.chunks.push_back(random() % 64 * 2_MiB);
      r.reserved.to(r.reserved.now + r.chunks.back());
      r.mapped.to(r.mapped.now + r.chunks.back());
      return o.created(address{1}, r.chunks.back());
    }
    case 4: {
      if (r.chunks.empty()) return;
      bytes const n = take(r.chunks);
      r.reserved.to(r.reserved.now - n);
      r.mapped.to(r.mapped.now - n);
      return o.released(address{1}, n);
    }
    case 5: {
      r.idle.push_back({.at = address{2}, .size = random() % 64 * 2_MiB, .handles = random() % 64});
      r.mapped.to(r.mapped.now + r.idle.back().size);
      ++r.stitches;
      return o.stitched(r.idle.back());
    }
    case 6:
      if (r.idle.empty()) return;
      ++r.hits;
      return o.reused(r.idle.back());
    case 7: {
      if (r.idle.empty()) return;
      stitch_event const s = take(r.idle);
      r.mapped.to(r.mapped.now - s.size);
      return o.evicted(s);
    }
    default: ++r.failures; return o.failed({.requested = random()});
  }
}

inline void check_counts(pool_stats const& seen, reports const& r) {
  auto const same = [](gauge const& g, reports::level const& l) { return g.now == l.now && g.peak == l.peak; };
  REQUIRE(same(seen.requested, r.requested));
  REQUIRE(same(seen.live, r.live));
  REQUIRE(same(seen.reserved, r.reserved));
  REQUIRE(same(seen.mapped, r.mapped));
  REQUIRE(seen.allocations == r.allocations);
  REQUIRE(seen.deallocations == r.deallocations);
  REQUIRE(seen.stitches_made == r.stitches);
  REQUIRE(seen.stitch_hits == r.hits);
  REQUIRE(seen.failures == r.failures);
}

inline void check_log(event_log const& log, reports const& r) {
  REQUIRE(log.events().size() == r.log.size());
  for (std::size_t i = 0; i < r.log.size(); ++i) {
    logged_event const& a = log.events()[i];
    logged_event const& b = r.log[i];
    REQUIRE((a.at == b.at && a.requested == b.requested && a.size == b.size && a.on == b.on && a.what == b.what));
  }
}

TEST_CASE_TEMPLATE_DEFINE("an observer keeps its contract", O, observer) {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  O o{};
  reports r;
  for (int i = 0; i < 5000; ++i) {
    report_any(o, r, random);
    if constexpr (CountingObserver<O>) check_counts(o.seen(), r);
    if (i % 1000 == 0) {  // a pool moves its observer into place
      O moved = std::move(o);
      o = std::move(moved);
    }
  }
  if constexpr (requires { o.events(); }) check_log(o, r);
  if constexpr (requires { o.second().events(); }) check_log(o.second(), r);
}

}  // namespace gmlake::test
