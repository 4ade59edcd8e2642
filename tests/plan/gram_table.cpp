#include "gmlake/plan/gram_table.hpp"

#include <doctest/doctest.h>

using namespace gmlake;
using plan::gram_table;
using plan::log_point;

TEST_CASE("a point is found by its gram, at nearly its level") {
  gram_table table;
  CHECK(table.find({7, 1, 1000}, 10) == nullptr);
  table.add({7, 1, 1000});
  for (bytes live : {990u, 995u, 1000u, 1010u}) {
    CAPTURE(live);
    REQUIRE(table.find({9, 1, live}, 10) != nullptr);
    CHECK(table.find({9, 1, live}, 10)->number == 7);
  }
  CHECK(table.find({9, 1, 989}, 10) == nullptr);
  CHECK(table.find({9, 1, 1011}, 10) == nullptr);
  CHECK(table.find({9, 2, 1000}, 10) == nullptr);
}

TEST_CASE("the nearest level counts, and no slack means the same level") {
  gram_table table;
  CHECK(table.find({1, 5, 1000}, 16) == nullptr);
  table.add({1, 5, 1000});
  table.add({2, 5, 1012});
  CHECK(table.find({3, 5, 1002}, 16)->number == 1);
  CHECK(table.find({3, 5, 1011}, 16)->number == 2);
  CHECK(table.find({3, 5, 1012}, 0)->number == 2);
  CHECK(table.find({3, 5, 1011}, 0) == nullptr);
}

TEST_CASE("points stay known when the slack grows and shrinks") {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // grams are fingerprints: they differ in their high bits
  gram_table table;
  CHECK(table.find({0, 0, 0}, 0) == nullptr);
  for (std::uint64_t i = 0; i < 100; ++i) table.add({i, i % 7 * odd, i * 1000});
  for (bytes slack : {0u, 1u, 499u, 3u, 100u}) {
    CAPTURE(slack);
    for (std::uint64_t i = 0; i < 100; ++i) {
      auto const* const known = table.find({1000, i % 7 * odd, i * 1000}, slack);
      REQUIRE(known != nullptr);
      CHECK(known->number == i);
    }
  }
  CHECK(table.find({1000, 0, 0}, 1_GiB) != nullptr);  // all crowd on one level: some are left
}

TEST_CASE("one gram at very many levels leaves the youngest to be found") {
  gram_table table;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    log_point const p{i, 5, i * 1_MiB};
    REQUIRE(table.find(p, 64_KiB) == nullptr);
    table.add(p);
  }
  for (std::uint64_t i = 99'000; i < 100'000; ++i) REQUIRE(table.find({i, 5, i * 1_MiB + 1}, 64_KiB) != nullptr);
}
