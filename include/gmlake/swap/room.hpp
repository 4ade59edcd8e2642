#pragma once
/// How much of a limit is free at each operation of a step, counted on over its end: ranges of operations take and give
/// room, and the first can be found from which on there is enough. Less than none may be free.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "gmlake/core/types.hpp"

namespace gmlake::swap {

class room {
 public:
  /// `limit` less each operation's load.
  room(std::vector<bytes> const& loads, bytes limit)
      : n_(static_cast<std::uint32_t>(loads.size())),
        leaves_(std::bit_ceil(std::max<std::uint32_t>(n_, 1))),
        least_(2 * leaves_),
        added_(2 * leaves_) {
    for (std::uint32_t i = 0; i < n_; ++i) {
      least_[leaves_ + i] = static_cast<std::int64_t>(limit) - static_cast<std::int64_t>(loads[i]);
    }
    for (std::uint32_t k = leaves_; k-- > 1;) least_[k] = std::min(least_[2 * k], least_[2 * k + 1]);
  }

  /// For the operations from `first` up to but without `last`, which is at most a step later; either may lie in the
  /// next step. O(log n).
  void give(std::uint32_t first, std::uint32_t last, bytes size) { add(first, last, static_cast<std::int64_t>(size)); }
  void take(std::uint32_t first, std::uint32_t last, bytes size) { add(first, last, -static_cast<std::int64_t>(size)); }

  /// The first operation from `first` on from which to `last` there is room for `size`; `last` where even the one
  /// before it has none. O(log² n).
  [[nodiscard]] std::uint32_t first_with(std::uint32_t first, std::uint32_t last, bytes size) const {
    std::uint32_t low = first, high = last;
    while (low < high) {
      std::uint32_t const middle = low + (high - low) / 2;
      if (least(middle, last) >= static_cast<std::int64_t>(size)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /// The least over a range that is not empty. O(log n).
  [[nodiscard]] std::int64_t least(std::uint32_t first, std::uint32_t last) const {
    if (first >= n_) return least(first - n_, last - n_);
    if (last <= n_) return least_in(1, 0, leaves_, first, last);
    return std::min(least_in(1, 0, leaves_, first, n_), least_in(1, 0, leaves_, 0, last - n_));
  }

 private:
  static constexpr std::int64_t most = std::int64_t{1} << 62;

  void add(std::uint32_t first, std::uint32_t last, std::int64_t size) {
    if (first >= last) return;
    if (first >= n_) return add(first - n_, last - n_, size);
    add_in(1, 0, leaves_, first, std::min(last, n_), size);
    if (last > n_) add_in(1, 0, leaves_, 0, last - n_, size);
  }

  void add_in(std::uint32_t k, std::uint32_t low, std::uint32_t high, std::uint32_t first, std::uint32_t last,
              std::int64_t size) {
    if (last <= low || high <= first) return;
    if (first <= low && high <= last) {
      least_[k] += size;
      added_[k] += size;
      return;
    }
    std::uint32_t const middle = (low + high) / 2;
    add_in(2 * k, low, middle, first, last, size);
    add_in(2 * k + 1, middle, high, first, last, size);
    least_[k] = added_[k] + std::min(least_[2 * k], least_[2 * k + 1]);
  }

  [[nodiscard]] std::int64_t least_in(std::uint32_t k, std::uint32_t low, std::uint32_t high, std::uint32_t first,
                                      std::uint32_t last) const {
    if (last <= low || high <= first) return most;
    if (first <= low && high <= last) return least_[k];
    std::uint32_t const middle = (low + high) / 2;
    return added_[k] +
           std::min(least_in(2 * k, low, middle, first, last), least_in(2 * k + 1, middle, high, first, last));
  }

  std::uint32_t n_, leaves_;
  std::vector<std::int64_t> least_, added_;
};

}  // namespace gmlake::swap
