#pragma once
/// How much work a packer may still do. Counted in entries looked at (about 2 ns each), so that the same problem is
/// packed the same way on every machine; the deadline is only there so that a slow machine isn't kept for ever.

#include <chrono>
#include <cstdint>
#include <limits>

namespace gmlake::plan {

class budget {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

  explicit budget(std::uint64_t work = unlimited, clock::time_point deadline = clock::time_point::max()) noexcept
      : left_(work), deadline_(deadline) {}

  /// Takes so much work off; false once there is none left, or no time.
  bool take(std::uint64_t work) noexcept {
    left_ -= work < left_ ? work : left_;
    since_look_ += work;
    if (since_look_ >= between_looks) look();
    return left_ != 0;
  }
  [[nodiscard]] bool spent() const noexcept { return left_ == 0; }
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }

  /// Until the deadline; not negative.
  [[nodiscard]] clock::duration time_left() const noexcept {
    if (deadline_ == clock::time_point::max()) return clock::duration::max();
    clock::time_point const now = clock::now();
    return now < deadline_ ? deadline_ - now : clock::duration::zero();
  }

  /// A part of what is left, with the same deadline.
  [[nodiscard]] budget part(std::uint64_t work) const noexcept {
    return budget(work < left_ ? work : left_, deadline_);
  }

 private:
  static constexpr std::uint64_t between_looks = 1'000'000;  // a few milliseconds' work between looks at the clock

  void look() noexcept {
    since_look_ = 0;
    if (deadline_ != clock::time_point::max() && clock::now() >= deadline_) left_ = 0;
  }

  std::uint64_t left_;
  std::uint64_t since_look_ = 0;
  clock::time_point deadline_;
};

}  // namespace gmlake::plan
