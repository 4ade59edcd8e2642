#pragma once
/// Replays a trace through a pool: the one loop that the tool, the tests and the benchmarks share.
///
/// The loop costs a look-up in one vector beside the pool's own work and is timed as a whole. It stops at the first
/// failure. Blocks live at the end of the trace stay live: the statistics are taken then, and tearing down is the
/// pool's own affair.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/trace/event.hpp"

namespace gmlake::trace {

/// The device's progress as replay drives it: `advance(n)` when n more events have passed, `finish_all()` at a `step`
/// mark, by when all work queued so far is done. Only allocations and frees are events here.
template <class T>
concept Timeline = requires(T& t, std::uint64_t n) {
  { t.advance(n) } noexcept -> std::same_as<void>;
  { t.finish_all() } noexcept -> std::same_as<void>;
};

/// For pools whose streams need no driving.
struct no_timeline {
  void advance(std::uint64_t) noexcept {}
  void finish_all() noexcept {}
};
static_assert(Timeline<no_timeline>);

/// What may watch a replay. `allocated` and `deallocating` see each block, `passed` the index of each event when it is
/// done; one that returns false stops the replay. `progressed` is told every `progress_interval` events, untimed.
template <class H>
concept ReplayHooks = requires(H& h, std::uint32_t id, address a, bytes n, std::size_t i) {
  { h.allocated(id, a, n) } -> std::same_as<bool>;
  { h.deallocating(id, a) } -> std::same_as<bool>;
  { h.passed(i) } -> std::same_as<void>;
  { h.progressed(i) } -> std::same_as<void>;
};

/// Watches nothing, at no cost; derive from it to watch in part.
struct no_hooks {
  constexpr bool allocated(std::uint32_t, address, bytes) noexcept { return true; }
  constexpr bool deallocating(std::uint32_t, address) noexcept { return true; }
  constexpr void passed(std::size_t) noexcept {}
  constexpr void progressed(std::size_t) noexcept {}
};
static_assert(ReplayHooks<no_hooks>);

inline constexpr std::size_t progress_interval = std::size_t{1} << 16;

enum class replay_outcome : std::uint8_t {
  completed,
  failed,   ///< the pool refused an event: see `error`
  stopped,  ///< a hook returned false
};

struct replay_result {
  replay_outcome outcome = replay_outcome::completed;
  std::size_t failed_event = 0;         ///< index of the event at which it ended, unless completed
  gmlake::error error;                  ///< the pool's, where it failed
  std::uint64_t operations = 0;         ///< allocations and frees done
  std::chrono::nanoseconds elapsed{0};  ///< in the loop over them, by the host's clock, hooks included
  pool_stats stats;                     ///< after the last event that was replayed

  [[nodiscard]] bool ok() const noexcept { return outcome == replay_outcome::completed; }
  [[nodiscard]] double ns_per_op() const noexcept {
    return operations == 0 ? 0.0 : static_cast<double>(elapsed.count()) / static_cast<double>(operations);
  }
};

/// One replay's state: the addresses of its blocks by id.
template <Pool P, Timeline T, ReplayHooks H>
class replayer {
 public:
  /// `streams` maps the trace's stream numbers to the pool's streams; where it is empty, number n is `stream{n}`.
  replayer(trace const& t, P& pool, T& timeline, H& hooks, std::span<stream const> streams = {})
      : trace_(t), pool_(pool), timeline_(timeline), hooks_(hooks), streams_(streams), addresses_(t.allocations) {
    for (std::size_t i = 0; i < t.labels.size(); ++i) {
      if (t.labels[i] == step_label) step_ = i;
    }
  }

  [[nodiscard]] replay_result run() {
    using clock = std::chrono::steady_clock;
    replay_result r;
    std::size_t const events = trace_.events.size();
    for (std::size_t begin = 0; begin < events && r.ok();) {
      std::size_t const end = std::min(events, begin + progress_interval);
      auto const started = clock::now();
      while (begin < end && step(begin, r)) ++begin;
      r.elapsed += clock::now() - started;
      hooks_.progressed(begin);
    }
    r.stats = pool_.stats();
    return r;
  }

  /// By id; meaningless for those not live.
  [[nodiscard]] std::span<address const> addresses() const noexcept { return addresses_; }

 private:
  bool step(std::size_t index, replay_result& r) {
    event const& e = trace_.events[index];
    switch (e.kind) {
      case event_kind::allocate: {
        auto got = pool_.allocate(e.size, streams_.empty() ? stream{e.stream} : streams_[e.stream]);
        if (!got) return fail(index, got.error(), r);
        addresses_[e.id] = *got;
        if (!hooks_.allocated(e.id, *got, e.size)) return stop(index, r);
        break;
      }
      case event_kind::deallocate: {
        if (!hooks_.deallocating(e.id, addresses_[e.id])) return stop(index, r);
        auto const done = pool_.deallocate(addresses_[e.id]);
        if (!done) return fail(index, done.error(), r);
        break;
      }
      case event_kind::mark:
        if (e.id == step_) {
          timeline_.finish_all();
          if constexpr (requires { pool_.mark_step(); }) pool_.mark_step();
        }
        hooks_.passed(index);
        return true;
      case event_kind::read:
      case event_kind::write:
      case event_kind::operation:
      case event_kind::host_copy: hooks_.passed(index); return true;
    }
    ++r.operations;
    timeline_.advance(1);
    hooks_.passed(index);
    return true;
  }

  static bool fail(std::size_t index, gmlake::error const& e, replay_result& r) noexcept {
    r.outcome = replay_outcome::failed;
    r.failed_event = index;
    r.error = e;
    return false;
  }
  static bool stop(std::size_t index, replay_result& r) noexcept {
    r.outcome = replay_outcome::stopped;
    r.failed_event = index;
    return false;
  }

  trace const& trace_;
  P& pool_;
  T& timeline_;
  H& hooks_;
  std::span<stream const> streams_;
  std::vector<address> addresses_;
  std::size_t step_ = static_cast<std::size_t>(-1);  ///< the label of steps; none
};

/// Replays `t` through `pool`. Preconditions: `t` is well-formed (see parse_result.hpp); `streams` is empty or has one
/// for each of the trace's. Throws only what a hook throws, or for want of host memory before the first event.
template <Pool P, Timeline T, ReplayHooks H>
[[nodiscard]] replay_result replay(trace const& t, P& pool, T& timeline, H& hooks,
                                   std::span<stream const> streams = {}) {
  return replayer<P, T, H>(t, pool, timeline, hooks, streams).run();
}

template <Pool P, Timeline T>
[[nodiscard]] replay_result replay(trace const& t, P& pool, T& timeline) {
  no_hooks none;
  return replay(t, pool, timeline, none);
}

template <Pool P>
[[nodiscard]] replay_result replay(trace const& t, P& pool) {
  no_timeline none;
  return replay(t, pool, none);
}

}  // namespace gmlake::trace
