#pragma once
/// Watches a program's requests and says when a step has come that is worth a plan: it repeats, and is likely to go on
/// repeating. Pure: it neither plans nor places.
///
/// A step is believed to come again when it has come twice on end; in a program whose steps keep changing, when it has
/// come more often. Without marks it must make up a good part of what is known, too, since small loops within a larger
/// step repeat as well.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "gmlake/plan/period_finder.hpp"
#include "gmlake/plan/plan.hpp"
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
    std::optional<found_step> const found = finder_.next(log_);
    if (!found || !likely(*found)) return std::nullopt;
    auto const refused = std::ranges::find(refused_, found->fingerprint, &refusal::fingerprint);
    if (refused != refused_.end() && alike_ < refused->needed) return std::nullopt;
    // What lives on into the next step has been freed by now if it was born in the step before, which was the same.
    std::uint64_t const length = found->last - found->first;
    std::uint64_t const first = follows_itself(*found) ? found->first - length : found->first;
    if (log_.first() == 0 && first > 0) keep_prologue(first);
    return plan{.requests = log_.step(first, first + length), .period = log_.period(first, first + length)};
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

  /// Begins anew where some requests were not logged. `live`: bytes that may still be freed, or more.
  void restart(bytes live) noexcept {
    log_.clear(live);
    finder_.clear();
    if (marked_) finder_.mark_step();
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

  [[nodiscard]] bool follows_itself(found_step const& s) const noexcept {
    std::uint64_t const length = s.last - s.first;
    return s.first - log_.first() >= length && log_.fingerprint(s.first - length, s.first) == s.fingerprint;
  }

  [[nodiscard]] bool likely(found_step const& s) noexcept {
    alike_ = s.again ? std::max<std::uint64_t>(alike_ + 1, 2) : 1;
    changes_ = static_cast<std::uint8_t>(changes_ << 1 | (alike_ == 1 ? 1 : 0));
    if (alike_ < (std::popcount(changes_) <= most_changes ? 2u : often_enough)) return false;
    if (last_update_ != 0) return last_update_ > s.first;
    if (expects_updates_ && !marked_) return alike_ >= repeated_often;
    return marked_ || alike_ >= repeated_often ||
           (s.last - s.first) * alike_ >= (log_.end() - log_.first()) / least_share;
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
  bool marked_ = false;
  bool expects_updates_ = false;
  std::uint64_t last_update_ = 0;     ///< requests logged by then + 1; 0: never
  std::uint64_t alike_ = 0;           ///< steps on end that were as the last
  std::uint8_t changes_ = 0;          ///< of the last steps, a bit each: whether it differed from the one before
  std::array<refusal, 8> refused_{};  ///< the youngest last
  plan prologue_;
};

}  // namespace gmlake::plan
