#pragma once
/// Drives one preset over one trace: the timed replay, and what else is asked for, each with a pool of its own.
///
/// Streams are simulated on every backend: a replay queues no device work, and so every backend sees the same
/// decisions, the driver's measured time stands beside the modelled one, and contents may be checked from the host.

#include <algorithm>
#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include "backends.hpp"
#include "format.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "gmlake/stream/simulated_timeline.hpp"
#include "gmlake/trace/verifier.hpp"
#include "run.hpp"
#include "steady.hpp"

namespace gmlake::tools {

/// What `make` gives: anything that points to a pool.
template <class M, class Backend>
concept PoolMaker =
    PhysicalBackend<Backend> && requires(M const& make, Backend b, simulated_streams s, pool_request const& r) {
      requires Pool<std::remove_reference_t<decltype(*make(std::move(b), std::move(s), r))>>;
    };

namespace drive_detail {

inline constexpr int timed_again = 4;
/// Timing comes to an end when planning has taken so long: it is done anew for each pool.
inline constexpr std::chrono::seconds most_planning{5};

struct reporting : trace::no_hooks {
  run_request const& request;
  std::string_view activity;

  void progressed(std::size_t done) const {
    request.progress(activity, static_cast<double>(done) / static_cast<double>(request.events->events.size()));
  }
};

/// A watcher that also reports progress.
template <trace::ReplayHooks Watcher>
struct watching : reporting {
  Watcher& watcher;

