#include "gmlake/core/slab.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

struct counted {
  static inline int alive = 0;
  counted() noexcept { ++alive; }
  ~counted() { --alive; }
  std::uint64_t value = 0;
};
struct alignas(128) spacious {
  char letter = 'a';
};
struct unbuildable {
  explicit unbuildable(int);
};

template <class T>
concept Slabbed = requires { typename slab<T>; };
static_assert(Slabbed<counted> && !Slabbed<unbuildable>);

TEST_CASE("a reserved number of nodes can be had, and no node twice") {
  slab<counted> nodes;
  REQUIRE(nodes.reserve(1000));
  std::set<counted*> seen;
  for (int i = 0; i < 1000; ++i) CHECK(seen.insert(&nodes.acquire()).second);
  CHECK(nodes.used() == 1000);
  CHECK(counted::alive == 1000);
  for (counted* n : seen) nodes.release(*n);
  CHECK(nodes.used() == 0);
  CHECK(counted::alive == 0);
}

TEST_CASE("a node released is used again before new memory is taken, and comes back fresh") {
  slab<counted> nodes;
  REQUIRE(nodes.reserve(1));
  counted& first = nodes.acquire();
  first.value = 7;
  nodes.release(first);
  counted& second = nodes.acquire();
  CHECK(&second == &first);
  CHECK(second.value == 0);
  nodes.release(second);
}

TEST_CASE("nodes keep what they hold while others come and go") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  slab<counted> nodes;
  std::vector<std::pair<counted*, std::uint64_t>> model;
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    if (model.empty() || random() % 5 < 3) {
      REQUIRE(nodes.reserve(1));
      counted& n = nodes.acquire();
      n.value = step;
      model.emplace_back(&n, step);
    } else {
      std::swap(model[random() % model.size()], model.back());
      CHECK(model.back().first->value == model.back().second);
      nodes.release(*model.back().first);
      model.pop_back();
    }
    REQUIRE(nodes.used() == model.size());
  }
  for (auto const& [n, value] : model) {
    CHECK(n->value == value);
    nodes.release(*n);
  }
  CHECK(counted::alive == 0);
}

TEST_CASE("a moved slab keeps its nodes, and the old one starts anew") {
  slab<counted> old;
  REQUIRE(old.reserve(1));
  counted& n = old.acquire();
  n.value = 9;
  slab<counted> now(std::move(old));
  CHECK(now.used() == 1);
  CHECK(n.value == 9);
  CHECK(old.used() == 0);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  REQUIRE(old.reserve(1));
  old.release(old.acquire());
  now.release(n);
}

TEST_CASE("nodes are aligned as their type demands") {
  slab<spacious> nodes;
  REQUIRE(nodes.reserve(3));
  std::vector<spacious*> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(&nodes.acquire());
  for (spacious* n : taken) {
    CHECK(reinterpret_cast<std::uintptr_t>(n) % alignof(spacious) == 0);
    nodes.release(*n);
  }
}

}  // namespace
