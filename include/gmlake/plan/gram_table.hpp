#pragma once
/// Where the last few requests before a point were the same, and about as much was live: a small table of points, by
/// their grams and levels. Bounded: where it is full, the eldest point gives way. It must not judge points.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "gmlake/core/types.hpp"

namespace gmlake::plan {

/// A point between two requests.
struct log_point {
  static constexpr std::uint64_t none = static_cast<std::uint64_t>(-1);

  std::uint64_t number = none;  ///< of the request to come
  std::uint64_t gram = 0;       ///< the fingerprint of the last few before it
  bytes live = 0;
};

class gram_table {
 public:
  /// The known point with p's gram whose live bytes are nearest to p's, within `slack`; null if there is none. It may
  /// be replaced by one as near. O(1), but for slacks that differ much from earlier ones. Throws only `std::bad_alloc`.
  [[nodiscard]] log_point* find(log_point const& p, bytes slack) {
    fit(slack);
    bytes const low = level(p.live - std::min(p.live, slack));
    bytes const high = level(p.live + slack);
    log_point* best = nullptr;
    nearest(p, slack, low, best);
    if (high != low) nearest(p, slack, high, best);
    return best;
  }

  /// Adds a point. O(1). Precondition: `find` was called.
  void add(log_point const& p) noexcept {
    points& in = set(p.gram, level(p.live));
    *std::ranges::min_element(in, {}, [](log_point const& l) { return l.number + 1; }) = p;  // none + 1 is 0
  }

  [[nodiscard]] static constexpr bytes apart(log_point const& a, log_point const& b) noexcept {
    return a.live < b.live ? b.live - a.live : a.live - b.live;
  }

 private:
  static constexpr unsigned set_bits = 12;
  static constexpr std::size_t set_count = std::size_t{1} << set_bits;
  static constexpr unsigned spare_bits = 2;  // levels are so much wider than they need be, to begin with
  using points = std::array<log_point, 4>;

  /// Makes levels wider than two slacks, so that what is near a point lies on one level or two.
  void fit(bytes slack) {
    unsigned const needed = static_cast<unsigned>(std::bit_width(slack)) + 1;
    if (!sets_.empty() && needed <= level_bits_ && level_bits_ <= needed + 2 * spare_bits) return;
    std::vector<points> old(set_count);
    old.swap(sets_);
    level_bits_ = needed + spare_bits;
    for (points const& in : old) {
      for (log_point const& known : in) {
        if (known.number != log_point::none) add(known);
      }
    }
  }

  [[nodiscard]] bytes level(bytes live) const noexcept { return level_bits_ < 64 ? live >> level_bits_ : 0; }
  [[nodiscard]] points& set(std::uint64_t gram, bytes at_level) noexcept {
    constexpr std::uint64_t odd = 0xbf58476d1ce4e5b9;  // not the one that fingerprints are made with
    return sets_[(gram + at_level * odd) >> (64 - set_bits)];
  }
  void nearest(log_point const& p, bytes slack, bytes at_level, log_point*& best) noexcept {
    for (log_point& known : set(p.gram, at_level)) {
      if (known.number == log_point::none || known.gram != p.gram || apart(known, p) > slack) continue;
      if (best == nullptr || apart(known, p) < apart(*best, p)) best = &known;
    }
  }

  std::vector<points> sets_;  ///< 400 KB
  unsigned level_bits_ = 0;   ///< points on one level agree in their live bytes but for so many low bits
};

}  // namespace gmlake::plan
