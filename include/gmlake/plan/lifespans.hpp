#pragma once
/// When the buffers of a problem live, in a form that is quick to compare: instants become ranks among the instants
/// that occur, wrapped lifetimes become two spans, and the gap between streams a second, wider pair of spans.
///
///     period     0 ........................ 12      lower 9, upper 15, stream_gap 1
///     own        [=====)            [=======)       against buffers of its stream
///     wide       [=======)        [=========)       against those of others
///
/// Two buffers conflict if the one's spans (own where both have one stream, else wide) meet the other's own. Immutable.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// Ranks [lower, upper). Empty, and meeting nothing, where they are equal.
struct span {
  std::uint32_t lower = 0;
  std::uint32_t upper = 0;

  [[nodiscard]] constexpr bool empty() const noexcept { return lower >= upper; }
  [[nodiscard]] constexpr bool meets(span o) const noexcept { return lower < o.upper && o.lower < upper; }
};

class lifespans {
 public:
  /// One or two spans; where only one, the second is empty.
  using spans = std::array<span, 2>;

  /// O(n log n). A problem has fewer than 2^31 buffers.
  explicit lifespans(problem const& p) : own_(p.buffers.size()) {
    instants_.reserve(2 * p.buffers.size() + 2);
    for (buffer const& b : p.buffers) {
      for (instants const& i : pieces(p.period, b.lower, b.upper, 0)) {
        if (i.lower != i.upper) instants_.insert(instants_.end(), {i.lower, i.upper});
      }
    }
    std::ranges::sort(instants_);
    instants_.erase(std::unique(instants_.begin(), instants_.end()), instants_.end());
    for (std::size_t i = 0; i < own_.size(); ++i) own_[i] = ranked(p, p.buffers[i], 0);
    if (!apart(p)) return;
    wide_.resize(own_.size());
    for (std::size_t i = 0; i < wide_.size(); ++i) wide_[i] = ranked(p, p.buffers[i], p.stream_gap);
  }

  [[nodiscard]] std::size_t size() const noexcept { return own_.size(); }
  /// All ranks are at most this.
  [[nodiscard]] std::uint32_t end() const noexcept {
    return instants_.empty() ? 0 : static_cast<std::uint32_t>(instants_.size() - 1);
  }
  [[nodiscard]] spans const& own(std::size_t i) const noexcept { return own_[i]; }
  [[nodiscard]] spans const& wide(std::size_t i) const noexcept { return wide_.empty() ? own_[i] : wide_[i]; }
  /// Whether streams make a difference.
  [[nodiscard]] bool streams_matter() const noexcept { return !wide_.empty(); }

  [[nodiscard]] static bool meet(spans const& a, spans const& b) noexcept {
    return a[0].meets(b[0]) || a[0].meets(b[1]) || a[1].meets(b[0]) || a[1].meets(b[1]);
  }

  /// The ranks that a buffer lives, in all.
  [[nodiscard]] std::uint64_t length(std::size_t i) const noexcept {
    return std::uint64_t{own_[i][0].upper} - own_[i][0].lower + own_[i][1].upper - own_[i][1].lower;
  }

 private:
  struct instants {
    instant lower = 0;
    instant upper = 0;
  };

  [[nodiscard]] static bool apart(problem const& p) {
    if (p.stream_gap == 0) return false;
    return std::ranges::any_of(p.buffers, [&](buffer const& b) { return b.stream != p.buffers.front().stream; });
  }

  [[nodiscard]] static std::array<instants, 2> pieces(instant period, instant lower, instant upper, instant gap) {
    if (period == 0) {
      instant const end = upper > problem::never - gap ? problem::never : upper + gap;
      return {instants{lower > gap ? lower - gap : 0, end}, {}};
    }
    if (gap >= period || upper - lower + 2 * gap >= period) return {instants{0, period}, {}};
    instant const begin = (lower % period + period - gap) % period;
    instant const end = begin + (upper - lower) + 2 * gap;
    if (end <= period) return {instants{begin, end}, {}};
    return {instants{begin, period}, {0, end - period}};
  }

  [[nodiscard]] spans ranked(problem const& p, buffer const& b, instant gap) const {
    spans all;
    auto const two = pieces(p.period, b.lower, b.upper, gap);
    for (std::size_t k = 0; k < 2; ++k) {
      if (two[k].lower == two[k].upper) continue;
      // Down for the beginning and up for the end: what meets stays what meets, though a wide span's ends are no
      // instants that occur.
      auto const above = std::ranges::upper_bound(instants_, two[k].lower);
      auto const from = above == instants_.begin() ? above : std::prev(above);
      auto const to = std::ranges::lower_bound(instants_, two[k].upper);
      all[k] = {rank(from), std::min(rank(to), end())};
    }
    return all;
  }
  [[nodiscard]] std::uint32_t rank(std::vector<instant>::const_iterator i) const noexcept {
    return static_cast<std::uint32_t>(i - instants_.begin());
  }

  std::vector<instant> instants_;
  std::vector<spans> own_;
  std::vector<spans> wide_;  ///< none where streams don't matter
};

}  // namespace gmlake::plan
