#pragma once
/// What a plan sends away may stay mapped, which spares driver calls, once it is proven that nobody touches it without
/// saying so, who would find other data then: some steps have gone by the plan while it was unmapped, and whoever had
/// touched it would have failed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <tuple>
#include <vector>

#include "gmlake/swap/step_plan.hpp"

namespace gmlake::swap {

/// Of one plan's moves.
class plan_proof {
 public:
  static constexpr std::uint32_t steps_unmapped = 2;

  /// A step has gone by the plan, what is not proven being unmapped.
  void step_done() noexcept { ++steps_; }
  /// How many have.
  [[nodiscard]] std::uint32_t steps() const noexcept { return steps_; }

  /// Whether it is proven of the plan's move out of that number.
  [[nodiscard]] bool holds(std::size_t out) const noexcept {
    return steps_ >= steps_unmapped || (!before_.empty() && before_[out]);
  }

  /// What it proves of another plan for the same steps: where that sends the same block away between the same accesses.
  /// Nothing where memory is short. O(n log n).
  [[nodiscard]] plan_proof of_another(step_plan const& plan, step_plan const& another) const noexcept {
    plan_proof made;
    try {
      auto const gap = [](planned_out const& o) { return std::tuple(o.variable, o.after, o.before); };
      std::vector<decltype(gap(planned_out{}))> proven;
      for (std::size_t i = 0; i < plan.moves().outs.size(); ++i) {
        if (holds(i)) proven.push_back(gap(plan.moves().outs[i]));
      }
      if (proven.empty()) return made;
      std::ranges::sort(proven);
      made.before_.reserve(another.moves().outs.size());
      for (planned_out const& o : another.moves().outs) {
        bool const same_block = another.who(o.variable) == plan.who(o.variable);
        made.before_.push_back(same_block && std::ranges::binary_search(proven, gap(o)));
      }
      return made;
    } catch (std::bad_alloc const&) {
      return {};
    }
  }

 private:
  std::uint32_t steps_ = 0;
  std::vector<bool> before_;  ///< by number of its moves out: proven by a plan before it; empty: none is
};

}  // namespace gmlake::swap
