#pragma once
/// What every Packer must do. To hold one to it, invoke the suite:
///
///     TEST_CASE_TEMPLATE_INVOKE(packer, gmlake::plan::grouped);

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/packer.hpp"
#include "gmlake/plan/validate.hpp"
#include "tests/plan/naive.hpp"

namespace gmlake::test {

/// The first wrong thing about a solution; empty where it is valid. O(n²).
inline std::string wrong_with(plan::problem const& p, plan::solution const& s) {
  if (s.offsets.size() != p.buffers.size()) return "not as many offsets as buffers";
  bytes height = 0;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    plan::buffer const& b = p.buffers[i];
    height = std::max(height, s.offsets[i] + b.size);
    if (b.fixed && s.offsets[i] != *b.fixed) return "a fixed buffer was moved: " + std::to_string(i);
    if (!is_aligned(s.offsets[i], b.alignment)) return "misaligned: " + std::to_string(i);
    for (std::size_t k = 0; k < i; ++k) {
      bool const shares = s.offsets[i] < s.offsets[k] + p.buffers[k].size && s.offsets[k] < s.offsets[i] + b.size;
      if (shares && conflict(p, b, p.buffers[k])) {
        return "bytes shared by " + std::to_string(k) + " and " + std::to_string(i);
      }
    }
  }
  return height == s.height ? "" : "the height is not the highest end";
}

/// The most bytes that live at an instant; every peak is at a birth or where the period begins. O(n²).
inline bytes peak_live(plan::problem const& p) {
  auto const lives = [&](plan::buffer const& b, plan::instant at) {
    return (b.lower <= at && at < b.upper) || (p.period != 0 && at + p.period < b.upper);
  };
  bytes most = 0;
  auto const look = [&](plan::instant at) {
    bytes live = 0;
    for (plan::buffer const& b : p.buffers) live += lives(b, at) ? b.size : 0;
    most = std::max(most, live);
  };
  look(0);
  for (plan::buffer const& b : p.buffers) look(b.lower);
  return most;
}

inline plan::buffer any_buffer(std::mt19937_64& random, plan::instant horizon) {
  plan::buffer b;
  b.lower = random() % horizon;
  plan::instant const longest = random() % 5 == 0 ? horizon : 1 + horizon / 20;
  b.upper = std::min(horizon, b.lower + 1 + random() % longest);
  b.size = 512 * (1 + (random() >> (random() % 20 + 44)) % 4096);
  return b;
}

inline plan::problem any_problem(std::mt19937_64& random, std::size_t buffers) {
  plan::problem p;
  for (std::size_t i = 0; i < buffers; ++i) p.buffers.push_back(any_buffer(random, 2 * buffers));
  return p;
}

/// What a problem may ask for besides.
struct demands {
  bool alignment = false;
  bool fixed = false;
  bool wraps = false;
  plan::instant stream_gap = 0;
};

inline plan::problem demanding(plan::problem p, std::mt19937_64& random, demands const& d) {
  plan::instant horizon = 1;
  for (plan::buffer const& b : p.buffers) horizon = std::max(horizon, b.upper);
  if (d.wraps) p.period = horizon;
  p.stream_gap = d.stream_gap;
  bytes wall = 0;
  for (plan::buffer& b : p.buffers) {
    if (d.alignment) b.alignment = bytes{1} << random() % 16;
    if (d.wraps && random() % 4 == 0) b.upper = b.lower + 1 + random() % horizon;
    if (d.stream_gap != 0) b.stream = static_cast<std::uint32_t>(random() % 3);
    if (d.fixed && random() % 8 == 0) {
      wall += random() % (64 * 512);
      b.fixed = wall = align_up(wall, b.alignment);
      wall += b.size;
    }
  }
  return p;
}

/// Buffers of a program that frees the last first.
inline plan::problem any_stack(std::mt19937_64& random, std::size_t buffers) {
  plan::problem p;
  std::vector<std::size_t> stack;
  plan::instant now = 0;
  while (p.buffers.size() < buffers || !stack.empty()) {
    bool const full = p.buffers.size() == buffers;
    if (!full && (stack.empty() || random() % 2 == 0)) {
      stack.push_back(p.buffers.size());
      p.buffers.push_back({now, now + 1, 512 * (1 + random() % 2000), 1, 0, {}});
    } else {
      p.buffers[stack.back()].upper = now;
      stack.pop_back();
    }
    ++now;
  }
  return p;
}

