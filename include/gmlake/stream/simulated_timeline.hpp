#pragma once
/// A device's streams in simulated time: when the work on them is done, and what is known about its order.
///
/// Time is counted in events, which the owner advances. A fence is reached `lag` events after it was recorded, or at
/// the next `finish_all`. Apart from when work *is* done, the timeline keeps what its user has *made sure of*, with
/// vector clocks (Mattern 1989; Fidge 1988): a point in one stream's work is ordered before what another stream does
/// next only if a chain of waits says so, or if the host learnt that it was reached. So a test can tell use that is
/// safe from use that happened to go well.
///
/// Serial numbers run over the fences of all streams. A stream's clock holds, for each other stream, the last serial
/// number there that its next work runs after; it is shared by the fences recorded under it and replaced by a wait.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

struct timeline_options {
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t lag = 1000;  ///< events from a fence's recording until it is reached; `endless`: not by itself
};

class simulated_timeline {
 public:
  using serial = std::uint64_t;

  /// The end of what is queued on one stream at one time.
  struct point {
    stream on{};
    serial upto = 0;  ///< a fence on the stream covers the point if its serial number is no less
  };

  struct counters {
    std::uint64_t records = 0;
    std::uint64_t queries = 0;       ///< `reached`
    std::uint64_t waits = 0;         ///< a stream was made to wait
    std::uint64_t host_waits = 0;    ///< `synchronize`
    std::uint64_t device_syncs = 0;  ///< `synchronize_device`
    std::uint64_t live_fences = 0;   ///< recorded and not released
    std::uint64_t misuses = 0;       ///< calls with a fence that was released or moved from
  };

  /// Recorded by the timeline that it is used with. Empty once released.
  class fence {
   public:
    fence() noexcept = default;
    fence(fence&& o) noexcept
        : queue_(o.queue_), number_(std::exchange(o.number_, 0)), time_(o.time_), clock_(std::move(o.clock_)) {}
    fence& operator=(fence&& o) noexcept {
      queue_ = o.queue_;
      number_ = std::exchange(o.number_, 0);
      time_ = o.time_;
      clock_ = std::move(o.clock_);
      return *this;
    }

   private:
    friend class simulated_timeline;
    std::size_t queue_ = 0;
    serial number_ = 0;  ///< 0: empty
    std::uint64_t time_ = 0;
    std::shared_ptr<std::vector<serial> const> clock_;  ///< the stream's, when it was recorded
  };

  explicit simulated_timeline(timeline_options const& options = {}) noexcept : lag_(options.lag) {}

  /// `n` events happen.
  void advance(std::uint64_t n = 1) noexcept { now_ += n; }
  /// The device runs dry: every fence recorded so far is reached. The host learns of it when it asks.
  void finish_all() noexcept { finished_ = last_; }
  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  [[nodiscard]] counters const& counts() const noexcept { return counts_; }

  /// The end of what is queued on s at this moment. A fence recorded on s from now on covers it.
  [[nodiscard]] point queued(stream s) const noexcept { return {.on = s, .upto = last_ + 1}; }

  /// Whether what t does next is sure to run after p: in the same stream, through waits, or because the host knows that
  /// p was reached.
  [[nodiscard]] bool ordered(point p, stream t) const noexcept {
    if (p.on == t || p.upto <= all_observed_) return true;
    queue const* const before = find(p.on);
    if (before == nullptr) return false;
    if (before->observed >= p.upto) return true;
    queue const* const after = find(t);
    return after != nullptr && at(after->clock.get(), index_of(*before)) >= p.upto;
  }
  /// The same, for what was queued before f was recorded. Precondition: f is not empty.
  [[nodiscard]] bool ordered(fence const& f, stream t) const noexcept {
    return ordered(point{.on = queues_[f.queue_].id, .upto = f.number_}, t);
  }

  /// The stream exists no more: `record` and `wait` on it fail from now on. Errors: `out_of_host_memory`.
  [[nodiscard]] result<void> destroy(stream s) noexcept {
    queue* const q = find_or_add(s);
    if (q == nullptr) return failure(errc::out_of_host_memory, "destroy");
    q->destroyed = true;
    return {};
  }

  /// The stream is being captured into a graph from now on, or no more: meanwhile `record` and `wait` on it are
  /// `not_supported`, as with CUDA's. Errors: `out_of_host_memory`.
  [[nodiscard]] result<void> set_captured(stream s, bool captured) noexcept {
    queue* const q = find_or_add(s);
    if (q == nullptr) return failure(errc::out_of_host_memory, "set_captured");
    q->captured = captured;
    return {};
  }

