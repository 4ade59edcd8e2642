#pragma once
/// The absences that hold at one operation, at their place in time relative to it: those over the step's end began a
/// step before, or end a step after.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

struct covering {
  std::uint32_t absence = 0;  ///< its position in `setting::absences`
  std::int64_t after = 0;     ///< less than the operation; negative in the step before
  std::int64_t before = 0;    ///< greater than the operation; beyond the step's size in the step after
  bytes size = 0;
  bool has_copy = false;
  bool comes_back = true;
};

/// Those at operation `i`. O(absences).
[[nodiscard]] inline std::vector<covering> covering_at(setting const& at, std::uint32_t i) {
  std::vector<covering> all;
  for (std::uint32_t k = 0; k < at.absences().size(); ++k) {
    absence const& a = at.absences()[k];
    bool const now = a.after < i && i < a.before;
    bool const since_last_step = i + at.size() < a.before;
    if (!now && !since_last_step) continue;
    std::int64_t const shift = now ? 0 : at.size();
    variable const& v = at.program().variables[a.variable];
    all.push_back({k, a.after - shift, a.before - shift, v.size, v.has_copy, at.comes_back(a)});
  }
  return all;
}

/// Bytes that may be away at each operation, transfers aside. O(operations + absences).
[[nodiscard]] inline std::vector<bytes> movable_of(setting const& at) {
  std::uint32_t const n = at.size();
  std::vector<bytes> sums(n + 1);
  auto const add = [&](std::uint32_t from, std::uint32_t to, bytes size) {
    sums[from] += size;
    sums[to] -= size;  // wraps below zero, and back in the sum
  };
  for (absence const& a : at.absences()) {
    bytes const size = at.size_of(a);
    if (a.before <= n) {
      add(a.after + 1, a.before, size);
    } else {
      add(a.after + 1, n, size);
      add(0, a.before - n, size);
    }
  }
  bytes sum = 0;
  for (bytes& s : sums) s = sum += s;
  sums.pop_back();
  return sums;
}

/// The lowest limit that any schedule may meet, whatever time it takes: what can't be away. O(operations + absences).
[[nodiscard]] inline bytes least_limit(setting const& at) {
  std::vector<bytes> const movable = movable_of(at);
  bytes least = 0;
  for (std::uint32_t i = 0; i < at.size(); ++i) least = std::max(least, at.loads()[i] - movable[i]);
  return least;
}

}  // namespace gmlake::swap
