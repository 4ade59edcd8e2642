#pragma once
/// Several programs that share memory and channel, each repeating at its own period, as one program: what is planned
/// for it limits the peak of their sum, not the sum of their peaks (the setting of TENSILE, arXiv 2105.13336).
///
/// Its operations are the times between any two boundaries of theirs. A variable is accessed in all of those that make
/// up an operation which accesses it. Holds while none stalls and their phases stay: the whole stalls where one does.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gmlake/swap/program.hpp"
#include "gmlake/swap/timing.hpp"

namespace gmlake::swap {

/// Where a variable comes from.
struct origin {
  std::uint32_t job = 0, variable = 0;
  std::uint32_t step = 0;  ///< of the job, within the common step; 0 for what is carried
};

struct joint_program {
  swap::program program;
  std::vector<origin> origins;                   ///< of its variables
  std::vector<std::vector<std::uint32_t>> runs;  ///< for each job and operation: which of the job's own is running
  std::vector<std::uint32_t> steps;              ///< of each job in a common step
  double stretch = 0;  ///< by how much a job's time was changed at most, as a share of it, to make steps meet
};

/// Jobs begin a step together. The common step is that many steps of the longest, up to `most_steps`, which whole
/// numbers of the others' come nearest to; the least of equals. Precondition: all are well-formed, take time and
/// outlive it. O(n log n) in what comes out.
class side_by_side {
 public:
  explicit side_by_side(std::vector<program> const& jobs, std::uint32_t most_steps = 8) : jobs_(jobs) {
    for (program const& p : jobs) starts_.push_back(starts_of(p));
    choose_steps(most_steps);
  }
  explicit side_by_side(std::vector<program>&&, std::uint32_t = 0) = delete;

  [[nodiscard]] joint_program join() const {
    joint_program made;
    made.steps = steps_;
    made.stretch = stretch_;
    std::vector<time> bounds;
    for (std::uint32_t j = 0; j < jobs_.size(); ++j) {
      for (std::uint32_t s = 0; s < steps_[j]; ++s) {
        for (std::uint32_t i = 0; i < starts_[j].size(); ++i) bounds.push_back(at(j, s, i));
      }
    }
    std::ranges::sort(bounds);
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    for (std::size_t k = 0; k + 1 < bounds.size(); ++k) made.program.operations.push_back(bounds[k + 1] - bounds[k]);
    for (std::uint32_t j = 0; j < jobs_.size(); ++j) add(j, bounds, made);
    return made;
  }

 private:
  /// Of the joint program's operations: those that one of a job's takes.
  struct range {
    std::uint32_t first, end;
  };

  void choose_steps(std::uint32_t most_steps) {
    time longest{};
    for (auto const& s : starts_) longest = std::max(longest, s.back());
    stretch_ = 2;
    for (std::uint32_t k = 1; k <= std::max(most_steps, 1U); ++k) {
      std::vector<std::uint32_t> steps;
      double most = 0;
      for (auto const& s : starts_) {
        auto const own = static_cast<double>(s.back().count());
        double const whole = static_cast<double>(longest.count()) * k;
        steps.push_back(std::max(1U, static_cast<std::uint32_t>(std::llround(whole / own))));
        most = std::max(most, std::abs(whole / (steps.back() * own) - 1));
      }
      if (most >= stretch_) continue;
      stretch_ = most;
      steps_ = steps;
      common_ = longest * k;
    }
  }

  /// When operation `i` of a job's step begins; its end too, as the operation after the last.
  [[nodiscard]] time at(std::uint32_t j, std::uint32_t step, std::uint32_t i) const {
    double const own = static_cast<double>(starts_[j].back().count());
    double const whole = own * step + static_cast<double>(starts_[j][i].count());
    return time(std::llround(whole / (own * steps_[j]) * static_cast<double>(common_.count())));
  }

  void add(std::uint32_t j, std::vector<time> const& bounds, joint_program& made) const {
    auto const end = static_cast<std::uint32_t>(bounds.size() - 1);
    auto const n = static_cast<std::uint32_t>(jobs_[j].operations.size());
    std::vector<range> ranges;  // of the operations of all steps
    std::vector<std::uint32_t>& runs = made.runs.emplace_back(end);
    for (std::uint32_t s = 0; s < steps_[j]; ++s) {
      for (std::uint32_t i = 0; i < n; ++i) {
        auto const position = [&](time t) {
          return static_cast<std::uint32_t>(std::ranges::lower_bound(bounds, t) - bounds.begin());
        };
        std::uint32_t const first = std::min(position(at(j, s, i)), end - 1);
        // One that takes no time has the operation that follows.
        ranges.push_back({first, std::max(position(at(j, s, i + 1)), first + 1)});
        std::fill(runs.begin() + first, runs.begin() + ranges.back().end, i);
      }
    }
    for (std::uint32_t v = 0; v < jobs_[j].variables.size(); ++v) {
      variable const& old = jobs_[j].variables[v];
      variable now{.size = old.size, .carried = old.carried, .has_copy = old.has_copy, .recompute = old.recompute};
      for (std::uint32_t s = 0; s < steps_[j]; ++s) {
        range const* const own = ranges.data() + std::size_t{s} * n;
        for (access const& a : old.accesses) add_accesses(own[a.operation], a, now.accesses);
        if (old.carried && s + 1 < steps_[j]) continue;
        now.birth = old.carried ? 0 : own[old.birth].first;
        now.death = old.carried ? end : own[old.death - 1].end;
        made.program.variables.push_back(now);
        made.origins.push_back({j, v, old.carried ? 0 : s});
        now.accesses.clear();
      }
    }
  }

  static void add_accesses(range const& to, access const& a, std::vector<access>& all) {
    for (std::uint32_t i = to.first; i < to.end; ++i) {
      if (all.empty() || all.back().operation != i) all.push_back({i, false, false, a.recomputable});
      all.back().reads = all.back().reads || a.reads;
      all.back().writes = all.back().writes || a.writes;
    }
  }

  std::vector<program> const& jobs_;
  std::vector<std::vector<time>> starts_;
  std::vector<std::uint32_t> steps_;
  time common_{};
  double stretch_ = 0;
};

}  // namespace gmlake::swap
