#pragma once
/// Gives the requests of a plan their places: in a space of its own, or where that turns out higher than what there is,
/// in several segments. Deterministic where the packers are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/lifetimes.hpp"
#include "gmlake/plan/portfolio.hpp"
#include "gmlake/plan/track.hpp"

namespace gmlake::plan {

namespace detail {

/// Events between two streams' uses of the same bytes, where that can be had: as far as the host mostly runs ahead.
inline constexpr instant wide_gap = 1024;
/// So much height is given for fewer waits.
inline constexpr double height_for_gap = 1.003;

[[nodiscard]] inline stepwise problem_of(plan const& p, instant gap) {
  return problem_of(p.requests, p.repeats ? p.period : 0, gap);
}
inline void pack_into(plan& p, stepwise const& s, portfolio_options const& o) {
  place(p, portfolio(o).pack(s.of).solution, s.requests);
}

}  // namespace detail

/// What a packing with the wide gap may take: a good one is mostly found at once, or there is none.
[[nodiscard]] inline std::uint64_t brief_work(std::size_t buffers) noexcept {
  return portfolio::usual_work(buffers) / 4;
}

/// The plan with its requests placed and its bound. Two streams share bytes only with many events between where that
/// costs next to nothing, since whoever follows the plan must make the later one wait. As expensive as the portfolio.
/// Throws `std::bad_alloc`.
[[nodiscard]] inline plan packed_plan(plan p, portfolio_options const& o = {}) {
  stepwise const any = detail::problem_of(p, 0);
  p.bound = lower_bound(any.of);
  bool const streams =
      std::ranges::any_of(p.requests, [&](step_request const& r) { return r.stream != p.requests.front().stream; });
  if (streams) {
    stepwise const wide = detail::problem_of(p, detail::wide_gap);
    portfolio_options brief = o;
    if (brief.work == 0) brief.work = brief_work(wide.of.buffers.size());
    detail::pack_into(p, wide, brief);
    if (static_cast<double>(p.height) <= detail::height_for_gap * static_cast<double>(p.bound)) return p;
  }
  detail::pack_into(p, any, o);
  return p;
}

/// The same in segments, in order of their offsets. Where the first one isn't high enough, buffers go into all of them;
/// what finds no room lies beyond the last.
[[nodiscard]] inline plan packed_plan(plan p, std::span<segment const> segments, portfolio_options const& o = {}) {
  p = packed_plan(std::move(p), o);
  if (segments.size() < 2 || p.height <= segments.front().size) return p;
  stepwise s = detail::problem_of(p, 0);
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    bytes const end = segments[i].offset + segments[i].size;
    s.of.buffers.push_back(
        {.lower = 0, .upper = p.period, .size = segments[i + 1].offset - end, .stream = 0, .fixed = end});
  }
  detail::pack_into(p, s, o);
  return p;
}

}  // namespace gmlake::plan
