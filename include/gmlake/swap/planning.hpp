#pragma once
/// Plans being made, by whichever thread: shares nothing with those who wait for them.

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/swap/plan_step.hpp"

namespace gmlake::swap {

class planning {
 public:
  /// Which job's step a program is; `life` tells a job from those that had its number before.
  struct part {
    std::uint32_t job = 0;
    std::uint64_t life = 0;
    std::uint64_t fingerprint = 0;
  };

  /// `before`: see `plan_steps`.
  planning(std::vector<part> of, std::vector<step_program> programs, channel const& c, bytes target,
           std::shared_ptr<step_plan const> before = nullptr, double better = 0)
      : of_(std::move(of)),
        programs_(std::move(programs)),
        before_(std::move(before)),
        better_(better),
        channel_(c),
        target_(target) {}

  void run() noexcept {
    try {
      made_ = plan_steps(programs_, channel_, target_, before_.get(), better_);
    } catch (std::bad_alloc const&) {
      made_ = {};
    }
    done_.store(true, std::memory_order_release);
  }

  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<part> const& of() const noexcept { return of_; }
  /// Precondition: done. Without plans where memory was short.
  [[nodiscard]] planned_steps const& made() const noexcept { return made_; }

 private:
  std::vector<part> of_;
  std::vector<step_program> programs_;
  std::shared_ptr<step_plan const> before_;
  double better_;
  swap::channel channel_;
  bytes target_;
  planned_steps made_;
  std::atomic<bool> done_{false};
};

}  // namespace gmlake::swap
