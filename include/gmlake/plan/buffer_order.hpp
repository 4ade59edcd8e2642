#pragma once
/// The orders in which packers place buffers. Ties fall by size, the larger first, then by index, so that an order is
/// a function of the problem alone. Fixed buffers are in none: they are placed before all.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gmlake/plan/lifespans.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// Indices of buffers, the first to be placed first.
using buffer_order = std::vector<std::uint32_t>;

enum class priority : std::uint8_t {
  size,            ///< larger first
  lifetime_class,  ///< by powers of 4 of the lifetime; within one the earlier first
  lifetime,        ///< longer first
  area,            ///< larger size × lifetime first
  size_class,      ///< by powers of 2 of the size; within one the longer first
  size_area,       ///< larger size² × lifetime first
  birth,           ///< earlier first
  death,           ///< later first: birth in reverse time
};
/// The one that is most often the best, then by how many they meet: those that place long lives early cost less.
inline constexpr std::array priorities = {
    priority::size,       priority::lifetime_class, priority::lifetime, priority::area,
    priority::size_class, priority::size_area,      priority::birth,    priority::death,
};

[[nodiscard]] constexpr std::string_view name_of(priority by) noexcept {
  constexpr std::array<std::string_view, priorities.size()> names = {
      "size", "lifetime_class", "lifetime", "area", "size_class", "size_area", "birth", "death"};
  return names[static_cast<std::size_t>(by)];
}

/// O(n log n).
[[nodiscard]] inline buffer_order ordered(problem const& p, lifespans const& lives, priority by) {
  struct ranked {
    unsigned rank;  ///< by what comes before the key
    double key;     ///< exact below 2^53; beyond it values tie, which does no harm
    bytes size;
    std::uint32_t index;
  };
  auto const rank = [&](std::size_t i) -> unsigned {
    if (by == priority::size_class) return static_cast<unsigned>(std::bit_width(p.buffers[i].size));
    if (by == priority::lifetime_class) return static_cast<unsigned>(std::bit_width(lives.length(i))) / 2;
    return 0;
  };
  auto const key = [&](std::size_t i) {
    buffer const& b = p.buffers[i];
    auto const size = static_cast<double>(b.size);
    auto const lifetime = static_cast<double>(lives.length(i));
    switch (by) {
      case priority::size: return size;
      case priority::size_class:
      case priority::lifetime: return lifetime;
      case priority::area: return size * lifetime;
      case priority::size_area: return size * size * lifetime;
      case priority::lifetime_class:
      case priority::birth: return -static_cast<double>(b.lower);
      case priority::death: return static_cast<double>(b.upper);
    }
    return size;
  };
  std::vector<ranked> all;
  all.reserve(p.buffers.size());
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    if (!p.buffers[i].fixed) all.push_back({rank(i), key(i), p.buffers[i].size, static_cast<std::uint32_t>(i)});
  }
  std::ranges::sort(all, [](ranked const& a, ranked const& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    if (a.key != b.key) return a.key > b.key;
    return a.size != b.size ? a.size > b.size : a.index < b.index;
  });
  buffer_order indices;
  indices.reserve(all.size());
  for (ranked const& r : all) indices.push_back(r.index);
  return indices;
}

}  // namespace gmlake::plan
