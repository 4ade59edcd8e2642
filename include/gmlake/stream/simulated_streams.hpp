#pragma once
/// StreamPolicy over a simulated timeline, which the owner keeps too: to advance it, and to ask it what was ordered.

#include <memory>
#include <utility>

#include "gmlake/stream/simulated_timeline.hpp"
#include "gmlake/stream/stream_policy.hpp"

namespace gmlake {

class simulated_streams {
 public:
  using fence = simulated_timeline::fence;

  /// Precondition: `timeline` is not null.
  explicit simulated_streams(std::shared_ptr<simulated_timeline> timeline) noexcept : timeline_(std::move(timeline)) {}

  [[nodiscard]] std::shared_ptr<simulated_timeline> const& timeline() const noexcept { return timeline_; }

  [[nodiscard]] bool concurrent() const noexcept { return true; }
  [[nodiscard]] result<fence> record(stream s) noexcept { return timeline_->record(s); }
  [[nodiscard]] result<bool> reached(fence& f) noexcept { return timeline_->reached(f); }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept { return timeline_->wait(s, f); }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept { return timeline_->synchronize(f); }
  [[nodiscard]] result<void> synchronize_device() noexcept { return timeline_->synchronize_device(); }
  void release(fence& f) noexcept { timeline_->release(f); }

 private:
  std::shared_ptr<simulated_timeline> timeline_;
};
static_assert(StreamPolicy<simulated_streams>);

}  // namespace gmlake
