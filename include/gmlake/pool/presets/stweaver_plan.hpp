#pragma once
/// The plan of `stweaver`, made from a profiled run: what comes before an iteration, once, and the iteration, which
/// repeats, in one space. Source: Huang et al., arXiv 2507.16274, and its code (STAlloc, `Synthesizer`).
///
/// The run's time is taken as it was, from its beginning to the iteration's end. A buffer that lives on after that is
/// planned up to there, as theirs: the next iteration may find its place in use. As their tuner does, a few ways to
/// group are tried: by the run's marks, at the peak, and by equal parts of time. What the iteration leaves behind for
/// good has no place, like the authors' "unreleased" ones, since each further iteration would need another.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "gmlake/plan/grouped.hpp"
#include "gmlake/plan/lifetimes.hpp"
#include "gmlake/plan/plan.hpp"

namespace gmlake {

struct stweaver_profile {
  /// Which of the run's is planned, counted from 0. The first is rarely like the others.
  std::size_t iteration = 1;
  /// Entries that the packer looks at before it gets hasty, each time: some ten seconds.
  std::uint64_t work = 4'000'000'000;
};

namespace stweaver_detail {

/// The lowest of a few ways to group. Phases begin at the marks before `end`.
[[nodiscard]] inline plan::solution pack(plan::problem const& lives, std::vector<plan::phase> const& marks,
                                         plan::instant end, std::uint64_t work) {
  plan::grouped_options by_marks{.work = work};
  for (plan::phase const& p : marks) {
    if (p.begin == 0 || p.begin >= end) continue;
    if (by_marks.boundaries.empty() || by_marks.boundaries.back() != p.begin) by_marks.boundaries.push_back(p.begin);
  }
  plan::solution lowest = plan::grouped{by_marks}.pack(lives);
  for (unsigned const parts : {0u, 8u, 32u}) {
    plan::solution other = plan::grouped{{.parts = parts, .work = work}}.pack(lives);
    if (other.height < lowest.height) lowest = std::move(other);
  }
  return lowest;
}

}  // namespace stweaver_detail

/// What comes before the iteration, then the iteration; none where the run doesn't have it whole. Takes the packer's
/// time. Throws only `std::bad_alloc`.
[[nodiscard]] inline std::vector<plan::plan> make_stweaver_plans(plan::lifetimes const& run,
                                                                 stweaver_profile const& profile = {}) {
  std::vector<plan::phase> steps;
  std::ranges::copy_if(run.phases(), std::back_inserter(steps), [](plan::phase const& p) { return p.label == "step"; });
  if (steps.size() < profile.iteration + 2) return {};
  plan::phase const& begin = steps[profile.iteration];
  plan::phase const& end = steps[profile.iteration + 1];

  std::vector<plan::plan> plans(2);
  plan::plan& before = plans[0];
  plan::plan& iteration = plans[1];
  before.repeats = false;
  before.period = begin.begin;
  iteration.period = end.begin - begin.begin;
  plan::problem lives;
  std::vector<plan::step_request*> whose;  // by buffer of the problem
  before.requests.reserve(begin.first);
  iteration.requests.reserve(end.first - begin.first);
  for (std::uint64_t i = 0; i < end.first; ++i) {
    plan::lifetime const& l = run.all()[i];
    bool const in_it = i >= begin.first;
    plan::instant const zero = in_it ? begin.begin : 0;
    bool const for_good = l.death == plan::step_request::stays || (in_it && l.death - l.birth > iteration.period);
    plan::instant const death = for_good ? plan::step_request::stays : l.death - zero;
    auto& requests = in_it ? iteration.requests : before.requests;
    requests.push_back({l.size, l.stream, l.birth - zero, death});
    if (in_it && for_good) continue;
    lives.buffers.push_back(
        {.lower = l.birth, .upper = std::min(l.death, end.begin), .size = l.size, .stream = l.stream, .fixed = {}});
    whose.push_back(&requests.back());
  }
  plan::solution const lowest = stweaver_detail::pack(lives, run.phases(), end.begin, profile.work);
  for (std::size_t b = 0; b < whose.size(); ++b) whose[b]->offset = lowest.offsets[b];
  before.height = iteration.height = lowest.height;
  return plans;
}

}  // namespace gmlake