  bool allocated(std::uint32_t id, address a, bytes n) { return watcher.allocated(id, a, n); }
  bool deallocating(std::uint32_t id, address a) { return watcher.deallocating(id, a); }
  void passed(std::size_t i) { watcher.passed(i); }
};

inline std::string describe(error const& e) {
  std::string what = to_string(e.code);
  if (*e.call != '\0') what += std::string(" (") + e.call + ")";
  if (e.native != 0) what += ", code " + std::to_string(e.native);
  memory_account const& a = e.account;
  if (e.code != errc::out_of_memory || a.reserved == 0) return what;
  return what + ": " + readable(a.reserved) + " reserved, " + readable(a.live) + " live, " +
         readable(a.largest_contiguous) + " contiguous; " + (a.fragmented() ? "fragmented" : "exhausted");
}

/// What the pool spent on planning within its calls: it says so itself, or who made it does.
template <class Make, Pool P>
[[nodiscard]] std::chrono::nanoseconds planning_within(Make const& make, P const& pool) {
  if constexpr (requires { pool.planning_time(); }) return pool.planning_time();
  else if constexpr (requires { make.planning_time(); }) return make.planning_time();
  else return {};
}

template <Pool P, trace::ReplayHooks H>
[[nodiscard]] trace::replay_result replay_through(run_request const& q, P& pool, simulated_timeline& timeline,
                                                  H& hooks) {
  if (q.marks) return trace::replay(*q.events, pool, timeline, hooks);
  unmarked<P> told_nothing(pool);
  return trace::replay(*q.events, told_nothing, timeline, hooks);
}

/// A copy to or from a GPU takes about 10 µs, however small.
[[nodiscard]] constexpr trace::verify_options verify_options_for(backend_kind kind) noexcept {
  trace::verify_options o;
  if (kind == backend_kind::cuda) o.most_boundaries = 6;
  return o;
}

/// Empty where the replay completed.
inline std::string describe(run_request const& q, trace::replay_result const& r) {
  if (r.ok()) return {};
  trace::event const& e = q.events->events[r.failed_event];
  std::string const what = e.kind == trace::event_kind::allocate ? "allocation of " + std::to_string(e.size) + " bytes"
                                                                 : "free of block " + std::to_string(e.id);
  return "event " + std::to_string(r.failed_event + 1) + ", " + what + ": " + describe(r.error);
}

}  // namespace drive_detail

/// Fills in all of a record but its names.
template <class Open, class Make>
  requires PoolMaker<Make, typename std::invoke_result_t<Open>::value_type>
void drive(run_request const& q, Open const& open, Make const& make, run_record& out) {
  using namespace drive_detail;

  // Kept: the last to close a CUDA device tears down its context, which takes longer than many a replay.
  auto const opened = open();
  if (!opened) {
    out.failure = "the backend can't be opened: " + describe(opened.error());
    return;
  }

  auto const with_pool = [&](bytes limit, auto&& use) -> trace::replay_result {
    auto backend = open();
    if (!backend) {
      trace::replay_result failed;
      failed.outcome = trace::replay_outcome::failed;
      failed.error = backend.error();
      return failed;
    }
    pool_request request = q.pool;
    request.limit = limit;
    auto timeline = std::make_shared<simulated_timeline>(timeline_options{.lag = q.pool.fence_lag});
    auto pool = make(*std::move(backend), simulated_streams(timeline), request);
    return use(*pool, *timeline);
  };
  auto const plain = [&](std::string_view activity) {
    return [&q, activity](auto& pool, simulated_timeline& timeline) {
      reporting hooks{{}, q, activity};
      return replay_through(q, pool, timeline, hooks);
    };
  };
  auto const from = steady_from(*q.events);
  std::chrono::nanoseconds planned_for{0};
  std::optional<steady_part> steady;
  auto const timed = [&](std::string_view activity) {
    return with_pool(q.pool.limit, [&]<class P>(P& pool, simulated_timeline& timeline) {
      auto const planning = [&] { return planning_within(make, pool); };
      steady_watch<P> hooks(q, activity, pool, from, planning);
      trace::replay_result r = replay_through(q, pool, timeline, hooks);
      steady = r.ok() ? hooks.finish() : std::nullopt;
      r.elapsed -= planning();
      planned_for += planning();
      out.plans = plans_of(pool);
      if (out.plans) out.plans->planning = planning();
      return r;
    });
  };

  out.replay = timed("replaying");
  out.steady = steady;
  // A simulated replay does the same each time, so its fastest run is the one that the machine disturbed least.
  if constexpr (std::same_as<typename std::invoke_result_t<Open>::value_type, simulated>) {
    for (int again = 0; again < timed_again && out.replay.ok() && planned_for < most_planning; ++again) {
      out.replay.elapsed = std::min(out.replay.elapsed, timed("timing").elapsed);
      if (out.steady && steady) out.steady->elapsed = std::min(out.steady->elapsed, steady->elapsed);
    }
  }
  if constexpr (requires { make.prepared_in(); }) {
    if (out.plans) out.plans->planning += make.prepared_in();
  }
  out.failure = describe(q, out.replay);

  if (q.sample && out.replay.operations != 0) {
    (void)with_pool(q.pool.limit, [&]<class P>(P& pool, simulated_timeline& timeline) {
      constexpr std::size_t samples = 1000;  // as many as a chart has room for
      trace::sampler<P> sampler(pool, q.events->events.size(), q.summary.peak_event, samples);
      watching<trace::sampler<P>> hooks{{{}, q, "sampling"}, sampler};
      auto r = replay_through(q, pool, timeline, hooks);
      out.series = std::move(sampler.series());
      out.peak = std::move(sampler.peak());
      return r;
    });
  }

  if (q.verify && out.failure.empty()) {
    (void)with_pool(q.pool.limit, [&]<class P>(P& pool, simulated_timeline& timeline) {
      if constexpr (requires { trace::verifier(pool.backend(), 0); }) {
        trace::verifier verifier(pool.backend(), q.events->allocations, verify_options_for(q.backend));
        watching<decltype(verifier)> hooks{{{}, q, "verifying"}, verifier};
        auto const check = [&](auto& marked) {
          trace::replayer replayer(*q.events, marked, timeline, hooks);
          trace::replay_result r = replayer.run();
          if (r.ok() && !verifier.finish(replayer.addresses())) out.failure = "at the end: " + verifier.message();
          return r;
        };
        unmarked<P> told_nothing(pool);
        trace::replay_result const r = q.marks ? check(pool) : check(told_nothing);
        if (r.outcome == trace::replay_outcome::failed) out.failure = describe(q, r);
        else if (!r.ok()) out.failure = "event " + std::to_string(r.failed_event + 1) + ": " + verifier.message();
        return r;
      } else {
        out.failure = "this preset or backend can't be verified";
        return trace::replay_result{};
      }
    });
  }

  if (q.min_limit) {
    bytes const sufficing = out.replay.stats.reserved.peak;
    out.min_limit = trace::find_min_limit(q.summary.peak_requested, sufficing,
                                          [&](bytes limit) { return with_pool(limit, plain("searching the limit")); });
    if (!out.min_limit->found && out.failure.empty()) out.failure = "no limit suffices";
  }
  out.ok = out.failure.empty();
}

}  // namespace gmlake::tools
