#pragma once
/// One plan as the tool knows it: what was packed, how it came out, and what a reader wants to know about it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gmlake/plan/plan.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::tools {

enum class record_kind : std::uint8_t {
  prologue,  ///< what a program does once, before its steps
  step,      ///< a step of a trace
  run,       ///< a whole trace, in which there are no steps
  problem,   ///< a file's
};

[[nodiscard]] constexpr std::string_view to_string(record_kind k) noexcept {
  switch (k) {
    case record_kind::prologue: return "prologue";
    case record_kind::step: return "step";
    case record_kind::run: return "run";
    case record_kind::problem: return "problem";
  }
  return "";
}

/// A part of the time, from the mark of that name to the next.
struct named_phase {
  std::string label;
  plan::instant begin = 0;
};

struct plan_record {
  std::string input;  ///< the file's name
  record_kind kind = record_kind::problem;
  std::uint64_t step = 0;      ///< which, from 1
  std::uint64_t times = 1;     ///< how often the trace has steps of this shape
  std::uint64_t requests = 0;  ///< all, also those that are not placed
  bytes kept = 0;              ///< of those not placed
  std::vector<named_phase> phases;

  plan::problem problem;
  plan::solution solution;
  bytes bound = 0;      ///< no solution is lower
  bool proven = false;  ///< no solution is lower than this one
  std::string packer;
  double ms = 0;
  std::string failure;  ///< empty: none
  plan::plan plan;      ///< of a trace's

  [[nodiscard]] bool ok() const noexcept { return failure.empty(); }
  /// Height over bound; 1 where there is nothing to place.
  [[nodiscard]] double ratio() const noexcept {
    return bound == 0 ? 1 : static_cast<double>(solution.height) / static_cast<double>(bound);
  }
  /// "prologue", "step 2", ...
  [[nodiscard]] std::string title() const {
    return std::string(to_string(kind)) + (kind == record_kind::step ? " " + std::to_string(step) : "");
  }
};

}  // namespace gmlake::tools
