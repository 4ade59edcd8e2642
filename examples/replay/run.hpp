#pragma once
/// One replay as the tool knows it: what is asked for, and what came of it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmlake/observe/snapshot.hpp"
#include "gmlake/plan/plan.hpp"
#include "gmlake/trace/event.hpp"
#include "gmlake/trace/min_limit.hpp"
#include "gmlake/trace/replay.hpp"
#include "gmlake/trace/summary.hpp"
#include "gmlake/trace/time_series.hpp"

namespace gmlake::tools {

enum class backend_kind : std::uint8_t { sim, host, cuda };

[[nodiscard]] constexpr std::string_view to_string(backend_kind b) noexcept {
  switch (b) {
    case backend_kind::sim: return "sim";
    case backend_kind::host: return "host";
    case backend_kind::cuda: return "cuda";
  }
  return "";
}

/// What every pool of a run is made with.
struct pool_request {
  bytes limit = std::numeric_limits<bytes>::max();
  std::uint64_t fence_lag = 1000;  ///< events until a simulated fence is reached
  std::optional<bytes> chunk;      ///< for presets that have chunks to choose
  std::vector<plan::plan> plans;   ///< for presets that take them, before the first request
};

struct run_request {
  trace::trace const* events = nullptr;
  trace::trace_summary summary;
  backend_kind backend = backend_kind::sim;
  pool_request pool;
  bool min_limit = false;  ///< search for it
  bool sample = false;     ///< fill in `series` and `peak`, in a second replay
  bool verify = false;     ///< check contents, in one more
  bool marks = true;       ///< tell pools where steps begin
  std::function<void(std::string_view activity, double done)> progress = [](std::string_view, double) {};
};

/// What plans have done, as counts of requests.
struct plan_figures {
  std::uint64_t made = 0;
  std::uint64_t placed = 0;     ///< at the place planned
  std::uint64_t squeezed = 0;   ///< not planned, but served from planned memory
  std::uint64_t displaced = 0;  ///< planned, but their place was in use
  std::uint64_t astray = 0;     ///< not foreseen
  /// By the host's clock; in no other figure.
  std::chrono::nanoseconds planning{0};
};

/// The step with which a replay's steady part begins, counted from 1.
inline constexpr std::uint64_t steady_step = 5;

struct steady_part {
  std::uint64_t operations = 0;
  std::chrono::nanoseconds elapsed{0};  ///< without planning
  std::uint64_t driver_calls = 0;
  std::chrono::nanoseconds driver_time{0};
  std::uint64_t stitches = 0;
  std::uint64_t stitch_hits = 0;
  bytes reserved = 0;                   ///< at its end
  std::optional<double> planned_share;  ///< of its requests, those at the place planned; where the pool can tell

  [[nodiscard]] double ns_per_op() const noexcept {
    return operations == 0 ? 0.0 : static_cast<double>(elapsed.count()) / static_cast<double>(operations);
  }
};

struct run_record {
  std::string trace;
  std::string preset;
  backend_kind backend = backend_kind::sim;
  bool ok = false;                    ///< every replay asked for completed and every check passed
  std::string failure;                ///< why not
  trace::replay_result replay;        ///< its time without planning
  std::optional<plan_figures> plans;  ///< where the pool can tell
  std::optional<steady_part> steady;  ///< where there is one, and the replay completed
  std::optional<trace::min_limit_result> min_limit;
  trace::time_series series;
  std::optional<pool_snapshot> peak;  ///< at the trace's peak requested

  /// 1 − peak requested / peak reserved.
  [[nodiscard]] double fragmentation() const noexcept {
    auto const& s = replay.stats;
    return s.reserved.peak == 0 ? 0.0
                                : 1.0 - static_cast<double>(s.requested.peak) / static_cast<double>(s.reserved.peak);
  }
  [[nodiscard]] std::uint64_t waits() const noexcept { return replay.stats.device_waits + replay.stats.host_waits; }
};

[[nodiscard]] constexpr double milliseconds(std::chrono::nanoseconds t) noexcept {
  return static_cast<double>(t.count()) / 1e6;
}

}  // namespace gmlake::tools
