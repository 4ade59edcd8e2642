#pragma once
/// Makes a track from a recorded step: a value to be handed to whoever has the time, which shares nothing with the pool
/// that asked. Deterministic where the packers are.

#include <atomic>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/plan/pack_plan.hpp"
#include "gmlake/plan/plan_rules.hpp"
#include "gmlake/plan/track.hpp"

namespace gmlake::plan {

class plan_job {
 public:
  /// Precondition: `step` has a period.
  plan_job(plan step, std::vector<segment> segments) : plan_(std::move(step)), segments_(std::move(segments)) {}

  /// To be called once, by one thread. Never throws: for want of memory there is no track, nor where the packers erred.
  void run(portfolio_options const& o = {}) noexcept {
    try {
      plan p = packed_plan(std::move(plan_), segments_, o);
      if (find_fault(p) == nullptr) made_ = std::make_unique<track>(std::move(p), segments_);
    } catch (std::bad_alloc const&) {
      made_.reset();
    }
    done_.store(true, std::memory_order_release);
  }

  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Null: it could not be made. Precondition: done.
  [[nodiscard]] std::unique_ptr<track> take() noexcept { return std::move(made_); }

 private:
  plan plan_;
  std::vector<segment> segments_;
  std::unique_ptr<track> made_;
  std::atomic<bool> done_ = false;
};

}  // namespace gmlake::plan
