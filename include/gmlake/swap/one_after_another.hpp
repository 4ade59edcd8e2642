#pragma once
/// Several jobs' steps that share memory and channel as one program: each job takes its step in turn, and what a job
/// keeps from step to step is there during the others'. What is planned for it limits the peak of their sum, not the
/// sum of their peaks (the setting of TENSILE, arXiv 2105.13336), and windows reach across the other jobs' steps.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gmlake/swap/program.hpp"
#include "gmlake/swap/step_log.hpp"

namespace gmlake::swap {

/// Where a variable comes from.
struct origin {
  std::uint32_t job = 0, variable = 0;
};

struct joint_program {
  swap::program program;
  std::vector<origin> origins;       ///< of its variables
  std::vector<std::uint32_t> first;  ///< by job: its first operation; and the end
};

/// In the order given. One alone stays what it is; of several the host is taken to be ahead. Linear. Throws
/// `std::bad_alloc`.
[[nodiscard]] inline joint_program one_after_another(std::vector<step_program> const& jobs) {
  joint_program made;
  std::size_t operations = 0;
  for (step_program const& p : jobs) {
    made.first.push_back(static_cast<std::uint32_t>(operations));
    operations += p.program.operations.size();
  }
  auto const end = static_cast<std::uint32_t>(operations);
  made.first.push_back(end);
  if (jobs.size() == 1) made.program.launched = jobs.front().program.launched;
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    program const& own = jobs[j].program;
    std::uint32_t const first = made.first[j];
    auto& all = made.program.operations;
    all.insert(all.end(), own.operations.begin(), own.operations.end());
    for (std::uint32_t v = 0; v < own.variables.size(); ++v) {
      identity const& who = jobs[j].who[v];
      variable now = own.variables[v];
      bool const before = now.carried || who.is == identity::kind::left_over;
      now.birth = before ? 0 : first + now.birth;
      now.death = now.carried || who.outlives ? end : first + now.death;
      for (access& a : now.accesses) a.operation += first;
      made.program.variables.push_back(std::move(now));
      made.origins.push_back({j, v});
    }
  }
  return made;
}

}  // namespace gmlake::swap
