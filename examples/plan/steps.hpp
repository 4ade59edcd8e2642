#pragma once
/// Where the steps of a recorded run are, and which of them are alike. Only looks; what is to become of a step is
/// decided elsewhere.

#include <cstdint>
#include <vector>

#include "gmlake/plan/lifetimes.hpp"
#include "gmlake/plan/plan.hpp"

namespace gmlake::tools {

/// A part of a run: the requests [first, last), in the time [begin, end).
struct stretch {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  plan::instant begin = 0;
  plan::instant end = 0;
};

/// From each "step" mark to the next, or to the end.
[[nodiscard]] std::vector<stretch> marked_steps(plan::lifetimes const& run);

/// As plan::period_finder finds them, which knows no marks.
[[nodiscard]] std::vector<stretch> found_steps(plan::lifetimes const& run);

/// The stretch's requests in its own time. Those that live longer than `longest` stay.
[[nodiscard]] std::vector<plan::step_request> requests_of(plan::lifetimes const& run, stretch const& s,
                                                          plan::instant longest);
/// The same for a step, of which nothing may live longer than a period.
[[nodiscard]] inline std::vector<plan::step_request> requests_of(plan::lifetimes const& run, stretch const& step) {
  return requests_of(run, step, step.end - step.begin);
}

/// Steps with the same requests in the same order.
struct shape {
  std::vector<std::size_t> steps;  ///< indices, rising
  std::size_t usual = 0;           ///< of those whose requests die as in most of them, the first
};

/// By their first step.
[[nodiscard]] std::vector<shape> shapes_of(plan::lifetimes const& run, std::vector<stretch> const& steps);

}  // namespace gmlake::tools
