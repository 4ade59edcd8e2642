#pragma once
/// Finds where a program's steps begin, in the log of its requests and without marks. Where a step ends, three things
/// come together: live bytes are as low as at the end of the one before and never lower in between; they have risen far
/// above that meanwhile; and the last few requests (the point's gram) are the same. What follows needn't be, so that
/// steps may vary in shape.
///
/// Smaller steps inside larger ones (accumulated gradients) are found first, and given up once the larger ones have
/// come twice. It must not look at more than a few points for a request; out of host memory it stops.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "gmlake/plan/gram_table.hpp"
#include "gmlake/plan/step_difference.hpp"
#include "gmlake/plan/step_log.hpp"
#include "gmlake/plan/suffix_extremes.hpp"

namespace gmlake::plan {

/// The requests [first, last) of the log. `first` is where the step before ended, or close by if this one's end was
/// told by other requests than usual.
struct found_step {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t fingerprint = 0;
  bool again = false;  ///< as the step right before, or nearly
};

class period_finder {
 public:
  /// Whether a step ends here, before the request to come. To be asked before each request is logged, always of the
  /// same log; asked again, since the request failed, it answers no. O(1) amortised, about 5 ns an event of the log.
  [[nodiscard]] std::optional<found_step> next(step_log const& log) noexcept {
    if (stopped_ || log.stopped()) return std::nullopt;
    try {
      bool const new_point = follow(log);
      if (marks_) return std::exchange(marked_, false) ? at_mark(log) : std::nullopt;
      if (!new_point || !may_end(log)) return std::nullopt;
      return look_back(log);
    } catch (std::bad_alloc const&) {
      stopped_ = true;
      return std::nullopt;
    }
  }

  /// Says that a step begins with the next request. Once used, marks are all that counts.
  void mark_step() noexcept { marks_ = marked_ = true; }

  /// Forgets all but that marks count. To be called when the log is cleared.
  void clear() noexcept {
    bool const marks = marks_;
    *this = period_finder{};
    marks_ = marks;
  }

  /// Whether host memory ran out.
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  static constexpr std::uint64_t gram_length = 4;        // requests: longer ones more often hold one whose size varies
  static constexpr std::uint64_t shortest_step = 32;     // requests
  static constexpr std::uint64_t shortest_low = 32;      // requests that a low must be the lowest of
  static constexpr bytes level_share = 256;              // of an excursion: by so little may the ends of steps differ
  static constexpr bytes excursion_share = 8;            // of the greatest lately: smaller ones are loops within a step
  static constexpr std::uint64_t survey_interval = 256;  // requests
  static constexpr std::uint64_t survey_window = 65'536;   // requests: "lately"; longer than most steps
  static constexpr std::uint64_t lasting_share = 8;        // of all requests lately: less are a loop's in passing
  static constexpr std::uint64_t lasting_window = 32'768;  // requests
  static constexpr std::uint64_t difference_share = 50;    // of a step's requests: so few may differ

  [[nodiscard]] static constexpr bytes apart(bytes a, bytes b) noexcept { return a < b ? b - a : a - b; }

  /// Steps one behind the other, not followed yet.
  struct row {
    log_point first;           ///< where the first begins
    std::uint64_t last = 0;    ///< the request before which the last ends
    std::uint64_t length = 0;  ///< requests of the youngest that began it; 0: there is none
  };

  /// Takes note of live bytes here, and of the peak since the last call. False: here we have been.
  bool follow(step_log const& log) {
    std::uint64_t const here = log.end();
    bool const new_point = here != here_;
    if (new_point && here != log.first()) highs_.push(here - 1, live_before_ + log[here - 1].size);
    lows_.push(here, log.live());
    live_before_ = log.live();
    here_ = here;
    if (new_point && here % survey_interval == 0) survey(log);
    return new_point;
  }

  /// Measures what counts as an excursion: the fall from the highest point lately, so that growth alone doesn't.
  void survey(step_log const& log) {
    highs_.forget(log.first());
    lows_.forget(log.first());
    auto const highest = highs_.over(log.end() - std::min(log.end(), survey_window));
    bytes const fall = highest == nullptr ? 0 : highest->value - lows_.over(highest->point + 1)->value;
    lately_ = std::max(fall, lately_ - lately_ / survey_interval);
  }

  /// Whether live bytes are low here: cheap, and true for few points.
  [[nodiscard]] bool may_end(step_log const& log) const noexcept {
    if (log.end() - log.first() < gram_length) return false;
    if (period_ != 0 && log.live() <= end_.live + level_slack_ && end_.live <= log.live() + level_slack_) return true;
    auto const lower = lows_.before_last();
    return lower == nullptr || log.end() - lower->point >= shortest_low;
  }

  /// Compares a low point with the one before that it resembles.
  [[nodiscard]] std::optional<found_step> look_back(step_log const& log) {
    log_point const here{log.end(), log.last_fingerprint<gram_length>(), log.live()};
    bytes const slack = lately_ / level_share;
    log_point* const known = table_.find(here, slack);
    log_point const before = known == nullptr ? log_point{} : *known;
    bytes const excursion = known == nullptr ? 0 : excursion_since(log, before, here);
    // A loop's points stay where its first one was: so the next step's first one is a whole period later.
    if (known == nullptr) table_.add(here);
    else if (before.number < log.first() || far(excursion)) *known = here;
    if (end_.gram == here.gram) {
      bytes const since_end = excursion_since(log, end_, here);
      if (ends_step(log, end_, here, since_end)) return end_step(log, end_, here, since_end);
    }
    if (ends_step(log, before, here, excursion)) return end_step(log, before, here, excursion);
    return std::nullopt;
  }

