#pragma once
/// What a job's step claims of the memory that several jobs share: what it takes beyond what the job has at rest.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gmlake/swap/load.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/step_log.hpp"

namespace gmlake::swap {

struct step_claims {
  bytes resting = 0;          ///< while none of the job's steps runs
  std::vector<bytes> beyond;  ///< by operation: what the rest of the step, from it on, takes at its peak beyond that
};

/// Linear. Throws `std::bad_alloc`.
[[nodiscard]] inline step_claims claims_of(step_program const& p) {
  bytes before = 0, behind = 0;
  for (std::size_t v = 0; v < p.program.variables.size(); ++v) {
    variable const& of = p.program.variables[v];
    if (of.carried || p.who[v].is == identity::kind::left_over) before += of.size;
    if (of.carried || p.who[v].outlives) behind += of.size;
  }
  step_claims made{std::max(before, behind), loads_of(p.program)};
  bytes most = 0;
  for (std::size_t i = made.beyond.size(); i-- > 0;) {
    bytes const load = made.beyond[i];
    made.beyond[i] = most = std::max(most, load > made.resting ? load - made.resting : 0);
  }
  return made;
}

/// Whether the steps of all have room at the same time.
[[nodiscard]] inline bool fit_at_once(std::vector<step_program> const& jobs, bytes target) {
  bytes all = 0;
  for (step_program const& p : jobs) {
    step_claims const c = claims_of(p);
    all += c.resting + (c.beyond.empty() ? 0 : c.beyond.front());
  }
  return all <= target;
}

}  // namespace gmlake::swap
