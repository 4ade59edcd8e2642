#pragma once
/// What problems mean, said as plainly as can be: whether a solution is valid, in O(n²), and the least height, by
/// trying everything. And random problems for it.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "gmlake/plan/problem.hpp"

namespace gmlake::test {

inline plan::buffer alive(plan::instant lower, plan::instant upper, bytes size, std::uint32_t stream = 0) {
  plan::buffer b;
  b.lower = lower;
  b.upper = upper;
  b.size = size;
  b.stream = stream;
  return b;
}

/// Whether two buffers may not share a byte, by walking instant by instant.
inline bool conflict(plan::problem const& p, plan::buffer const& a, plan::buffer const& b) {
  plan::instant const gap = a.stream == b.stream ? 0 : p.stream_gap;
  if (p.period == 0) {
    auto const within = [gap](plan::buffer const& first, plan::buffer const& then) {
      return then.lower < first.upper || then.lower - first.upper < gap;
    };
    return a.lower <= b.lower ? within(a, b) : within(b, a);
  }
  // b must begin a gap after a has ended, whichever repetition of it comes next; and the other way round.
  auto const meets = [&](plan::buffer const& first, plan::buffer const& then) {
    plan::instant const distance = (then.lower + p.period - first.lower) % p.period;
    plan::instant const length = first.upper - first.lower;
    return distance < length || distance - length < gap;
  };
  return meets(a, b) || meets(b, a);
}

inline bool naively_valid(plan::problem const& p, plan::solution const& s) {
  bytes highest = 0;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    plan::buffer const& a = p.buffers[i];
    if (s.offsets[i] % a.alignment != 0 || (a.fixed && *a.fixed != s.offsets[i])) return false;
    highest = std::max(highest, s.offsets[i] + a.size);
    for (std::size_t j = 0; j < i; ++j) {
      plan::buffer const& b = p.buffers[j];
      bool const share = s.offsets[i] < s.offsets[j] + b.size && s.offsets[j] < s.offsets[i] + a.size;
      if (share && conflict(p, a, b)) return false;
    }
  }
  return s.height == highest;
}

/// The least height up to `most`: every buffer at every offset. Exponential.
inline std::optional<bytes> naive_optimum(plan::problem const& p, bytes most) {
  std::size_t const n = p.buffers.size();
  std::vector<bytes> at(n);
  auto const place = [&](auto const& self, std::size_t i, bytes capacity) -> bool {
    if (i == n) return true;
    plan::buffer const& a = p.buffers[i];
    for (bytes o = 0; o + a.size <= capacity; o += a.alignment) {
      if (a.fixed && *a.fixed != o) continue;
      at[i] = o;
      bool free = true;
      for (std::size_t j = 0; j < i && free; ++j) {
        bool const share = o < at[j] + p.buffers[j].size && at[j] < o + a.size;
        free = !share || !conflict(p, a, p.buffers[j]);
      }
      if (free && self(self, i + 1, capacity)) return true;
    }
    return false;
  };
  for (bytes capacity = 0; capacity <= most; ++capacity) {
    if (place(place, 0, capacity)) return capacity;
  }
  return std::nullopt;
}

struct problem_kind {
  std::size_t most_buffers = 7;
  plan::instant end = 12;
  bytes largest = 5;
  bool aligned = false;
  bool fixed = false;
  bool repeats = false;
  plan::instant gap = 0;
};

inline plan::problem random_problem(std::mt19937_64& random, problem_kind const& k) {
  auto const below = [&](std::uint64_t n) { return random() % n; };
  plan::problem p;
  p.stream_gap = k.gap;
  if (k.repeats) p.period = k.end;
  std::size_t const n = 1 + below(k.most_buffers);
  for (std::size_t i = 0; i < n; ++i) {
    plan::buffer b;
    b.lower = below(k.end);
    b.upper = b.lower + 1 + below(k.repeats ? k.end : k.end - b.lower);
    if (below(2) == 0) b.upper = std::min(b.upper, b.lower + 3);
    b.size = 1 + below(k.largest);
    if (k.aligned) b.alignment = bytes{1} << below(3);
    if (k.fixed && below(4) == 0) b.fixed = b.alignment * below(4);
    if (k.gap != 0) b.stream = static_cast<std::uint32_t>(below(3));
    p.buffers.push_back(b);
  }
  return p;
}

/// All kinds of problems that there are, small.
inline std::vector<problem_kind> all_kinds() {
  return {{},
          {.aligned = true},
          {.fixed = true},
          {.gap = 1},
          {.gap = 3},
          {.gap = plan::problem::never},
          {.repeats = true},
          {.repeats = true, .gap = 2},
          {.aligned = true, .fixed = true, .repeats = true, .gap = 1},
          {.repeats = true, .gap = plan::problem::never},
          {.aligned = true, .fixed = true, .gap = 2}};
}

}  // namespace gmlake::test