  /// How far above here live bytes were since an earlier point; 0 where there is none that is remembered.
  [[nodiscard]] bytes excursion_since(step_log const& log, log_point const& before,
                                      log_point const& here) const noexcept {
    if (before.number == log_point::none || before.number < log.first()) return 0;
    bytes const high = highs_.over(before.number)->value;
    return high > here.live ? high - here.live : 0;
  }
  [[nodiscard]] bool far(bytes excursion) const noexcept { return excursion > lately_ / excursion_share; }
  /// Whether live bytes were as high at the earlier point as here, and never lower in between.
  [[nodiscard]] bool level(log_point const& before, log_point const& here, bytes slack) const noexcept {
    return apart(before.live, here.live) <= slack && lows_.over(before.number)->value + slack >= here.live;
  }

  /// Whether the two points are a step apart, of the size of steps that is being followed or is to be from now on.
  [[nodiscard]] bool ends_step(step_log const& log, log_point const& before, log_point const& here,
                               bytes excursion) noexcept {
    if (!far(excursion)) return false;
    std::uint64_t const length = here.number - before.number;
    bytes const slack = excursion / level_share;
    if (length < shortest_step || !level(before, here, slack)) return false;
    if (period_ != 0 && here.number - end_.number > 2 * period_) period_ = 0;  // what was followed has ended
    if (period_ != 0) {
      if (before.number == end_.number) return true;
      if (before.number > end_.number) return length >= period_ - period_ / 4;  // the same, from another point on
      // Another point of the same steps is at their level. What is larger, and no multiple, ends lower.
      if (here.live + slack >= end_.live) return false;
    }
    return continues(log, before, here, slack) && is_lasting(log, here);
  }

  /// Adds a step to those of its size and level that may be followed; or, where these don't recur or are small ones
  /// inside it, begins anew with it.
  [[nodiscard]] bool continues(step_log const& log, log_point const& before, log_point const& here,
                               bytes slack) noexcept {
    std::uint64_t const length = here.number - before.number;
    row& r = row_;
    if (r.length != 0 && before.number >= r.last && alike(length, r.length) &&
        apart(r.first.live, here.live) <= slack) {
      r.last = here.number;
      return true;
    }
    bool const over = r.length == 0 || here.number - r.last > 2 * r.length;
    if (!over && (length <= r.length + r.length / 2 || here.live > r.first.live)) return false;
    r = {before, here.number, length};
    if (!follows_itself(log, {before.number, here.number}, log.fingerprint(before.number, here.number))) return false;
    r.first.number -= length;  // its like came before it, unnoticed
    return lows_.over(r.first.number)->value + slack >= here.live;
  }
  [[nodiscard]] static bool alike(std::uint64_t a, std::uint64_t b) noexcept {
    return a >= b - b / 4 && a <= b + b / 2;
  }
  /// Whether the steps in a row are more than a loop that comes in passing.
  [[nodiscard]] bool is_lasting(step_log const& log, log_point const& here) const noexcept {
    std::uint64_t const lately = std::min(here.number - log.first(), lasting_window);
    return here.number - row_.first.number >= lately / lasting_share;
  }

  [[nodiscard]] found_step end_step(step_log const& log, log_point before, log_point const& here,
                                    bytes excursion) noexcept {
    end_ = here;
    period_ = here.number - before.number;
    level_slack_ = excursion / level_share;
    row_ = {};
    return found(log, {before.number, here.number});
  }

  [[nodiscard]] std::optional<found_step> at_mark(step_log const& log) noexcept {
    std::uint64_t const before = std::exchange(end_.number, log.end());
    if (before == log_point::none || before < log.first() || before == log.end()) return std::nullopt;
    return found(log, {before, log.end()});
  }

  [[nodiscard]] found_step found(step_log const& log, stretch step) noexcept {
    std::uint64_t const fingerprint = log.fingerprint(step.first, step.last);
    bool const again = follows_itself(log, step, fingerprint) || nearly_previous(log, step);
    previous_ = step;
    return {step.first, step.last, fingerprint, again};
  }

  /// Whether the requests before the step are the same, though nobody knew then that they were one.
  [[nodiscard]] static bool follows_itself(step_log const& log, stretch step, std::uint64_t fingerprint) noexcept {
    return step.first - log.first() >= step.size() &&
           log.fingerprint(step.first - step.size(), step.first) == fingerprint;
  }
  [[nodiscard]] bool nearly_previous(step_log const& log, stretch step) const noexcept {
    if (previous_.size() == 0 || previous_.first < log.first() || previous_.last != step.first) return false;
    return step_difference(log, previous_, step).at_most(step.size() / difference_share);
  }

  suffix_extremes<std::less<>> lows_;      ///< live bytes before each request
  suffix_extremes<std::greater<>> highs_;  ///< and with it
  std::uint64_t here_ = log_point::none;   ///< at the last call
  bytes live_before_ = 0;                  ///< there
  bytes lately_ = 0;                       ///< the greatest excursion lately
  gram_table table_;

  log_point end_;             ///< of the last step
  std::uint64_t period_ = 0;  ///< its requests; 0: none is being followed
  bytes level_slack_ = 0;     ///< by so much ends differ in live bytes
  row row_;                   ///< what may be followed next

  stretch previous_;  ///< the last step
  bool marks_ = false;
  bool marked_ = false;
  bool stopped_ = false;
};

}  // namespace gmlake::plan
