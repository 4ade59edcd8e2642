#pragma once
/// The extreme of a series of values from any point up to its end: the smallest (std::less) or greatest (std::greater).
/// Keeps only what can still be one, in order. Must not be asked from a point before the last `forget`.
///
///     series    5 2 7 3 4 6        smallest from the third on: 3
///     kept        2   3 4 6

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace gmlake::plan {

template <class Before>
class suffix_extremes {
 public:
  struct entry {
    std::uint64_t point;
    std::uint64_t value;
  };

  /// Continues the series. O(1) amortised. Throws only `std::bad_alloc`, and has not changed then.
  void push(std::uint64_t point, std::uint64_t value) {
    if (kept_.size() == kept_.capacity()) kept_.reserve(std::max<std::size_t>(64, 2 * kept_.size()));
    while (kept_.size() > gone_ && !Before{}(kept_.back().value, value)) kept_.pop_back();
    kept_.push_back({point, value});
  }

  /// The extreme among [point, end); null if nothing is there. O(log n).
  [[nodiscard]] entry const* over(std::uint64_t point) const noexcept {
    auto const from = kept_.begin() + static_cast<std::ptrdiff_t>(gone_);
    auto const found = std::ranges::lower_bound(from, kept_.end(), point, {}, &entry::point);
    return found == kept_.end() ? nullptr : &*found;
  }

  /// The last value that comes before the very last one; null if none does. O(1).
  [[nodiscard]] entry const* before_last() const noexcept {
    return kept_.size() < gone_ + 2 ? nullptr : &kept_[kept_.size() - 2];
  }

  /// Points before this one are not asked from any more. O(1) amortised.
  void forget(std::uint64_t before) noexcept {
    while (gone_ + 1 < kept_.size() && kept_[gone_].point < before) ++gone_;
    if (gone_ <= kept_.size() / 2) return;
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(gone_));
    gone_ = 0;
  }

  void clear() noexcept {
    kept_.clear();
    gone_ = 0;
  }

 private:
  std::vector<entry> kept_;
  std::size_t gone_ = 0;  ///< so many at the front are forgotten, not yet erased
};

}  // namespace gmlake::plan
