#pragma once
/// A lane's time over a step that repeats: what is reserved in one step is in all. Reservations never overlap.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

class timetable {
 public:
  /// `period` is the step's time, more than zero.
  explicit timetable(time period) : period_(period) {}

  /// The earliest beginning from `from` on of a stretch as long as `length` that is free, if it ends by `by`. Both may
  /// lie in any step. O(log n) and the reservations passed over.
  [[nodiscard]] std::optional<time> earliest(time from, time length, time by) const {
    if (length == time::zero()) return from <= by ? std::optional(from) : std::nullopt;
    if (length > period_) return std::nullopt;
    time base = step_of(from);  // of the step that `next` lies in
    auto next = std::ranges::upper_bound(busy_, from - base, {}, &stretch::end);
    for (time begin = from; begin + length <= by;) {
      if (busy_.empty()) return begin;
      if (next == busy_.end()) {
        next = busy_.begin();
        base += period_;
      }
      if (begin + length <= base + next->begin) return begin;
      begin = std::max(begin, base + next->end);
      if (begin - from > period_) return std::nullopt;
      ++next;
    }
    return std::nullopt;
  }

  /// Precondition: the stretch is free. O(n).
  void reserve(time begin, time length) {
    if (length == time::zero()) return;
    begin -= step_of(begin);
    time const end = begin + length;
    add(begin, std::min(end, period_));
    if (end > period_) add(time::zero(), end - period_);
  }

 private:
  struct stretch {
    time begin, end;
  };

  [[nodiscard]] time step_of(time t) const noexcept {
    time const rest = t % period_;
    return t - (rest < time::zero() ? rest + period_ : rest);
  }

  /// Joins its neighbours.
  void add(time begin, time end) {
    auto const at = std::ranges::lower_bound(busy_, begin, {}, &stretch::begin);
    bool const joins_left = at != busy_.begin() && (at - 1)->end == begin;
    bool const joins_right = at != busy_.end() && at->begin == end;
    if (joins_left && joins_right) {
      (at - 1)->end = at->end;
      busy_.erase(at);
    } else if (joins_left) {
      (at - 1)->end = end;
    } else if (joins_right) {
      at->begin = begin;
    } else {
      busy_.insert(at, {begin, end});
    }
  }

  time period_;
  std::vector<stretch> busy_;  // within the first step, in order, apart
};

}  // namespace gmlake::swap
