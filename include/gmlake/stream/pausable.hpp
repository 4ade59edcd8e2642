#pragma once
/// A stream policy that can be paused, for as long as device work is being captured: meanwhile nothing is recorded,
/// asked, or waited for, on whatever stream, so that no capture is disturbed and none comes to depend on what it does
/// not hold. The pool does without, as if no fence were ever reached.
///
/// Pauses nest, and are counted outside the policy, so that several pools can share them. Thread-safe.

#include <atomic>
#include <memory>
#include <utility>

#include "gmlake/stream/one_stream.hpp"

namespace gmlake {

template <StreamPolicy Streams>
class pausable {
 public:
  using fence = typename Streams::fence;
  using pauses = std::atomic<int>;

  /// Paused while `*count` is above 0. Precondition: `count` is not null.
  pausable(Streams streams, std::shared_ptr<pauses const> count) noexcept
      : streams_(std::move(streams)), pauses_(std::move(count)) {}

  [[nodiscard]] bool concurrent() const noexcept { return streams_.concurrent(); }
  [[nodiscard]] result<fence> record(stream s) noexcept {
    if (paused()) return failure(errc::not_supported, "record: paused");
    return streams_.record(s);
  }
  [[nodiscard]] result<bool> reached(fence& f) noexcept { return paused() ? result<bool>(false) : streams_.reached(f); }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    if (paused()) return failure(errc::not_supported, "wait: paused");
    return streams_.wait(s, f);
  }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept {
    if (paused()) return failure(errc::not_supported, "synchronize: paused");
    return streams_.synchronize(f);
  }
  [[nodiscard]] result<void> synchronize_device() noexcept {
    if (paused()) return failure(errc::not_supported, "synchronize: paused");
    return streams_.synchronize_device();
  }
  void release(fence& f) noexcept { streams_.release(f); }

 private:
  [[nodiscard]] bool paused() const noexcept { return pauses_->load(std::memory_order_acquire) > 0; }

  Streams streams_;
  std::shared_ptr<pauses const> pauses_;
};
static_assert(StreamPolicy<pausable<one_stream>>);

}  // namespace gmlake
