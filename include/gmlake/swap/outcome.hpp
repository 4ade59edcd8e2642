#pragma once
/// What a step under a schedule comes to, once steps repeat themselves.

#include <cstdint>
#include <optional>
#include <vector>

#include "gmlake/swap/program.hpp"
#include "gmlake/swap/schedule.hpp"

namespace gmlake::swap {

enum class waits_for : std::uint8_t {
  arrival,  ///< what the operation accesses was not back
  room,     ///< what is born before it had no room
};

struct stall {
  std::uint32_t operation = 0;  ///< which waited
  time length{};
  waits_for cause = waits_for::arrival;  ///< the last that it waited for
  std::uint32_t variable = 0;            ///< which arrived last, where that is the cause
};

struct outcome {
  /// The limit can't be met in this order: here everything waits for something else. The rest says nothing then.
  std::optional<std::uint32_t> stuck;
  bool settled = false;       ///< a step was like the one before it; else `total` is of the slowest seen
  time total{};               ///< from one step's beginning to the next one's
  time stalled{};             ///< of that, while no operation ran
  std::vector<stall> stalls;  ///< by operation; the first one's stands at the end of the step before
  std::vector<time> starts;   ///< when operations began, from the step's beginning, and the step's end
  /// By move: when its transfers begin, counted from the beginning of the step in which they do.
  std::vector<time> ways_out, ways_back;
  bytes peak = 0;  ///< the most that was resident
  traffic moved;

  [[nodiscard]] bool meets_limit() const noexcept { return !stuck; }
  [[nodiscard]] bool without_stall() const noexcept { return !stuck && settled && stalled == time::zero(); }
};

}  // namespace gmlake::swap
