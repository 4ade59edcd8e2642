#pragma once
/// Finds what moves in a step, and what is made again: at a limit the least stall, or where none is found that meets
/// it, at the least limit that any meets.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "gmlake/swap/least_stall.hpp"
#include "gmlake/swap/lowest_peak.hpp"
#include "gmlake/swap/one_after_another.hpp"
#include "gmlake/swap/recomputing.hpp"

namespace gmlake::swap {

/// A schedule for `at`, and whether it meets `target`. Takes about a second. Throws `std::bad_alloc`.
[[nodiscard]] inline std::pair<solution, bool> schedule_for(setting const& at, bytes target) {
  if (at.size() == 0 || at.peak() <= target) return {{{}, simulate(at.program(), {}, at.channel())}, true};
  // The least limit: where transfers take time it may not be met itself.
  constexpr double above[] = {1, 1.005, 1.02, 1.1, 1.25};
  std::optional<solution> best = least_stall(at, target).find();
  bool const meets = best.has_value();
  for (double const f : above) {
    if (best) break;
    bytes const limit = std::max(target, static_cast<bytes>(static_cast<double>(least_limit(at)) * f));
    if (limit < at.peak()) best = least_stall(at, limit).find();
  }
  if (!best) best = lowest_peak(at).find();
  return {std::move(*best), meets};
}

/// Of a round of steps. Where contents are made again, `of` has the parts of what is split.
struct step_schedule {
  joint_program of;
  std::vector<absence> discarded;  ///< what is away without being copied, and made again
  solution found;
  bool meets_target = false;
};

/// Recomputes where swapping alone stalls: what spares the channel about as much as that, half and twice as much, or
/// all that is worth it; the best of these. Blocks of less than `smallest` bytes stay. Up to five seconds, where there
/// is something to recompute. Throws `std::bad_alloc`.
[[nodiscard]] inline step_schedule schedule_step(joint_program joint, channel const& c, bytes smallest, bytes target) {
  setting const at(joint.program, c, smallest);
  auto [found, meets] = schedule_for(at, target);
  step_schedule best{.of = {}, .discarded = {}, .found = std::move(found), .meets_target = meets};
  std::optional<step_schedule> other;
  if (!meets || best.found.outcome.stalled > time::zero()) {
    std::vector<absence> const worth = worth_recomputing(at);
    std::vector<std::size_t> counts;
    for (double const share : {0.5, 1.0, 2.0}) {
      auto const wanted = static_cast<double>(best.found.outcome.stalled.count()) * share;
      double spared = 0;
      std::size_t k = 0;
      while (k < worth.size() && spared < wanted) spared += static_cast<double>(at.in_time(worth[k++]).count());
      counts.push_back(k);
    }
    counts.push_back(worth.size());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (std::size_t const k : counts) {
      if (k == 0) continue;
      recomputed_program parts = recompute(joint.program, std::span(worth).first(k));
      step_schedule next{.of = joint, .discarded = std::move(parts.discarded), .found = {}, .meets_target = false};
      next.of.origins.clear();
      for (std::uint32_t const v : parts.of) next.of.origins.push_back(joint.origins[v]);
      next.of.program = std::move(parts.program);
      std::tie(next.found, next.meets_target) = schedule_for(setting(next.of.program, c, smallest), target);
      step_schedule const& least = other ? *other : best;
      bool const quicker = next.found.outcome.total < least.found.outcome.total;
      if (next.meets_target == least.meets_target ? quicker : next.meets_target) other = std::move(next);
    }
  }
  if (other) return std::move(*other);
  best.of = std::move(joint);
  return best;
}

}  // namespace gmlake::swap
