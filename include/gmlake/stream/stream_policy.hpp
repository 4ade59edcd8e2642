#pragma once
/// StreamPolicy: the mechanism by which the pool learns and orders what streams of device work have finished.
///
/// | call | does |
/// | --- | --- |
/// | `record(s)` | a fence: the point after everything queued on s so far |
/// | `reached(f)` | whether the device has passed it; never blocks |
/// | `wait(s, f)` | what is queued on s from now on runs after f; the host goes on (`cuStreamWaitEvent`) |
/// | `synchronize(f)` | the host waits until f is reached |
/// | `release(f)` | the fence is needed no more (pooled, destroyed) |
///
/// Fences of one stream are reached in the order recorded. What to do with memory whose fence is not reached yet is not
/// decided here: see `wait_policy.hpp`. `record` on a stream that was destroyed fails with `driver_failure`; the pool
/// then calls `synchronize_device()`, after which all work queued so far is done. No call throws; calls come under the
/// pool's lock.
///
/// `concurrent()` is false where all work runs in host order on one stream, so that nothing is ever pending: the pool
/// then records no fence at all.

#include <concepts>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

template <class S>
concept StreamPolicy =
    std::movable<S> && std::movable<typename S::fence> && requires(S& s, S const& c, stream q, typename S::fence& f) {
      { c.concurrent() } noexcept -> std::same_as<bool>;
      { s.record(q) } noexcept -> std::same_as<result<typename S::fence>>;
      { s.reached(f) } noexcept -> std::same_as<result<bool>>;
      { s.wait(q, f) } noexcept -> std::same_as<result<void>>;
      { s.synchronize(f) } noexcept -> std::same_as<result<void>>;
      { s.synchronize_device() } noexcept -> std::same_as<result<void>>;
      { s.release(f) } noexcept -> std::same_as<void>;
    };

/// Refinement: some streams are not the pool's to record on. `record` on such a stream is `not_supported`; what is
/// freed on it serves it again, and others once the host has waited for the whole device.
template <class S>
concept SelectiveStreamPolicy = StreamPolicy<S> && requires(S const& c, stream q) {
  { c.foreign(q) } noexcept -> std::same_as<bool>;
};

}  // namespace gmlake