/// A rectangle of that height cut again and again, right through or right across: its pieces fit it exactly.
inline plan::problem guillotine(std::mt19937_64& random, std::size_t pieces, bytes height, plan::instant width) {
  plan::problem p;
  p.buffers.push_back({0, width, height, 1, 0, {}});
  while (p.buffers.size() < pieces) {
    plan::buffer& b = p.buffers[random() % p.buffers.size()];
    plan::buffer cut = b;
    if (random() % 2 == 0 && b.upper - b.lower > 1) {
      cut.lower = b.lower + 1 + random() % (b.upper - b.lower - 1);
      b.upper = cut.lower;
    } else if (b.size > 512) {
      cut.size = 512 * (1 + random() % (b.size / 512 - 1));
      b.size -= cut.size;
    } else {
      continue;
    }
    p.buffers.push_back(cut);
  }
  std::ranges::shuffle(p.buffers, random);
  return p;
}

inline std::mt19937_64 seeded(std::uint64_t& seed) {
  seed = std::random_device{}();
  return std::mt19937_64(seed);
}

TEST_CASE_TEMPLATE_DEFINE("a packer keeps its contract", P, packer) {
  std::uint64_t seed = 0;
  std::mt19937_64 random = seeded(seed);
  CAPTURE(seed);
  P const packer{};
  auto const check = [&](plan::problem const& p) {
    plan::solution const s = packer.pack(p);
    REQUIRE(wrong_with(p, s) == "");
    REQUIRE_FALSE(plan::validate(p, s).has_value());
    REQUIRE(s.height >= peak_live(p));
    return s.height;
  };

  SUBCASE("no buffers need no height") {
    plan::solution const s = packer.pack({});
    CHECK(s.offsets.empty());
    CHECK(s.height == 0);
  }

  SUBCASE("one buffer lies at the bottom") {
    plan::problem p;
    p.buffers.push_back({7, 9, 1536, 1024, 0, {}});
    CHECK(check(p) == 1536);
    p.period = 8;
    CHECK(check(p) == 1536);
  }

  SUBCASE("a fixed buffer stays, whatever is alone above or below it") {
    plan::problem p;
    p.buffers.push_back({0, 4, 512, 1, 0, 8192});
    CHECK(check(p) == 8704);
    p.buffers.push_back({1, 3, 4096, 1, 0, {}});
    CHECK(check(p) == 8704);
    p.buffers.push_back({1, 3, 16384, 1, 0, {}});
    CHECK(check(p) >= 8704 + 16384);
  }

  SUBCASE("random buffers") {
    for (int i = 0; i < 40; ++i) check(any_problem(random, 1 + random() % 300));
  }

  SUBCASE("random buffers of one size") {
    for (int i = 0; i < 20; ++i) {
      plan::problem p = any_problem(random, 1 + random() % 300);
      for (plan::buffer& b : p.buffers) b.size = 4096;
      check(p);
    }
  }

  SUBCASE("alignment, fixed offsets, wraps and gaps between streams, each alone and all together") {
    constexpr plan::instant never = plan::problem::never;
    for (demands const& d : std::initializer_list<demands>{{.alignment = true},
                                                           {.fixed = true},
                                                           {.wraps = true},
                                                           {.stream_gap = 1},
                                                           {.stream_gap = 40},
                                                           {.stream_gap = never},
                                                           {.wraps = true, .stream_gap = 10},
                                                           {.wraps = true, .stream_gap = never},
                                                           {true, true, true, 15}}) {
      CAPTURE(d.alignment);
      CAPTURE(d.fixed);
      CAPTURE(d.wraps);
      CAPTURE(d.stream_gap);
      for (int i = 0; i < 10; ++i) check(demanding(any_problem(random, 1 + random() % 200), random, d));
    }
  }

  SUBCASE("instants may be far apart, and late") {
    plan::problem p = any_problem(random, 100);
    for (plan::buffer& b : p.buffers) {
      b.lower = b.lower * 1'000'000'007 + (1ull << 60);
      b.upper = b.upper * 1'000'000'007 + (1ull << 60);
    }
    check(p);
  }

  SUBCASE("the same problem gives the same solution") {
    plan::problem const p = demanding(any_problem(random, 300), random, {true, true, true, 5});
    plan::solution const s = packer.pack(p);
    CHECK(s.offsets == packer.pack(p).offsets);
    CHECK(s.offsets == P{}.pack(p).offsets);
  }

  SUBCASE("what all lives at one instant is packed without a hole") {
    plan::problem p = any_problem(random, 200);
    bytes all = 0;
    for (plan::buffer& b : p.buffers) {
      b.lower %= 200;
      b.upper = 200 + 1 + random() % 200;
      all += b.size;
    }
    CHECK(check(p) == all);
  }

  SUBCASE("what never meets shares its bytes") {
    plan::problem p;
    bytes largest = 0;
    for (plan::instant i = 0; i < 100; ++i) {
      p.buffers.push_back({i, i + 1, 512 * (1 + random() % 100), 1, 0, {}});
      largest = std::max(largest, p.buffers.back().size);
    }
    CHECK(check(p) == largest);
  }
}

}  // namespace gmlake::test
