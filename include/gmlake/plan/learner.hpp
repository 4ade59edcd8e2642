#pragma once
/// Watches a program's requests and says when a step has come that is worth a plan: it repeats, and is likely to go on
/// repeating. Pure: it neither plans nor places.
///
/// A step is believed to come again when it has come twice on end; in a program whose steps keep changing, when it has
/// come more often, or when all that it does is to choose among a few. Without marks it must make up a good part of
/// what is known, too, since small loops within a larger step repeat as well: such parts are put together where they
/// are seen to make up a step, or where updates tell.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/plan/laps.hpp"
#include "gmlake/plan/period_finder.hpp"
#include "gmlake/plan/plan.hpp"
#include "gmlake/plan/step_history.hpp"
#include "gmlake/plan/step_log.hpp"

namespace gmlake::plan {

class learner {
 public:
  /// Logs a request; its number is for `freed`. O(1) amortised, as all here but a step worth a plan, which is linear.
  std::uint64_t allocated(bytes n, std::uint32_t stream) noexcept { return log_.allocated(n, stream); }
  void freed(std::uint64_t number, bytes n) noexcept { log_.freed(number, n); }

  /// A step begins with the next request. Once told, no other signs count.
  void mark_step() noexcept {
    finder_.mark_step();
    marked_ = true;
  }
  /// Updates will be noted, if this is a program that makes any: until the first one, only what has come often is worth
  /// a plan.
  void expect_updates() noexcept { expects_updates_ = true; }
  /// Something was done that a program does once a step, such as an optimizer's update. From the first time on, what
  /// repeats without it is no step but a loop within one.
  void note_update() noexcept { last_update_ = log_.end() + 1; }
  [[nodiscard]] bool marked() const noexcept { return marked_; }

  /// Requests logged so far, also before a restart.
  [[nodiscard]] std::uint64_t count() const noexcept { return log_.end(); }

  /// To be asked before each request is logged: the step that ends here, not placed yet, if it is worth a plan. Throws
  /// `std::bad_alloc`.
  [[nodiscard]] std::optional<plan> next() {
    std::optional<found_step> found = finder_.next(log_);
    if (found) found = whole(*found);
    if (!found || !likely(*found)) return std::nullopt;
    auto const refused = std::ranges::find(refused_, found->fingerprint, &refusal::fingerprint);
    if (refused != refused_.end() && std::max<std::uint64_t>(alike_, steps_.occurrences()) < refused->needed) {
      return std::nullopt;
    }
    std::uint64_t const alike = alike_before(*found);
    std::uint64_t const first = found->first - alike * (found->last - found->first);
    if (log_.first() == 0 && first > 0) keep_prologue(first);
    plan step{.requests = log_.step(found->first, found->last), .period = log_.period(found->first, found->last)};
    if (alike > 0) live_as_long_as_alike(*found, alike, step);
    else live_as_long_as_before(*found, step);
    // What a loop within a step carries along is no business of the loop's.
    bool const is_whole = marked_ || last_update_ != 0 || alike_ >= repeated_often;
    // What lives still may be carried along for some steps: those to come will tell.
    bool const carries = std::ranges::any_of(
        step.requests, [](step_request const& r) { return r.death == step_request::stays && r.size >= least_carried; });
    if (is_whole && carries && steps_.occurrences(log_.first()) < most_laps) return std::nullopt;
    return in_laps(std::move(step), is_whole ? most_laps : 1);
  }

  /// What the program did before its steps, not placed; without requests where that is not known.
  [[nodiscard]] plan const& prologue() const noexcept { return prologue_; }

  /// A plan of that shape came to nothing: it must come often on end before there is another, and more often each time
  /// that this is said.
  void refuse(std::uint64_t fingerprint) noexcept {
    auto known = std::ranges::find(refused_, fingerprint, &refusal::fingerprint);
    std::uint64_t const needed = known == refused_.end() ? repeated_often : std::min(4 * known->needed, most_needed);
    if (known == refused_.end()) known = refused_.begin();
    std::rotate(known, known + 1, refused_.end());
    refused_.back() = {fingerprint, needed};
  }

  /// Begins anew where some requests were not logged. `live`: bytes that may still be freed, or more. `at_mark`: a
  /// marked step begins with the next one; else, of marked steps, what is left of this one is none.
  void restart(bytes live, bool at_mark) noexcept {
    log_.clear(live);
    finder_.clear();
    part_of_.reset();
    if (marked_ && at_mark) finder_.mark_step();
  }

 private:
  struct refusal {
    std::uint64_t fingerprint = 0;
    std::uint64_t needed = 0;  ///< so many on end
  };
  /// Steps that make up this share of all that is known, or have come so often, are no loops within a step.
  static constexpr std::uint64_t least_share = 4;
  static constexpr std::uint64_t repeated_often = 24;
  static constexpr std::uint64_t most_needed = 4096;
  /// A program whose last eight steps differed from the ones before more often than that is believed to repeat itself
  /// only after so many alike.
  static constexpr int most_changes = 2;
  static constexpr std::uint64_t often_enough = 4;
  /// A program chooses among few shapes if so many of so many steps had come before.
  static constexpr std::size_t recent_steps = 16;
  static constexpr std::size_t most_recurrent = 12;