  /// What a stream policy does, for `simulated_streams`. A misused fence is `invalid_argument`, and is counted.
  /// @{
  [[nodiscard]] result<fence> record(stream s) noexcept {
    queue* const q = find_or_add(s);
    if (q == nullptr) return failure(errc::out_of_host_memory, "record");
    if (q->destroyed) return failure(errc::driver_failure, "record: destroyed stream");
    if (q->captured) return failure(errc::not_supported, "record: captured stream");
    fence f;
    f.queue_ = index_of(*q);
    f.number_ = ++last_;
    f.time_ = now_;
    f.clock_ = q->clock;
    ++counts_.records;
    ++counts_.live_fences;
    return result<fence>(std::move(f));
  }

  [[nodiscard]] result<bool> reached(fence const& f) noexcept {
    if (auto ok = check(f, "reached: empty fence"); !ok) return failure(ok.error());
    ++counts_.queries;
    bool const done = f.number_ <= finished_ || f.number_ <= all_observed_ || f.number_ <= queues_[f.queue_].observed ||
                      now_ - f.time_ >= lag_;
    if (done) observe(f);
    return done;
  }

  [[nodiscard]] result<void> wait(stream s, fence const& f) noexcept {
    if (auto ok = check(f, "wait: empty fence"); !ok) return ok;
    queue* const q = find_or_add(s);
    if (q == nullptr) return failure(errc::out_of_host_memory, "wait");
    if (q->destroyed) return failure(errc::driver_failure, "wait: destroyed stream");
    if (q->captured) return failure(errc::not_supported, "wait: captured stream");
    if (f.queue_ != index_of(*q) && !join(*q, f)) return failure(errc::out_of_host_memory, "wait");
    ++counts_.waits;
    return {};
  }

  [[nodiscard]] result<void> synchronize(fence const& f) noexcept {
    if (auto ok = check(f, "synchronize: empty fence"); !ok) return ok;
    ++counts_.host_waits;
    observe(f);
    return {};
  }

  [[nodiscard]] result<void> synchronize_device() noexcept {
    ++counts_.device_syncs;
    // A serial number of its own tells what was queued before from what comes after.
    all_observed_ = ++last_;
    return {};
  }

  void release(fence& f) noexcept {
    if (!check(f, "release: empty fence")) return;
    --counts_.live_fences;
    f = fence{};
  }
  /// @}

 private:
  using vector_clock = std::vector<serial>;  ///< by queue

  struct queue {
    stream id{};
    serial observed = 0;  ///< what the host knows to be reached here
    std::shared_ptr<vector_clock const> clock{};
    bool destroyed = false;
    bool captured = false;
  };

  [[nodiscard]] result<void> check(fence const& f, char const* call) noexcept {
    if (f.number_ != 0) return {};
    ++counts_.misuses;
    return failure(errc::invalid_argument, call);
  }

  [[nodiscard]] std::size_t index_of(queue const& q) const noexcept {
    return static_cast<std::size_t>(&q - queues_.data());
  }
  [[nodiscard]] static serial at(vector_clock const* c, std::size_t i) noexcept {
    return c != nullptr && i < c->size() ? (*c)[i] : 0;
  }

  /// Streams are few: a search of them all is quicker than a table.
  [[nodiscard]] queue const* find(stream s) const noexcept {
    for (queue const& q : queues_) {
      if (q.id == s) return &q;
    }
    return nullptr;
  }
  [[nodiscard]] queue* find_or_add(stream s) noexcept {
    for (queue& q : queues_) {
      if (q.id == s) return &q;
    }
    try {
      return &queues_.emplace_back(queue{.id = s});
    } catch (std::bad_alloc const&) {
      return nullptr;
    }
  }

  /// The host knows that f is reached, and with it all that f's stream had waited for.
  void observe(fence const& f) noexcept {
    queues_[f.queue_].observed = std::max(queues_[f.queue_].observed, f.number_);
    if (f.clock_ == nullptr) return;
    for (std::size_t i = 0; i != f.clock_->size(); ++i) {
      queues_[i].observed = std::max(queues_[i].observed, (*f.clock_)[i]);
    }
  }

  /// What q does next runs after f. False: out of host memory.
  [[nodiscard]] bool join(queue& q, fence const& f) noexcept {
    try {
      auto joined = std::make_shared<vector_clock>(queues_.size());
      for (std::size_t i = 0; i != joined->size(); ++i) {
        (*joined)[i] = std::max(at(q.clock.get(), i), at(f.clock_.get(), i));
      }
      (*joined)[f.queue_] = std::max((*joined)[f.queue_], f.number_);
      q.clock = std::move(joined);
      return true;
    } catch (std::bad_alloc const&) {
      return false;
    }
  }

  std::uint64_t lag_;
  std::uint64_t now_ = 0;
  serial last_ = 0;          ///< the last number given
  serial finished_ = 0;      ///< fences up to this one are reached
  serial all_observed_ = 0;  ///< and the host knows it of those up to this one
  counters counts_;
  std::vector<queue> queues_;
};

}  // namespace gmlake
