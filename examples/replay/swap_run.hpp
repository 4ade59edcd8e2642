#pragma once
/// Plans what a trace's typical step swaps, and rehearses it on a pool: what is asked for, and what came of it.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmlake/swap/rehearsal.hpp"
#include "gmlake/swap/solution.hpp"
#include "gmlake/trace/event.hpp"
#include "gmlake/trace/typical_step.hpp"
#include "swap_options.hpp"

namespace gmlake::tools {

/// A trace's typical step on the machine that is asked for, and what no schedule can beat there.
struct swap_subject {
  std::string trace;
  trace::typical_step step;
  std::vector<std::uint32_t> allocations;  ///< by variable: its id in the trace
  swap::machine on;
  bytes peak = 0;           ///< while nothing leaves
  swap::time time{};        ///< of a step, likewise
  bytes least_peak = 0;     ///< without stalls
  bytes limit = 0;          ///< as asked for
  bytes least_limit = 0;    ///< that some schedule meets, however long it takes
  swap::time least_time{};  ///< of a step under the limit; zero where that is not met
};

/// A schedule, the pool's own account of it, and the planner's.
struct swap_schedule {
  swap::solution planned;
  swap::rehearsal_result pool;
  bytes packed = 0;                            ///< that what is there packs into, each stay of a block at one place
  std::optional<swap::score_weights> weights;  ///< where they were found
};

/// One scheduler.
struct swap_record {
  scheduler by;
  std::shared_ptr<swap_subject const> of;
  std::optional<swap_schedule> without_stall;  ///< where it looks for that
  std::optional<swap_schedule> under_limit;    ///< where it looks for that, and meets the limit

  /// Some schedule could keep the limit, if this is to, and the pool carried out what was found.
  [[nodiscard]] bool ok() const noexcept {
    if (by.keeps_limit() && of->limit < of->least_limit) return false;
    return !(without_stall && without_stall->pool.failed) && !(under_limit && under_limit->pool.failed);
  }
};

struct swap_subject_found {
  std::shared_ptr<swap_subject const> value;
  std::string wrong;  ///< with the trace; empty: nothing
};

[[nodiscard]] swap_subject_found subject_of(std::string const& name, trace::trace const& t, swap_options const& o);

/// `chunk`: of the pool's, if not as it would choose.
[[nodiscard]] swap_record run_scheduler(scheduler const& by, std::shared_ptr<swap_subject const> const& of,
                                        std::optional<bytes> chunk);

}  // namespace gmlake::tools
