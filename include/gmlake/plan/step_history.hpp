#pragma once
/// The last steps that were found, to tell what recurs: shapes that come again though not on end (length buckets,
/// evaluation between epochs), and steps that are parts of a larger one (accumulated gradients). A step's shape is its
/// fingerprint.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gmlake/plan/period_finder.hpp"

namespace gmlake::plan {

class step_history {
 public:
  /// So many steps are remembered.
  static constexpr std::size_t most = 64;

  void push(found_step const& s) noexcept { steps_[count_++ % most] = s; }

  /// How often the last step's shape came among those remembered, from request `first_known` on.
  [[nodiscard]] std::size_t occurrences(std::uint64_t first_known = 0) const noexcept {
    std::size_t n = 0;
    for (std::size_t back = 0; back < size() && at(back).first >= first_known; ++back) {
      n += at(back).fingerprint == at(0).fingerprint ? 1 : 0;
    }
    return n;
  }
  /// Of the last `window` steps, or fewer where there are not so many, those whose shape had come before.
  [[nodiscard]] std::size_t recurrences(std::size_t window) const noexcept {
    std::size_t n = 0;
    for (std::size_t back = 0; back < std::min(window, size()); ++back) n += came_before(back) ? 1 : 0;
    return n;
  }

  /// The youngest step before the last of the same shape, from request `first_known` on.
  [[nodiscard]] std::optional<found_step> earlier(std::uint64_t first_known) const noexcept {
    for (std::size_t back = 1; back < size() && at(back).first >= first_known; ++back) {
      if (at(back).fingerprint == at(0).fingerprint) return at(back);
    }
    return std::nullopt;
  }

  /// How many of the last steps, one behind the other and not all alike, have come twice on end: together they are a
  /// step. 0: none.
  [[nodiscard]] std::size_t parts() const noexcept {
    for (std::size_t parts = 2; parts <= most_parts && 2 * parts <= size(); ++parts) {
      bool twice = true;
      bool alike = true;
      for (std::size_t back = 0; twice && back < parts; ++back) {
        twice = at(back).fingerprint == at(back + parts).fingerprint && at(back).first == at(back + 1).last &&
                (back + 1 == parts || at(back + parts).first == at(back + parts + 1).last);
        alike = alike && at(back).fingerprint == at(0).fingerprint;
      }
      if (twice && !alike) return parts;
    }
    return 0;
  }
  /// The step `back` before the last.
  [[nodiscard]] found_step const& at(std::size_t back) const noexcept { return steps_[(count_ - 1 - back) % most]; }

 private:
  static constexpr std::size_t most_parts = 16;

  [[nodiscard]] std::size_t size() const noexcept { return std::min(count_, most); }
  [[nodiscard]] bool came_before(std::size_t back) const noexcept {
    for (std::size_t older = back + 1; older < size(); ++older) {
      if (at(older).fingerprint == at(back).fingerprint) return true;
    }
    return false;
  }

  std::array<found_step, most> steps_{};
  std::size_t count_ = 0;
};

}  // namespace gmlake::plan
