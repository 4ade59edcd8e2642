#pragma once
/// What every plan keeps, wherever it comes from. A plan that breaks a rule would have live blocks overwrite each
/// other; nobody may follow one that hasn't been asked about.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/plan.hpp"
#include "gmlake/plan/validate.hpp"

namespace gmlake::plan {

/// Sizes and offsets are multiples of this.
inline constexpr bytes placed_unit = 512;

namespace detail {

/// The first thing wrong with a request by itself; null: nothing.
[[nodiscard]] inline char const* find_fault(plan const& p, step_request const& r) noexcept {
  if (r.size == 0) return "a request has no bytes";
  if (!is_aligned(r.size, placed_unit)) return "a size is no multiple of 512";
  if ((p.repeats || p.period != 0) && r.birth >= p.period) return "a birth lies beyond the period";
  bool const stays = r.death == step_request::stays;
  if (!stays && r.death <= r.birth) return "a death comes before its birth";
  if (!stays && p.repeats && r.death - r.birth > p.period) return "a request lives longer than a period";
  if (r.offset == step_request::nowhere) return nullptr;
  if (!is_aligned(r.offset, placed_unit)) return "an offset is no multiple of 512";
  if (r.size > p.height || r.offset > p.height - r.size) return "a request ends beyond the plan's height";
  if (stays && p.repeats) return "a request that stays has an offset, which the next step would use again";
  return nullptr;
}

/// Whether two planned requests share bytes while both live. O(n log n). Each is right by itself.
[[nodiscard]] inline bool overlaps(plan const& p) {
  problem placed{.buffers = {}, .period = p.repeats ? p.period : 0};
  solution offsets;
  for (step_request const& r : p.requests) {
    if (r.offset == step_request::nowhere) continue;
    placed.buffers.push_back({.lower = r.birth, .upper = r.death, .size = r.size, .fixed = {}});
    offsets.offsets.push_back(r.offset);
    offsets.height = std::max(offsets.height, r.offset + r.size);
  }
  return validate(placed, offsets).has_value();
}

}  // namespace detail

/// What is wrong with a plan, in words; null: nothing. O(n log n). Throws only `std::bad_alloc`.
[[nodiscard]] inline char const* find_fault(plan const& p) {
  if (p.requests.size() >= std::numeric_limits<std::uint32_t>::max()) return "there are too many requests";
  if (p.repeats && p.requests.size() > p.period) return "there are more requests than the period has events";
  if (p.laps == 0 || p.requests.size() % p.laps != 0) return "the requests are not those of so many laps";
  bytes sum = 0;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    if (i > 0 && p.requests[i].birth <= p.requests[i - 1].birth) return "the requests are not in order of birth";
    if (char const* const fault = detail::find_fault(p, p.requests[i])) return fault;
    if (p.requests[i].size > std::numeric_limits<bytes>::max() - sum) return "the sum of sizes overflows";
    sum += p.requests[i].size;
  }
  return detail::overlaps(p) ? "two requests that live at once share bytes" : nullptr;
}

}  // namespace gmlake::plan
