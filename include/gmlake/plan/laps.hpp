#pragma once
/// Plans of steps some of whose blocks outlive the next step, such as a result that is kept until the next one is
/// there: two of them live at once, so each step's has to go elsewhere than the last one's. Such a plan is of several
/// steps on end, as many as the block lives through: its laps, alike but for the places.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gmlake/plan/plan.hpp"

namespace gmlake::plan {

/// A block that lives through more steps than that is not planned.
inline constexpr std::uint32_t most_laps = 4;
/// A smaller block is not worth them: the pool's other means serve it, and lose next to nothing by it.
inline constexpr bytes least_carried = 64_KiB;

/// From one step, whose requests may die any number of periods later, a plan of its laps, `most` at most; what outlives
/// all of them stays. O(n) in the plan's requests. Throws `std::bad_alloc`.
[[nodiscard]] inline plan in_laps(plan step, std::uint32_t most = most_laps) {
  constexpr std::size_t most_requests = std::size_t{1} << 20;
  instant const period = step.period;
  std::size_t const length = step.requests.size();
  // Steps differ by some events, and so does how long a block lives that goes when its successor comes.
  instant const about = period / 64 + most_laps;
  std::uint32_t laps = 1;
  for (step_request const& r : step.requests) {
    bool const carried = r.death != step_request::stays && r.death >= period && r.size >= least_carried;
    if (!carried || r.death - r.birth > most * period) continue;
    while (laps < most && r.death - r.birth + about > laps * period) ++laps;
  }
  if (laps * length > most_requests) laps = 1;
  step.laps = laps;
  step.period = laps * period;
  for (step_request& r : step.requests) {
    if (r.death != step_request::stays && r.death - r.birth > step.period) r.death = step_request::stays;
  }
  step.requests.reserve(laps * length);
  for (std::uint32_t lap = 1; lap < laps; ++lap) {
    for (std::size_t i = 0; i < length; ++i) {
      step_request r = step.requests[i];
      r.birth += lap * period;
      if (r.death != step_request::stays) r.death += lap * period;
      step.requests.push_back(r);
    }
  }
  return step;
}

/// The requests of one of the plan's steps.
[[nodiscard]] inline std::span<step_request const> first_lap(plan const& p) noexcept {
  return std::span(p.requests).first(p.requests.size() / p.laps);
}

/// Whether a step ends before request `next`, and the plan goes on with another lap.
[[nodiscard]] inline bool between_laps(plan const& p, std::size_t next) noexcept {
  return next > 0 && next < p.requests.size() && next % (p.requests.size() / p.laps) == 0;
}

}  // namespace gmlake::plan
