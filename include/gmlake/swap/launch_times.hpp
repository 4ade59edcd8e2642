#pragma once
/// How long the host takes to launch a step's operations, one after the other: of the last three steps of a kind the
/// one in the middle, for each, since a host on which others run takes far longer now and then.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "gmlake/swap/channel.hpp"

namespace gmlake::swap {

/// Times a job's launches as they happen.
class launch_watch {
 public:
  using host_clock = time (*)() noexcept;

  /// Null: nothing is timed.
  explicit launch_watch(host_clock clock) noexcept : clock_(clock) {}

  /// What passes within it counts to an operation's launch as far as it is usual: not that the host waits or calls the
  /// driver, as steps that have settled hardly do.
  template <std::invocable F>
  auto aside(F f) noexcept {
    if (clock_ == nullptr) return f();
    time const came = clock_();
    auto done = f();
    began_ += std::max(clock_() - came - usual, time::zero());
    return done;
  }
  /// An operation has been launched: what the host took for it.
  [[nodiscard]] time ends() const noexcept { return clock_ != nullptr ? clock_() - began_ : time::zero(); }
  /// All that follows from that has been done.
  void begins() noexcept {
    if (clock_ != nullptr) began_ = clock_();
  }

 private:
  static constexpr time usual{50'000};

  host_clock clock_;
  time began_{};
};

class launch_times {
 public:
  /// Of a step, by operation; all steps have as many. For want of memory nothing is known.
  void note(std::vector<time> const& took) noexcept {
    try {
      last_[steps_++ % last_.size()] = took;
    } catch (std::bad_alloc const&) {
      steps_ = 0;
    }
  }
  [[nodiscard]] bool known() const noexcept { return steps_ >= last_.size(); }

  /// When each has been launched, from the first's launch on. Precondition: known. Throws `std::bad_alloc`.
  [[nodiscard]] std::vector<time> since_first() const {
    std::vector<time> all(last_[0].size());
    for (std::size_t i = 1; i < all.size(); ++i) all[i] = all[i - 1] + middle(i);
    return all;
  }

 private:
  [[nodiscard]] time middle(std::size_t i) const noexcept {
    time const a = last_[0][i], b = last_[1][i], c = last_[2][i];
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
  }

  std::array<std::vector<time>, 3> last_;
  std::uint64_t steps_ = 0;
};

}  // namespace gmlake::swap
