#pragma once
/// The largest chunks first, so that a stitch needs few handles, which are what it costs; the remainder from the end
/// or the beginning of a partly used chunk where one suffices, so that no whole chunk is broken for it.

#include <algorithm>

#include "gmlake/stitch/stitch_policy.hpp"

namespace gmlake {

struct largest_first_options {
  bytes smallest = 2_MiB;  ///< smaller blocks are never stitched
};

class largest_first {
 public:
  explicit largest_first(largest_first_options o = {}) noexcept : options_(o) {}

  [[nodiscard]] bool stitches(bytes n, bool) const noexcept { return n >= options_.smallest; }
  [[nodiscard]] bool reuses(bytes, bytes) const noexcept { return true; }

  [[nodiscard]] stitch_choice choose(stitch_candidates from, bytes n, std::span<extent> out) const noexcept {
    std::ranges::sort(from.whole, [](extent const& a, extent const& b) {
      return a.size != b.size ? a.size > b.size : a.begin() < b.begin();
    });
    // Whole chunks down to the first that is more than enough: from there on one handle does.
    std::size_t taken = 0;
    bytes missing = n;
    while (taken < from.whole.size() && missing > 0 && from.whole[taken].size <= missing) {
      missing -= from.whole[taken++].size;
    }
    remainder const rest = fill(from, taken, missing);
    if (rest.shortfall > 0) return {0, rest.shortfall};
    std::size_t count = 0;
    if (rest.first.size > 0) out[count++] = rest.first;
    auto const whole = from.whole.first(taken);
    std::ranges::sort(whole, {}, &extent::begin);
    count += static_cast<std::size_t>(std::ranges::copy(whole, out.begin() + static_cast<std::ptrdiff_t>(count)).out -
                                      (out.begin() + static_cast<std::ptrdiff_t>(count)));
    if (rest.last.size > 0) out[count++] = rest.last;
    return {count, 0};
  }

 private:
  struct remainder {
    extent first;
    extent last;
    bytes shortfall = 0;
  };

  /// Where the last `missing` bytes come from: the tightest part of a chunk, else a tail and a head together, else the
  /// smallest chunk that suffices among those left.
  [[nodiscard]] static remainder fill(stitch_candidates from, std::size_t taken, bytes missing) noexcept {
    remainder r;
    if (missing == 0) return r;
    extent const* const tail = tightest(from.tails, missing);
    extent const* const head = tightest(from.heads, missing);
    if (tail != nullptr && (head == nullptr || tail->size <= head->size)) {
      r.first = {tail->of, tail->offset + tail->size - missing, missing};
      return r;
    }
    if (head != nullptr) {
      r.last = {head->of, head->offset, missing};
      return r;
    }
    extent const* const longest = largest(from.tails);
    bytes const by_tail = longest != nullptr ? longest->size : 0;
    if (longest != nullptr) {
      if (extent const* const second = tightest(from.heads, missing - by_tail)) {
        r.first = *longest;
        r.last = {second->of, second->offset, missing - by_tail};
        return r;
      }
    }
    if (extent const* const broken = tightest(from.whole.subspan(taken), missing)) {
      r.last = {broken->of, 0, missing};
      return r;
    }
    extent const* const head_left = largest(from.heads);
    r.shortfall = missing - by_tail - (head_left != nullptr ? head_left->size : 0);
    return r;
  }

  [[nodiscard]] static extent const* tightest(std::span<extent const> among, bytes n) noexcept {
    extent const* best = nullptr;
    for (extent const& e : among) {
      if (e.size >= n && (best == nullptr || e.size < best->size)) best = &e;
    }
    return best;
  }
  [[nodiscard]] static extent const* largest(std::span<extent const> among) noexcept {
    auto const most = std::ranges::max_element(among, {}, &extent::size);
    return most == among.end() ? nullptr : &*most;
  }

  largest_first_options options_;
};
static_assert(StitchPolicy<largest_first>);

}  // namespace gmlake
