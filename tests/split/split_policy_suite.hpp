#pragma once
/// What every SplitPolicy must do. To hold one to it, say how exact it is and invoke the suite:
///
///     template <> bytes gmlake::test::surely_served<tlsf>(bytes n) { return ...; }
///     TEST_CASE_TEMPLATE_INVOKE(split_policy, gmlake::tlsf);

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/core/alignment.hpp"
#include "gmlake/split/split_policy.hpp"

namespace gmlake::test {

/// A block of this size or more is sure to be found for a request of n bytes: n itself where a policy is exact.
template <SplitPolicy S>
bytes surely_served(bytes n);

/// Sizes of few units, which meet often, and sizes of every magnitude.
inline bytes any_size(std::mt19937_64& random) {
  bytes const units = random() % 3 == 0 ? 1 + random() % 20 : 1 + (random() >> (random() % 36 + 28));
  return units * block_alignment;
}

/// A shelf, and the same blocks in a set without order.
template <SplitPolicy S>
class shelf_model {
 public:
  explicit shelf_model(std::size_t most) : blocks_(most) {
    for (std::size_t i = 0; i < most; ++i) spare_.push_back(&blocks_[i]);
  }
  shelf_model(shelf_model const&) = delete;
  shelf_model& operator=(shelf_model const&) = delete;
  ~shelf_model() {
    for (block* b : held) shelf.erase(*b);
  }

  block& insert(bytes size, bytes offset = 0) {
    block& b = *spare_.back();
    spare_.pop_back();
    b.begin = place_of(b) + offset;
    b.size = size;
    shelf.insert(b);
    held.insert(&b);
    return b;
  }
  void erase(block& b) {
    shelf.erase(b);
    held.erase(&b);
    spare_.push_back(&b);
  }
  /// The block keeps to a place of its own, however it is resized.
  void resize(block& b, bytes size, bytes offset) { shelf.resize(b, place_of(b) + offset, size); }

  [[nodiscard]] bool full() const { return spare_.empty(); }
  block& any(std::mt19937_64& random) {
    return **std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
  }

  S shelf;
  std::set<block*> held;

