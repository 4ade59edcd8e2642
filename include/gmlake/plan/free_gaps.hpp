#pragma once
/// The free bytes below a moving top, as gaps found by size: what an allocator that sees one instant at a time knows.
/// Neighbouring gaps are joined, so that none touches another. Knows nothing of lifetimes.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gmlake/core/alignment.hpp"

namespace gmlake::plan {

class free_gaps {
 public:
  /// All from `base` on is free.
  explicit free_gaps(bytes base = 0) : top_(base) {}

  /// Free bytes end here; all beyond has never been taken.
  [[nodiscard]] bytes top() const noexcept { return top_; }

  /// Takes the smallest gap's lower or upper end; grows the top where no gap suffices. O(log gaps).
  [[nodiscard]] bytes take(bytes size, bytes alignment, bool upper_end) {
    auto fits = by_size_.lower_bound({size, 0});
    if (alignment > 1) {
      for (int tries = 0; fits != by_size_.end() && !suits(*fits, size, alignment); ++fits) {
        if (++tries == most_misaligned) {
          fits = by_size_.lower_bound({size + alignment - 1, 0});
          break;
        }
      }
    }
    if (fits == by_size_.end()) return grow(size, alignment);
    auto const [room, begin] = *fits;
    bytes const at = upper_end ? align_down(begin + room - size, alignment) : align_up(begin, alignment);
    take_at(at, size);
    return at;
  }

  /// Takes what a gap, or what lies beyond the top, has at [at, at + size). Bytes there that are taken stay so.
  void wall(bytes at, bytes size) {
    if (at + size > top_) {
      if (at > top_) give_back(top_, at - top_);
      top_ = at + size;
    }
    for (auto gap = first_after(at); gap != by_offset_.end() && gap->first < at + size; gap = first_after(at)) {
      auto const [begin, end] = *gap;
      erase(gap);
      if (begin < at) insert(begin, at);
      if (end > at + size) insert(at + size, end);
    }
  }

  void give_back(bytes at, bytes size) {
    bytes begin = at;
    bytes end = at + size;
    auto next = by_offset_.lower_bound(at);
    if (next != by_offset_.end() && next->first == end) {
      end = next->second;
      next = erase(next);
    }
    if (next != by_offset_.begin()) {
      auto const before = std::prev(next);
      if (before->second == begin) {
        begin = before->first;
        erase(before);
      }
    }
    insert(begin, end);
  }

 private:
  static constexpr int most_misaligned = 8;  // gaps tried before one is taken that is large enough however it lies
  using offsets = std::map<bytes, bytes>;    // begin → end

  [[nodiscard]] static bool suits(std::pair<bytes, bytes> const& gap, bytes size, bytes alignment) noexcept {
    return align_up(gap.second, alignment) - gap.second + size <= gap.first;
  }

  /// The first gap that ends after that offset.
  [[nodiscard]] offsets::iterator first_after(bytes offset) {
    auto gap = by_offset_.upper_bound(offset);
    if (gap != by_offset_.begin() && std::prev(gap)->second > offset) --gap;
    return gap;
  }

  [[nodiscard]] bytes grow(bytes size, bytes alignment) {
    bytes begin = top_;
    if (!by_offset_.empty() && by_offset_.rbegin()->second == top_) {
      begin = by_offset_.rbegin()->first;
      erase(std::prev(by_offset_.end()));
    }
    bytes const at = align_up(begin, alignment);
    if (at > begin) insert(begin, at);
    top_ = std::max(top_, at + size);
    if (at + size < top_) insert(at + size, top_);
    return at;
  }

  void take_at(bytes at, bytes size) {
    auto const gap = std::prev(by_offset_.upper_bound(at));
    auto const [begin, end] = *gap;
    erase(gap);
    if (begin < at) insert(begin, at);
    if (at + size < end) insert(at + size, end);
  }

  void insert(bytes begin, bytes end) {
    by_offset_.emplace(begin, end);
    by_size_.emplace(end - begin, begin);
  }
  offsets::iterator erase(offsets::iterator gap) {
    by_size_.erase({gap->second - gap->first, gap->first});
    return by_offset_.erase(gap);
  }

  offsets by_offset_;
  std::set<std::pair<bytes, bytes>> by_size_;  // size, begin
  bytes top_;
};

}  // namespace gmlake::plan
