#pragma once
/// Whether two stretches of a log are the same step but for a few requests: some that only one of them has, or that
/// differ in size. A greedy comparison: it may take two stretches for different that a better one would match, never
/// the other way round. Looks at sizes and streams, not at lifetimes.

#include <algorithm>
#include <cstdint>

#include "gmlake/plan/step_log.hpp"

namespace gmlake::plan {

/// Requests [first, last) of a log.
struct stretch {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return last - first; }
};

class step_difference {
 public:
  step_difference(step_log const& log, stretch a, stretch b) noexcept : log_(&log), a_(a), b_(b) {}

  /// Whether at most so many requests differ: both are remembered. O(length), and less the sooner they part.
  [[nodiscard]] bool at_most(std::uint64_t allowed) noexcept {
    for (; a_.first != a_.last && b_.first != b_.last; ++a_.first, ++b_.first) {
      if (same(a_.first, b_.first)) continue;
      std::uint64_t const skipped = skip();
      if (skipped == 0 || skipped > allowed) return false;
      allowed -= skipped;
    }
    return std::max(a_.size(), b_.size()) <= allowed;
  }

 private:
  static constexpr std::uint64_t window = 12;  // requests that differ in one place, in both together
  static constexpr std::uint64_t in_step = 3;  // requests in a row by which the two are together again

  [[nodiscard]] bool same(std::uint64_t a, std::uint64_t b) const noexcept {
    logged_request const& x = (*log_)[a];
    logged_request const& y = (*log_)[b];
    return x.size == y.size && x.stream == y.stream;
  }

  /// Goes on to the nearest place where both continue alike, which is no end. Returns what that leaves out; 0: none.
  [[nodiscard]] std::uint64_t skip() noexcept {
    for (std::uint64_t both = 1; both <= window; ++both) {
      for (std::uint64_t in_a = 0; in_a <= both; ++in_a) {
        if (!together(a_.first + in_a, b_.first + both - in_a)) continue;
        a_.first += in_a;
        b_.first += both - in_a;
        return std::max(in_a, both - in_a);
      }
    }
    return 0;
  }
  [[nodiscard]] bool together(std::uint64_t a, std::uint64_t b) const noexcept {
    if (a >= a_.last || b >= b_.last) return false;
    std::uint64_t const most = std::min({in_step, a_.last - a, b_.last - b});
    for (std::uint64_t k = 0; k < most; ++k) {
      if (!same(a + k, b + k)) return false;
    }
    return true;
  }

  step_log const* log_;
  stretch a_;  ///< what is left of them
  stretch b_;
};

}  // namespace gmlake::plan