 private:
  [[nodiscard]] address place_of(block const& b) const {
    return static_cast<address>(static_cast<bytes>(&b - blocks_.data() + 1) << 46);
  }
  std::vector<block> blocks_;
  std::vector<block*> spare_;
};

/// All blocks from `first` on, as `next` leads; each is held, and none comes twice.
template <SplitPolicy S, class Next>
std::vector<block*> enumerate(shelf_model<S> const& m, block* first, Next&& next) {
  std::vector<block*> all;
  std::set<block*> seen;
  for (block* b = first; b != nullptr; b = next(*b)) {
    REQUIRE(m.held.count(b) == 1);
    REQUIRE(seen.insert(b).second);
    all.push_back(b);
  }
  return all;
}

template <SplitPolicy S>
std::vector<block*> by_falling_size(shelf_model<S> const& m) {
  return enumerate(m, m.shelf.largest(), [&](block& b) { return m.shelf.smaller(b); });
}
template <SplitPolicy S>
std::vector<block*> fits(shelf_model<S> const& m, bytes n) {
  return enumerate(m, m.shelf.find(n), [&](block& b) { return m.shelf.next_fit(b, n); });
}

/// Random inserts, erasures and resizes; `check` is called after each.
template <SplitPolicy S, class Check>
void walk_shelf(std::size_t blocks, int steps, Check&& check) {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  shelf_model<S> m(blocks);
  for (int step = 0; step < steps; ++step) {
    switch (random() % 5) {
      case 0:
      case 1:
        if (!m.full()) m.insert(any_size(random), random() % 100 * block_alignment);
        break;
      case 2:
        if (!m.held.empty()) m.erase(m.any(random));
        break;
      default: {
        if (m.held.empty()) break;
        block& b = m.any(random);
        // Mostly as in carving and joining, by a little; sometimes to any size.
        bytes const delta = random() % 4 * block_alignment;
        bytes const size = random() % 4 == 0 ? any_size(random) : random() % 2 == 0 ? b.size + delta : b.size;
        m.resize(b, b.size > delta && random() % 2 == 0 ? b.size - delta : size, random() % 100 * block_alignment);
      }
    }
    check(m, random);
  }
}

TEST_CASE_TEMPLATE_DEFINE("a split policy keeps its contract", S, split_policy) {
  SUBCASE("a request's block is no smaller than it, a multiple of the alignment, and grows with it") {
    std::uint64_t const seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    for (bytes const granule : {64_KiB, 2_MiB}) {
      CHECK(S::round(1, granule) >= block_alignment);
      for (int i = 0; i < 2000; ++i) {
        bytes const n = 1 + (random() >> (random() % 48 + 16));
        bytes const more = n + random() % 4096;
        CAPTURE(n);
        CHECK(S::round(n, granule) >= n);
        CHECK(is_aligned(S::round(n, granule), block_alignment));
        CHECK(S::round(n, granule) <= S::round(more, granule));
        CHECK(S::round(S::round(n, granule), granule) == S::round(n, granule));
      }
    }
  }

  SUBCASE("an empty shelf has nothing") {
    S const shelf{};
    CHECK(shelf.find(1) == nullptr);
    CHECK(shelf.find(1_TiB) == nullptr);
    CHECK(shelf.largest() == nullptr);
  }

  SUBCASE("a block of exactly the size asked for is found") {
    shelf_model<S> m(1);
    block& b = m.insert(7 * block_alignment);
    CHECK(m.shelf.find(7 * block_alignment) == &b);
    CHECK(m.shelf.find(8 * block_alignment) == nullptr);
    CHECK(m.shelf.next_fit(b, 7 * block_alignment) == nullptr);
    m.erase(b);
    CHECK(m.shelf.find(block_alignment) == nullptr);
  }

  SUBCASE("what is found is on the shelf and never too small; what surely fits is found") {
    walk_shelf<S>(200, 20'000, [](shelf_model<S>& m, std::mt19937_64& random) {
      bytes const n = any_size(random);
      block* const b = m.shelf.find(n);
      if (b != nullptr) {
        REQUIRE(m.held.count(b) == 1);
        REQUIRE(b->size >= n);
        return;
      }
      bytes const sure = surely_served<S>(n);
      REQUIRE(std::ranges::none_of(m.held, [&](block const* h) { return h->size >= sure; }));
    });
  }

  SUBCASE("next_fit leads once through every block that surely fits, and through none that is too small") {
    walk_shelf<S>(60, 3000, [](shelf_model<S>& m, std::mt19937_64& random) {
      bytes const n = any_size(random);
      std::vector<block*> const all = fits(m, n);
      REQUIRE(std::ranges::all_of(all, [&](block const* b) { return b->size >= n; }));
      bytes const sure = surely_served<S>(n);
      for (block* h : m.held) {
        if (h->size >= sure) REQUIRE(std::ranges::count(all, h) == 1);
      }
    });
  }

  SUBCASE("largest and smaller lead once through every block, by falling size up to the policy's classes") {
    walk_shelf<S>(60, 3000, [](shelf_model<S>& m, std::mt19937_64&) {
      std::vector<block*> const all = by_falling_size(m);
      REQUIRE(all.size() == m.held.size());
      for (std::size_t i = 1; i < all.size(); ++i) {
        REQUIRE(all[i]->size <= surely_served<S>(all[i - 1]->size + block_alignment));
      }
    });
  }

  SUBCASE("a resized block is found as if it had been taken off and put back") {
    shelf_model<S> m(2);
    block& b = m.insert(4_MiB);
    block& other = m.insert(1_MiB);
    for (bytes const size : {3_MiB, 512_KiB, 512_KiB + 512, 64_MiB, 512_MiB, bytes{512}}) {
      bytes const offset = size / 2;
      m.resize(b, size, offset);
      CHECK(b.size == size);
      if (size > other.size) CHECK(m.shelf.find(size) == &b);
      CHECK(m.shelf.find(2 * std::max(size, other.size)) == nullptr);
      std::vector<block*> const all = by_falling_size(m);
      REQUIRE(all.size() == 2);
      CHECK((all.front() == &b) == (size > 1_MiB));
    }
  }
}

}  // namespace gmlake::test
