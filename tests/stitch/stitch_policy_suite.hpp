#pragma once
/// What every StitchPolicy must do. To hold one to it: TEST_CASE_TEMPLATE_INVOKE(stitch_policy, gmlake::no_stitch);

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/split/split_policy.hpp"
#include "gmlake/stitch/stitch_policy.hpp"

namespace gmlake::test {

/// Chunks in a row, and what is free of them.
struct free_memory {
  std::vector<chunk> chunks;
  std::vector<extent> whole, tails, heads;

  /// Room for so many chunks: extents point to them.
  explicit free_memory(std::size_t most) { chunks.reserve(most); }

  chunk& add(bytes size) {
    REQUIRE(chunks.size() < chunks.capacity());
    chunk& c = chunks.emplace_back();
    c.home = chunks.size() == 1 ? address{1_TiB} : chunks[chunks.size() - 2].end();
    c.size = size;
    return c;
  }
  void add_whole(bytes size) { whole.push_back({&add(size), 0, size}); }
  /// A chunk of which only its last `part` bytes are free.
  void add_tail(bytes size, bytes part) { tails.push_back({&add(size), size - part, part}); }
  /// A chunk of which only its first `part` bytes are free.
  void add_head(bytes size, bytes part) { heads.push_back({&add(size), 0, part}); }

  [[nodiscard]] stitch_candidates candidates() { return {whole, tails, heads}; }
  [[nodiscard]] bytes free_in_whole() const {
    return std::accumulate(whole.begin(), whole.end(), bytes{0}, [](bytes n, extent const& e) { return n + e.size; });
  }
};

inline free_memory any_memory(std::mt19937_64& random) {
  constexpr bytes granule = 2_MiB;
  std::size_t const count = random() % 12;
  bytes const coarsest = 1 + random() % 16;
  free_memory m(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes const size = (1 + random() % coarsest) * granule;
    bytes const part = (1 + random() % (size / block_alignment - 1)) * block_alignment;
    switch (random() % 6) {
      case 0: m.add_tail(size, part); break;
      case 1: m.add_head(size, part); break;
      case 2: m.add(size); break;  // live
      default: m.add_whole(size);
    }
  }
  // As a pool lists them: those of one free block together, the largest blocks first. To a policy, any order.
  std::ranges::shuffle(m.whole, random);
  return m;
}

/// Whether an extent lies in one of those that were given.
inline bool within(extent const& e, std::vector<extent> const& given) {
  return std::ranges::any_of(given, [&](extent const& g) {
    return g.of == e.of && g.offset <= e.offset && e.offset + e.size <= g.offset + g.size;
  });
}

/// Checks that the extents make one contiguous view of n bytes, of memory that was free.
inline void check_view(std::vector<extent> const& chosen, free_memory const& from, bytes n) {
  bytes sum = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    CAPTURE(i);
    extent const& e = chosen[i];
    REQUIRE(e.size > 0);
    bool const tail = within(e, from.tails);
    bool const head = within(e, from.heads);
    REQUIRE((tail || head || within(e, from.whole)));
    if (tail) REQUIRE(i == 0);
    if (head) REQUIRE(i == chosen.size() - 1);
    // A handle is mapped whole: what sticks out would lie within the view anywhere but at its two ends.
    if (i > 0) REQUIRE(e.offset == 0);
    if (i < chosen.size() - 1) REQUIRE(e.offset + e.size == e.of->size);
    for (std::size_t j = 0; j < i; ++j) REQUIRE((chosen[j].end() <= e.begin() || e.end() <= chosen[j].begin()));
    sum += e.size;
  }
  REQUIRE(sum == n);
}

template <StitchPolicy S>
stitch_choice choose(S const& policy, free_memory& from, bytes n, std::vector<extent>& out) {
  out.assign(from.whole.size() + 2, extent{});
  stitch_choice const choice = policy.choose(from.candidates(), n, out);
  REQUIRE(choice.count <= out.size());
  out.resize(choice.shortfall == 0 ? choice.count : 0);
  return choice;
}

TEST_CASE_TEMPLATE_DEFINE("a stitch policy keeps its contract", S, stitch_policy) {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  S const policy{};
  std::vector<extent> out;
  bool const stitches_at_all = policy.stitches(1_TiB, false) || policy.stitches(1_TiB, true);

  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    free_memory from = any_memory(random);
    free_memory const before = from;
    bytes const n = (1 + random() % (from.free_in_whole() / block_alignment + 20'000)) * block_alignment;
    CAPTURE(n);
    stitch_choice const choice = choose(policy, from, n, out);

    // "the extents of a stitch add up, and make one view of free memory: tails first, heads last, nothing twice"
    if (choice.shortfall == 0) check_view(out, before, n);

    // "where the whole chunks suffice, there is no shortfall"
    if (stitches_at_all && before.free_in_whole() >= n) REQUIRE(choice.shortfall == 0);

    // "the shortfall is exact: so much less can be had, and no more"
    REQUIRE(choice.shortfall <= n);
    if (bytes const had = n - choice.shortfall; choice.shortfall > 0 && had > 0) {
      REQUIRE(choose(policy, from, had, out).shortfall == 0);
      check_view(out, before, had);
      REQUIRE(choose(policy, from, had + block_alignment, out).shortfall == block_alignment);
    }

    // "what was given comes back, in whatever order"
    auto const key = [](extent const& e) { return std::tuple(e.of, e.offset, e.size); };
    for (auto part : {&free_memory::whole, &free_memory::tails, &free_memory::heads}) {
      std::vector<extent> now = from.*part;
      std::vector<extent> then = before.*part;
      std::ranges::sort(now, {}, key);
      std::ranges::sort(then, {}, key);
      REQUIRE(std::ranges::equal(now, then, {}, key, key));
    }
  }
}

}  // namespace gmlake::test
