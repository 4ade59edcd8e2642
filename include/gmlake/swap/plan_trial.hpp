#pragma once
/// Holds a step's plan that was made anew against the one before it, by how long steps take: what is expected of a plan
/// says little of what its chunks and the host make of it. A plan is tried for some steps, the first of which settle
/// what the change of plans has upset.

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "gmlake/swap/program.hpp"
#include "gmlake/swap/step_plan.hpp"

namespace gmlake::swap {

class plan_trial {
 public:
  using plan = std::shared_ptr<step_plan const>;

  /// Another plan is in force from now on, in the place of `old`, which is gone back to should it do better; or the one
  /// before that, where too few steps went by `old` to tell.
  void begin(plan old) noexcept {
    if (std::exchange(taken_, 0) < settling + looked_at) return;
    before_ = std::move(old);
    before_took_ = typical();
  }
  /// The same, where those before are of no use any more.
  void begin() noexcept {
    before_ = nullptr;
    taken_ = 0;
  }

  /// A step by the plan in force has taken so long. The plan to go back to; null: this one stays.
  [[nodiscard]] plan step_took(time t) noexcept {
    last_[taken_++ % looked_at] = t;
    if (before_ == nullptr || taken_ < settling + looked_at) return nullptr;
    plan before = std::exchange(before_, nullptr);
    if (static_cast<double>(typical().count()) <= better * static_cast<double>(before_took_.count())) return nullptr;
    taken_ = 0;
    return before;
  }

 private:
  static constexpr std::size_t settling = 6, looked_at = 4;
  static constexpr double better = 1.01;  ///< steps by one plan differ as much

  /// Of the last steps the second shortest: now and then one is timed operator by operator, and takes longer for it.
  [[nodiscard]] time typical() const noexcept {
    std::array<time, looked_at> all = last_;
    std::ranges::sort(all);
    return all[1];
  }

  plan before_;
  time before_took_{};
  std::array<time, looked_at> last_{};
  std::size_t taken_ = 0;  ///< steps by the plan in force
};

}  // namespace gmlake::swap
