#pragma once
/// In which order the returns of a plan begin: as the plan has them, but where several may, the caller's choice.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

namespace gmlake::swap {

class return_order {
 public:
  /// Of so many, as the plan has them. For want of memory they stay so.
  void begin(std::size_t returns) noexcept {
    order_.clear();
    keys_.clear();
    try {
      keys_.reserve(returns);
      order_.resize(returns);
      std::iota(order_.begin(), order_.end(), 0U);
    } catch (std::bad_alloc const&) {
    }
  }

  /// The plan's number of the k-th.
  [[nodiscard]] std::uint32_t operator[](std::size_t k) const noexcept {
    return k < order_.size() ? order_[k] : static_cast<std::uint32_t>(k);
  }

  /// From the first up to but without the last, by `key(number)`; those alike as they are. O(n log n).
  template <std::invocable<std::uint32_t> Key>
  void sort(std::size_t first, std::size_t last, Key key) noexcept {
    if (last > order_.size() || last - first < 2) return;
    keys_.clear();
    for (std::size_t k = first; k < last; ++k) keys_.push_back({key(order_[k]), k, order_[k]});
    std::ranges::sort(keys_, {}, [](keyed const& k) { return std::pair(k.key, k.place); });
    for (std::size_t k = first; k < last; ++k) order_[k] = keys_[k - first].number;
  }

 private:
  struct keyed {
    std::uint64_t key;
    std::size_t place;
    std::uint32_t number;
  };

  std::vector<std::uint32_t> order_;
  std::vector<keyed> keys_;
};

}  // namespace gmlake::swap
