#pragma once
/// What a pager's user chooses, and what it tells.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gmlake/core/types.hpp"
#include "gmlake/swap/channel.hpp"

namespace gmlake::swap {

struct pager_options {
  /// Device memory that the pool may hold: the pool's limit is set to it. The maximum: the pool's own stays, and no
  /// schedule is made before `set_limit`.
  bytes limit = std::numeric_limits<bytes>::max();
  swap::channel channel = {};  ///< as calibrated; schedules are made for what copies turn out to take
  /// Smaller requests stay on the device, if that is more than what the pool says of itself.
  bytes smallest = 0;
  /// Down to this size schedules know when those are there; of what is smaller still, how much it is at the most.
  bytes smallest_logged = std::numeric_limits<bytes>::max();
  bool schedules = true;  ///< false: on demand only
  /// What a schedule moves stays mapped while it is away, once whole steps have gone by that schedule: it comes back
  /// with few driver calls. Who touches it meanwhile without saying so touches others' memory. False: that is a fault.
  bool leave_mapped = true;
  /// A thread of its own makes the schedules, which are followed once they are there. False: the call that begins a
  /// step does, and waits for a second or so; replays are the same each time.
  bool in_background = false;
  /// Schedules keep so far below the limit, for what lies idle in chunks that are used in part.
  time ahead{1'000'000};    ///< what the channel carries in that time
  time look_every{50'000};  ///< how often, at most, the ends of operations look which moves are over; 0: each does
  /// How long a job that waits for its turn sees others get nowhere before it goes all the same.
  time patience{1'000'000'000};
  /// Tells how long steps take: a plan made anew that makes them longer is given up for the one before. Null: it stays.
  time (*clock)() noexcept = nullptr;
  double smoothing = 0.25;  ///< weight of a newest time in its average over steps: an operation's, a step's copies'
  /// Share of a step's time, or of the channel's rate, by which what is measured may depart before it is planned again.
  double drift = 0.05;
  /// Before the first schedule under a limit is made, chunks for movable blocks become as large as makes a step's peak
  /// higher by that share at the most; negative: they stay as the pool's growth policy says.
  double larger_chunks = 0.01;
  /// Share of a step's time by which a plan made anew for the same limit has to do better than the one before, whose
  /// mappings are there; below -1: it need not.
  double better = 0.02;
  std::size_t most_events = 2'000'000;  ///< of one step, beyond which it is not logged; 12 bytes each
  std::size_t most_plans = 8;           ///< kinds of steps known side by side
  time unmeasured{10'000};              ///< how long an operation runs of whose step no time is known
};

/// What a pager has done so far.
struct pager_stats {
  std::uint64_t planned_out = 0;  ///< blocks sent away by schedule
  std::uint64_t planned_in = 0;   ///< and brought back by it ahead of their access
  std::uint64_t evictions = 0;    ///< blocks sent away because memory was out
  bytes evicted = 0;
  std::uint64_t misses = 0;      ///< accesses that found a block absent, and nothing had foreseen it
  std::uint64_t late = 0;        ///< accesses that found a block absent whose planned way back had not begun
  std::uint64_t discarded = 0;   ///< blocks that left without being copied, to be made again
  std::uint64_t recomputed = 0;  ///< and were
  std::uint64_t refused = 0;     ///< blocks that were to leave and stayed: the host had no memory, the driver failed
  std::uint64_t host_waits = 0;  ///< waits for memory to become free
  std::uint64_t host_wait_ns = 0;
  std::uint64_t turns_awaited = 0;  ///< steps that waited for other jobs' steps
  std::uint64_t turns_passed = 0;   ///< steps that got nowhere while others waited for them
  std::uint64_t steps = 0;
  std::uint64_t steps_by_schedule = 0;  ///< from end to end
  std::uint64_t departures = 0;         ///< steps that did something else than the schedule in force foresaw
  std::uint64_t plans_made = 0;
  std::uint64_t plans_failed = 0;      ///< none was found that meets the limit
  std::uint64_t plans_reverted = 0;    ///< for the ones before, by which steps were shorter
  std::uint64_t steps_waiting = 0;     ///< for what was mapped, rather than have other memory mapped
  std::uint64_t steps_host_bound = 0;  ///< by a plan that knows when operations are launched
  std::uint64_t plans_kept = 0;        ///< as one made anew would have done no better
  std::uint64_t steps_not_logged = 0;
};

/// What the schedule in force is expected to come to.
struct forecast {
  time step{};            ///< a step's time; where jobs take turns, of a step of each
  time stalled{};         ///< of that, waiting
  time least{};           ///< `time_bound`, blocks counted in whole chunks; 0 where no schedule meets the target
  bytes peak = 0;         ///< of swappable blocks
  bytes target = 0;       ///< what the schedule was made for
  bytes out = 0, in = 0;  ///< bytes a step
  std::uint32_t moves = 0;
  std::uint32_t recomputed = 0;  ///< blocks

  /// Whether it meets its target; else what has to leave on demand does so whatever is planned.
  [[nodiscard]] constexpr bool fits() const noexcept { return peak <= target; }
};

}  // namespace gmlake::swap
