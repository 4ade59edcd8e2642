#include "gmlake/trace/min_limit.hpp"

#include <set>

#include <doctest/doctest.h>

#include "gmlake/trace/reader.hpp"
#include "tests/trace/bump_pool.hpp"

namespace {
using namespace gmlake;

/// A trace that completes under the limits, in steps of the grid, for which `suffices` holds.
template <class Suffices>
struct pretended {
  explicit pretended(Suffices f) : suffices(f) {}
  Suffices suffices;
  std::set<bytes> tried;
  trace::replay_result operator()(bytes limit) {
    CHECK(limit % 2_MiB == 0);
    CHECK(tried.insert(limit / 2_MiB).second);
    trace::replay_result r;
    if (!suffices(limit / 2_MiB)) r.outcome = trace::replay_outcome::failed;
    r.operations = limit;
    return r;
  }
};

TEST_CASE("the smallest limit of a well-behaved pool is found by bisection") {
  pretended search{[](bytes steps) { return steps >= 1037; }};
  auto const found = trace::find_min_limit(1000 * 2_MiB - 5, 2000 * 2_MiB, search);
  CHECK(found.found);
  CHECK(found.limit == 1037 * 2_MiB);
  CHECK(found.at_limit.operations == found.limit);
  CHECK(found.tried == search.tried.size());
  CHECK(found.tried < 32);
}

TEST_CASE("a larger limit that fails raises the answer above it") {
  pretended search{[](bytes steps) { return steps >= 1037 && steps != 1039; }};
  CHECK(trace::find_min_limit(1000 * 2_MiB, 2000 * 2_MiB, search).limit == 1040 * 2_MiB);
}

TEST_CASE("every limit tried above the answer completes") {
  for (unsigned seed = 1; seed < 200; ++seed) {
    CAPTURE(seed);
    pretended search{[seed](bytes steps) { return steps >= 900 && (steps * 2654435761u * seed >> 7) % 11 != 0; }};
    auto const r = trace::find_min_limit(800 * 2_MiB, 1000 * 2_MiB, search);
    REQUIRE(r.found);
    for (bytes steps : search.tried) {
      if (steps * 2_MiB >= r.limit) CHECK(search.suffices(steps));
    }
    CHECK(search.suffices(r.limit / 2_MiB));
  }
}

TEST_CASE("no limit below the peak requested is tried") {
  pretended search{[](bytes) { return true; }};
  auto const r = trace::find_min_limit(1000 * 2_MiB + 1, 2000 * 2_MiB, search);
  CHECK(r.limit == 1001 * 2_MiB);
  CHECK(*search.tried.begin() == 1001);
}

TEST_CASE("where no limit suffices, none is found") {
  pretended search{[](bytes) { return false; }};
  CHECK_FALSE(trace::find_min_limit(1, 2, search).found);
}

TEST_CASE("a wider limit is tried where the first does not suffice") {
  pretended search{[](bytes steps) { return steps >= 37; }};
  CHECK(trace::find_min_limit(1, 10 * 2_MiB, search).limit == 37 * 2_MiB);
}

TEST_CASE("a real pool's smallest limit is its peak, rounded up to the grid") {
  auto const t = trace::read("a,0,5000000,0\na,1,5000000,0\nf,0\na,2,1,0\n");
  REQUIRE(t);
  auto const r = trace::find_min_limit(10'000'000, 10'000'000, [&](bytes limit) {
    test::bump_pool pool(limit);
    return trace::replay(t.value, pool);
  });
  CHECK(r.limit == 10_MiB);
  CHECK(r.at_limit.ok());
}

}  // namespace
