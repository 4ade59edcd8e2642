#pragma once
/// Holds a step's plan that was made anew against the one before it, or another way of carrying it out, by how long
/// steps take: what is expected of a plan says little of what its chunks and the host make of it. Each is tried for
/// some steps, the first of which settle what the change has upset.

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "gmlake/swap/pager_options.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/step_plan.hpp"

namespace gmlake::swap {

class plan_trial {
 public:
  /// How steps go.
  struct way {
    std::shared_ptr<step_plan const> plan;
    bool waits = false;      ///< for what is mapped (`foresight::waits`)
    forecast expected = {};  ///< of the plan, by the times that were known when it was left
  };
  /// So much of what steps take by one way those by another may take: as much, as they differ by so much anyway; less.
  static constexpr double alike = 1.01, shorter = 0.99;
  /// Where they take more, no further look is worth it.
  static constexpr double hopeless = 1.05;

  /// Steps go another way than `old` from now on, which is gone back to where they take more than `most` of what they
  /// took then; or the one before that, by what was asked of `old` too, where too few steps went by `old` to tell.
  /// `looks`: how often it may turn out so, as mappings may take long to settle.
  void begin(way old, double most = alike, std::size_t looks = 1) noexcept {
    bool const known = settled() && !before_;
    most_ = known ? most : std::min(most_, most);
    looks_ = known ? looks : std::max(looks_, looks);
    taken_ = 0;
    if (!known) return;
    before_took_ = typical();
    before_ = std::move(old);
  }
  /// The same, where those before are of no use any more.
  void begin() noexcept {
    before_.reset();
    taken_ = 0;
  }

  /// A step has taken so long. The way to go back to; nothing: this one stays.
  [[nodiscard]] std::optional<way> step_took(time t) noexcept {
    last_[taken_++ % looked_at] = t;
    if (!before_ || !settled() || (taken_ - settling) % looked_at != 0) return {};
    auto const now = static_cast<double>(typical().count()), before_took = static_cast<double>(before_took_.count());
    bool const stays = now <= most_ * before_took;
    if (!stays && --looks_ > 0 && now <= hopeless * before_took) return {};
    std::optional<way> before = std::exchange(before_, std::nullopt);
    if (stays) return {};
    taken_ = 0;
    return before;
  }

  /// The way that may have to be gone back to; null: this one stays.
  [[nodiscard]] way const* before() const noexcept { return before_ ? &*before_ : nullptr; }
  /// What steps take that have gone this way for long; nothing before that, and while it may have to be gone back from.
  [[nodiscard]] time took() const noexcept { return taken_ >= long_since && !before_ ? typical() : time::zero(); }

 private:
  static constexpr std::size_t settling = 6, looked_at = 8, long_since = 20;

  [[nodiscard]] bool settled() const noexcept { return taken_ >= settling + looked_at; }
  /// Of the last steps the third shortest: others take longer as they are timed operator by operator, or as the host
  /// does something else.
  [[nodiscard]] time typical() const noexcept {
    std::array<time, looked_at> all = last_;
    std::ranges::sort(all);
    return all[2];
  }

  std::optional<way> before_;
  time before_took_{};
  double most_ = alike;
  std::size_t looks_ = 1;
  std::array<time, looked_at> last_{};
  std::size_t taken_ = 0;  ///< steps this way
};

}  // namespace gmlake::swap
