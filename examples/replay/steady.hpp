#pragma once
/// What a replay does once its program is under way: from the mark of the fifth step on, when what a pool learns and
/// grows has mostly been learnt and grown. A hook for `replay`.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/trace/event.hpp"
#include "gmlake/trace/replay.hpp"
#include "run.hpp"

namespace gmlake::tools {

/// The event after which the steady part begins; nothing where the trace has fewer marked steps.
[[nodiscard]] inline std::optional<std::size_t> steady_from(trace::trace const& t) {
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    trace::event const& e = t.events[i];
    if (e.kind != trace::event_kind::mark || t.labels[e.id] != trace::step_label) continue;
    if (++steps == steady_step) return i;
  }
  return std::nullopt;
}

/// Passes replays on without the marks of steps: a pool then finds its steps itself, or not.
template <Pool P>
class unmarked {
 public:
  explicit unmarked(P& pool) noexcept : pool_(&pool) {}
  [[nodiscard]] result<address> allocate(bytes n, stream s) noexcept { return pool_->allocate(n, s); }
  [[nodiscard]] result<void> deallocate(address a) noexcept { return pool_->deallocate(a); }
  [[nodiscard]] pool_stats stats() const noexcept { return pool_->stats(); }

 private:
  P* pool_;
};

/// Counts requests as plans served them, where the pool can tell.
template <Pool P>
[[nodiscard]] std::optional<plan_figures> plans_of(P const& pool) {
  if constexpr (requires { pool.plans_seen(); }) {
    auto const s = pool.plans_seen();
    return plan_figures{s.made, s.placed, s.squeezed, s.displaced, s.astray, {}};
  } else {
    return std::nullopt;
  }
}

/// Tells how far the replay is, which takes time of its own, and takes the figures at the beginning of the steady part
/// and at the end. `planning()` is the time that the pool has spent on planning so far, within its calls.
template <Pool P>
class steady_watch : public trace::no_hooks {
 public:
  using clock = std::chrono::steady_clock;

  steady_watch(run_request const& q, std::string_view activity, P const& pool, std::optional<std::size_t> from,
               std::function<std::chrono::nanoseconds()> planning)
      : request_(q), activity_(activity), pool_(pool), from_(from.value_or(never)), planning_(std::move(planning)) {}

  void passed(std::size_t i) {
    if (i != from_) return;
    before_ = pool_.stats();
    plans_before_ = plans_of(pool_);
    planning_before_ = planning_();
    began_ = clock::now();
  }
  void progressed(std::size_t done) {
    auto const begin = clock::now();
    request_.progress(activity_, static_cast<double>(done) / static_cast<double>(request_.events->events.size()));
    if (began_) began_ = *began_ + (clock::now() - begin);
  }

  /// To be called right after a replay that completed. Nothing where there was no steady part.
  [[nodiscard]] std::optional<steady_part> finish() {
    auto const ended = clock::now();
    if (!began_) return std::nullopt;
    pool_stats const after = pool_.stats();
    auto const driver_before = before_.driver.total();
    auto const driver = after.driver.total();
    std::uint64_t const allocations = after.allocations - before_.allocations;
    steady_part s{.operations = allocations + after.deallocations - before_.deallocations,
                  .elapsed = ended - *began_ - (planning_() - planning_before_),
                  .driver_calls = driver.calls - driver_before.calls,
                  .driver_time = driver.time - driver_before.time,
                  .stitches = after.stitches_made - before_.stitches_made,
                  .stitch_hits = after.stitch_hits - before_.stitch_hits,
                  .reserved = after.reserved.now,
                  .planned_share = {}};
    if (auto const plans = plans_of(pool_); plans && allocations != 0) {
      s.planned_share = static_cast<double>(plans->placed - plans_before_->placed) / static_cast<double>(allocations);
    }
    return s;
  }

 private:
  static constexpr std::size_t never = static_cast<std::size_t>(-1);

  run_request const& request_;
  std::string_view activity_;
  P const& pool_;
  std::size_t from_;
  std::function<std::chrono::nanoseconds()> planning_;
  pool_stats before_;
  std::optional<plan_figures> plans_before_;
  std::chrono::nanoseconds planning_before_{0};
  std::optional<clock::time_point> began_;
};

}  // namespace gmlake::tools