  [[nodiscard]] bool follows_itself(found_step const& s) const noexcept {
    std::uint64_t const length = s.last - s.first;
    return s.first - log_.first() >= length && log_.fingerprint(s.first - length, s.first) == s.fingerprint;
  }

  /// The step that ends with `s`: that, or what it is the last part of. None where it is another part.
  [[nodiscard]] std::optional<found_step> whole(found_step const& s) noexcept {
    if (!marked_ && last_update_ != 0) {
      bool const goes_on = part_of_ && part_of_->last == s.first;
      std::uint64_t const first = goes_on ? part_of_->first : s.first;
      bool const ends = last_update_ > s.first + 1;  // where it began, the one before had it
      part_of_ = ends ? std::nullopt : std::optional(found_step{first, s.last, 0, false});
      if (!ends) return std::nullopt;
      found_step all = s;
      if (first != s.first) all = {first, s.last, log_.fingerprint(first, s.last), false};
      all.again = all.again || follows_itself(all);
      steps_.push(all);
      return all;
    }
    steps_.push(s);
    std::size_t const parts = marked_ ? 0 : steps_.parts();
    if (parts == 0) return s;
    std::uint64_t const first = steps_.at(parts - 1).first;
    return found_step{first, s.last, log_.fingerprint(first, s.last), true};
  }

  /// How many steps right before it were the same, as far as is worth knowing.
  [[nodiscard]] std::uint64_t alike_before(found_step const& s) const noexcept {
    std::uint64_t const length = s.last - s.first;
    std::uint64_t n = 0;
    for (std::uint64_t first = s.first; n + 1 < most_laps && first - log_.first() >= length; ++n, first -= length) {
      if (log_.fingerprint(first - length, first) != s.fingerprint) break;
    }
    return n;
  }

  /// What lives on into later steps dies in the plan as it did of the steps right before, `alike` of them.
  void live_as_long_as_alike(found_step const& s, std::uint64_t alike, plan& step) const noexcept {
    std::uint64_t const length = s.last - s.first;
    for (std::size_t i = 0; i < length; ++i) {
      step_request& r = step.requests[i];
      for (std::uint64_t back = 1; r.death == step_request::stays && back <= alike; ++back) {
        instant const life = log_.life(s.first - back * length + i);
        // The first steps may be shorter: this one is over, and it lives.
        if (life != step_request::stays) r.death = std::max(r.birth + life, step.period);
      }
    }
  }
  /// The same by the last step of that shape, others having come between.
  void live_as_long_as_before(found_step const& s, plan& step) const {
    if (steps_.at(0).first != s.first) return;
    std::optional<found_step> const e = steps_.earlier(log_.first());
    if (!e) return;
    std::vector<step_request> const earlier = log_.step(e->first, e->first + (s.last - s.first));
    for (std::size_t i = 0; i < earlier.size(); ++i) {
      step_request& r = step.requests[i];
      if (r.death != step_request::stays || earlier[i].death == step_request::stays) continue;
      r.death = r.birth + (earlier[i].death - earlier[i].birth);
    }
  }

  [[nodiscard]] bool likely(found_step const& s) noexcept {
    alike_ = s.again ? std::max<std::uint64_t>(alike_ + 1, 2) : 1;
    changes_ = static_cast<std::uint8_t>(changes_ << 1 | (alike_ == 1 ? 1 : 0));
    bool const regular = alike_ >= (std::popcount(changes_) <= most_changes ? 2u : often_enough);
    if (!regular && !chosen_among_few()) return false;
    if (last_update_ != 0) return last_update_ > s.first;
    if (expects_updates_ && !marked_) return alike_ >= repeated_often;
    return marked_ || alike_ >= repeated_often ||
           (s.last - s.first) * alike_ >= (log_.end() - log_.first()) / least_share;
  }

  /// Whether the last steps were of shapes that had come before, this one often enough. Only marks and updates tell
  /// that they are steps.
  [[nodiscard]] bool chosen_among_few() const noexcept {
    return (marked_ || last_update_ != 0) && steps_.occurrences() >= often_enough - 1 &&
           steps_.recurrences(recent_steps) >= most_recurrent;
  }

  void keep_prologue(std::uint64_t end) {
    plan p{.requests = log_.step(0, end), .period = log_.period(0, end), .repeats = false};
    for (step_request& r : p.requests) {
      if (r.death >= p.period) r.death = step_request::stays;
    }
    prologue_ = std::move(p);
  }

  step_log log_;
  period_finder finder_;
  step_history steps_;
  std::optional<found_step> part_of_;  ///< what has passed of a step since its last update
  bool marked_ = false;
  bool expects_updates_ = false;
  std::uint64_t last_update_ = 0;     ///< requests logged by then + 1; 0: never
  std::uint64_t alike_ = 0;           ///< steps on end that were as the last
  std::uint8_t changes_ = 0;          ///< of the last steps, a bit each: whether it differed from the one before
  std::array<refusal, 8> refused_{};  ///< the youngest last
  plan prologue_;
};

}  // namespace gmlake::plan
