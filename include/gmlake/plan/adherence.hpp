#pragma once
/// How well a program's steps keep to the plan that is followed: whether one has departed too far, whether they depart
/// so regularly that another plan would fit them better, and for how many steps on end it has held.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gmlake/plan/plan.hpp"

namespace gmlake::plan {

class adherence {
 public:
  /// A plan that was followed for so many steps on end is trusted.
  static constexpr int trusted_after = 32;

  /// A plan is taken up, after so many requests have been placed in all.
  void begin(std::uint64_t placed) noexcept {
    steps_ = 0;
    departed_ = 0;
    misses_ = misses_before_ = 0;
    placed_before_ = placed;
  }
  /// Another one comes in its place, for a step that goes on.
  void change() noexcept { departed_ = 0; }
  /// The plan is as good as any that was followed for long.
  void trust() noexcept { steps_ = trusted_after; }

  /// A request of the step departs from the plan.
  void miss() noexcept { ++misses_; }
  /// A request is as planned, but the plan has no place for it.
  void lack_place() noexcept { ++placeless_; }

  /// The step is over, and so many requests have been placed in all. Whether it kept to the plan by and large.
  bool end_step(plan const& p, std::uint64_t placed) noexcept {
    std::uint64_t const here = placed - std::exchange(placed_before_, placed);
    bool const kept = few_departed * misses_ <= here && here > 0;
    if (!kept) departed_ += most_departed / few_departed;
    else if (misses_ == 0) departed_ = 0;
    else departed_ = misses_ == misses_before_ ? departed_ + 1 : 0;
    misses_before_ = std::exchange(misses_, 0);
    count_placeless(p, kept);
    if (kept) ++steps_;
    return kept;
  }

  /// Whether the step under way has departed.
  [[nodiscard]] bool missed() const noexcept { return misses_ != 0; }
  /// Too often for one of so many requests, or for the first `passed` of them: then it is another step.
  [[nodiscard]] bool lost(std::size_t requests, std::size_t passed) const noexcept {
    return misses_ > std::max<std::uint64_t>(tolerated, std::min(requests / tolerated_share, passed / early_share));
  }
  /// The program goes on regularly, but otherwise than planned.
  [[nodiscard]] bool departs() const noexcept { return departed_ >= most_departed; }
  /// Steps that kept to the plan since it was taken up.
  [[nodiscard]] int steps() const noexcept { return steps_; }

 private:
  /// A step may depart in so many requests, or one in `tolerated_share` of them, but not in one of `early_share` so
  /// far, before its plan is given up.
  static constexpr std::uint64_t tolerated = 16;
  static constexpr std::size_t tolerated_share = 16;
  static constexpr std::size_t early_share = 4;
  /// Steps on end that depart in the same number of requests: they are regular, and another plan would fit them better.
  static constexpr int most_departed = 32;
  /// So many suffice where less is placed than not.
  static constexpr int few_departed = 4;
  /// Of a step's requests, the share without a place that is more than the blocks which live on.
  static constexpr std::uint64_t placeless_share = 50;

  /// Lifetimes may have been learnt from a step of the usual sizes that kept some blocks for once: then another plan
  /// places more. It is made anew for that, at longer and longer intervals, as they may be blocks that live on.
  void count_placeless(plan const& p, bool kept) noexcept {
    bool const many = std::exchange(placeless_, 0) * placeless_share > p.requests.size();
    placeless_steps_ = kept && many ? placeless_steps_ + 1 : 0;
    if (placeless_steps_ < few_departed) return;
    std::uint64_t const shape = contents(p.requests);
    if (shape == remade_ && placeless_steps_ < remade_after_) return;
    remade_after_ = shape == remade_ ? few_departed * remade_after_ : few_departed * few_departed;
    remade_ = shape;
    placeless_steps_ = 0;
    departed_ = most_departed;
  }

  std::uint64_t misses_ = 0;         ///< requests of the step that departed
  std::uint64_t misses_before_ = 0;  ///< in the step before
  std::uint64_t placed_before_ = 0;  ///< requests placed when the step began
  int departed_ = 0;                 ///< steps on end, see `most_departed`
  int steps_ = 0;
  std::uint64_t placeless_ = 0;  ///< requests of the step that the plan has no place for
  int placeless_steps_ = 0;      ///< on end, with many of these
  std::uint64_t remade_ = 0;     ///< the contents of the last plan made anew because of them
  int remade_after_ = 0;         ///< the next time after so many steps
};

}  // namespace gmlake::plan
