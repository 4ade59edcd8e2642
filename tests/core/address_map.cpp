#include "gmlake/core/address_map.hpp"

#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

struct node {
  address at{};
};

TEST_CASE("an empty map finds nothing, nor does it take anything out") {
  address_map<node> map;
  CHECK(map.find(address{512}) == nullptr);
  CHECK(map.extract(address{512}) == nullptr);
  CHECK(map.size() == 0);
}

TEST_CASE("no address is never in a map") {
  address_map<node> map;
  REQUIRE(map.reserve_one());
  node n{address{512}};
  map.insert(n.at, n);
  CHECK(map.find(address{}) == nullptr);
  CHECK(map.extract(address{}) == nullptr);
  CHECK(map.size() == 1);
  CHECK(map.find(address{512}) == &n);
}

/// A walk over keys that `key(i)` gives, against the standard library's map.
template <class Key>
void walk(std::uint64_t seed, std::size_t keys, int steps, Key&& key) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<node> nodes(keys);
  for (std::size_t i = 0; i < keys; ++i) nodes[i].at = key(i);
  address_map<node> map;
  std::unordered_map<std::uintptr_t, node*> model;
  for (int step = 0; step < steps; ++step) {
    // Long stretches of growth and of shrinking, so that the map is nearly full and nearly empty in turn.
    bool const growing = step / 4000 % 2 == 0;
    node& n = nodes[random() % keys];
    auto const known = model.find(to_integer(n.at));
    node* const expected = known == model.end() ? nullptr : known->second;
    REQUIRE(map.find(n.at) == expected);
    if (expected == nullptr && random() % 4 < (growing ? 3 : 1)) {
      REQUIRE(map.reserve_one());
      map.insert(n.at, n);
      model[to_integer(n.at)] = &n;
    } else if (expected == nullptr || random() % 4 < (growing ? 1 : 3)) {
      REQUIRE(map.extract(n.at) == expected);
      model.erase(to_integer(n.at));
    }
    REQUIRE(map.size() == model.size());
    if (step % 1000 != 0) continue;
    for (node const& any : nodes) {
      auto const m = model.find(to_integer(any.at));
      REQUIRE(map.find(any.at) == (m == model.end() ? nullptr : m->second));
    }
    std::set<node const*> visited;
    map.for_each([&](node const& each) { REQUIRE(visited.insert(&each).second); });
    REQUIRE(visited.size() == model.size());
  }
}

TEST_CASE("a map agrees with the standard library's over any addresses") {
  std::mt19937_64 random(std::random_device{}());
  walk(random(), 3000, 40'000, [](std::size_t i) { return static_cast<address>(0x7f00'0000'0000 + (i + 1) * 512); });
}

TEST_CASE("a map agrees with the standard library's over addresses that all collide") {
  // The place in the table is taken from the product's bits 32 and up. With the multiplier's inverse, products can be
  // chosen: here they differ in their low 32 bits only, and a few in the next, across the table's end.
  constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t inverse = multiplier;  // Newton: each step doubles the correct bits
  for (int i = 0; i < 6; ++i) inverse *= 2 - multiplier * inverse;
  REQUIRE(multiplier * inverse == 1);
  std::mt19937_64 random(std::random_device{}());
  walk(random(), 300, 40'000, [inverse](std::size_t i) {
    std::uint64_t const home = (~std::uint64_t{0} - 3 + i % 7) << 32;
    return static_cast<address>((home + i + 1) * inverse);
  });
}

TEST_CASE("a moved map keeps its entries, and the old one is empty") {
  address_map<node> old;
  node n{address{1024}};
  REQUIRE(old.reserve_one());
  old.insert(n.at, n);
  address_map<node> const now(std::move(old));
  CHECK(now.find(n.at) == &n);
  CHECK(old.size() == 0);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  CHECK(old.find(n.at) == nullptr);
  CHECK(old.reserve_one());
}

}  // namespace
