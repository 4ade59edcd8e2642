#pragma once
/// Free memory that a movable stitch may take, the best first: put in order only as far as somebody looks.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "gmlake/lake/extent.hpp"

namespace gmlake {

/// What a candidate has before others; less is better.
struct extent_rank {
  static constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t free_from = 0;  ///< 0: it is free now; 1: its user has left by now; later: it will have
  bool wanted = false;          ///< before who takes it now is gone
  std::uint64_t when = 0;       ///< the sooner the better: after that; the later the better: before
  std::size_t place = 0;

  [[nodiscard]] friend bool operator<(extent_rank const& a, extent_rank const& b) noexcept {
    return std::tie(a.free_from, a.wanted, a.when, a.place) < std::tie(b.free_from, b.wanted, b.when, b.place);
  }
};

class ranked_extents {
 public:
  void clear() noexcept {
    all_.clear();
    unordered_ = 0;
  }
  /// Of those alike, who is added first comes first. Throws `std::bad_alloc`.
  void add(extent const& e, extent_rank rank) {
    rank.place = all_.size();
    all_.push_back({rank, e});
  }
  /// All have been added.
  void begin() noexcept {
    unordered_ = all_.size();
    std::make_heap(all_.begin(), all_.end(), later);
  }

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  /// The best one, which is none of them any more. Precondition: not empty.
  [[nodiscard]] extent take_first() noexcept {
    if (unordered_ == all_.size()) order_one();
    extent const first = all_.back().of;
    all_.pop_back();
    return first;
  }
  /// From when on the best one that suits is free; `extent_rank::any` where there is none.
  template <std::predicate<extent const&> Suits>
  [[nodiscard]] std::uint64_t free_from(Suits const& suits) noexcept {
    for (std::size_t i = all_.size(); i > 0; --i) {
      if (i == unordered_) order_one();
      if (suits(all_[i - 1].of)) return all_[i - 1].rank.free_from;
    }
    return extent_rank::any;
  }
  /// The best one that suits, of those that are free from `latest` on; then it is none of them any more. Null where
  /// there is none.
  template <std::predicate<extent const&> Suits>
  [[nodiscard]] chunk* take(Suits const& suits, std::uint64_t latest = extent_rank::any) noexcept {
    for (std::size_t i = all_.size(); i > 0; --i) {
      if (i == unordered_) order_one();
      auto const& [rank, e] = all_[i - 1];
      if (rank.free_from > latest) return nullptr;
      if (!suits(e)) continue;
      chunk* const found = e.of;
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      return found;
    }
    return nullptr;
  }

 private:
  struct ranked {
    extent_rank rank;
    extent of;
  };
  static constexpr auto later = [](ranked const& a, ranked const& b) noexcept { return b.rank < a.rank; };

  void order_one() noexcept {
    std::pop_heap(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(unordered_), later);
    --unordered_;
  }

  std::vector<ranked> all_;  ///< a heap, and from `unordered_` on those in order, the best one last
  std::size_t unordered_ = 0;
};

}  // namespace gmlake
