#pragma once
/// What a step does, as swapping sees it: operations that run one after the other, each for a known time, and the
/// variables that they read and write.
///
/// Invariants (`find_fault`): a variable's accesses are in order, one an operation, none outside its life; lives are
/// not empty. Operations are numbered from 0; "before operation i" is a point in time, and `operations.size()` is the
/// step's end.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "gmlake/core/types.hpp"

namespace gmlake::swap {

using time = std::chrono::nanoseconds;

/// An operation's use of a variable. One that only writes needs none of the old contents.
struct access {
  std::uint32_t operation = 0;
  bool reads = true;
  bool writes = false;
  bool recomputable = false;  ///< what it finds can be made again, instead of being brought back
};

/// A block of memory over one step.
struct variable {
  bytes size = 0;
  std::uint32_t birth = 0;  ///< it exists from before this operation on
  std::uint32_t death = 0;  ///< and until before this one
  /// It lives across the step's end, and the next step's beginning finds it as it was: birth is 0 and death the step's
  /// end, and between its last access and its first of the next step it may be absent.
  bool carried = false;
  /// Its owner keeps it beyond the step's end, which is its death here.
  bool handed_on = false;
  /// The host has its contents already, and no access writes: it leaves without being copied.
  bool has_copy = false;
  time recompute{};  ///< how long the device takes to make its contents again, where an access allows that
  std::vector<access> accesses = {};
};

struct program {
  std::vector<time> operations;  ///< how long each runs, when nothing holds it up
  std::vector<variable> variables;
  /// When the host has launched each, from the first one's launch on, before which it can't begin; none: the host is
  /// ahead throughout.
  std::vector<time> launched = {};
};

/// Null, or the invariant that is broken. Linear.
[[nodiscard]] inline char const* find_fault(program const& p) noexcept {
  std::size_t const end = p.operations.size();
  for (time const t : p.operations) {
    if (t < time::zero()) return "an operation takes no negative time";
  }
  if (!p.launched.empty() && p.launched.size() != end) return "all operations' launches are known, or none's";
  if (!std::ranges::is_sorted(p.launched)) return "operations are launched in order";
  for (variable const& v : p.variables) {
    if (v.birth >= v.death || v.death > end) return "a variable lives within the step, for an operation at least";
    if (v.recompute < time::zero()) return "making contents again takes no negative time";
    if (v.carried && (v.birth != 0 || v.death != end)) return "what is carried lives for the whole step";
    if (v.handed_on && (v.carried || v.death != end)) return "what is handed on lives up to the step's end";
    for (std::size_t i = 0; i < v.accesses.size(); ++i) {
      access const& a = v.accesses[i];
      if (a.operation < v.birth || a.operation >= v.death) return "accesses lie within a variable's life";
      if (i > 0 && a.operation <= v.accesses[i - 1].operation) return "a variable's accesses are in order";
      if (!a.reads && !a.writes) return "an access reads or writes";
      if (a.writes && v.has_copy) return "what the host has a copy of is not written";
    }
  }
  return nullptr;
}

}  // namespace gmlake::swap
