#pragma once
/// When a variable may be away: between two accesses that follow one another, and for what is carried also from its
/// last access to its first of the next step. What dies in the step may also be away from its last access on; it does
/// not come back then, unless its owner wants it after all. Before its first access it stays, and so does what is never
/// accessed, as its owner may use it unseen.
///
/// What the next access does makes no difference: one that only writes may leave a part as it was, so the contents come
/// back for any.

#include <cstdint>
#include <vector>

#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// Operations are counted on past the step's end: `before` is at most a step later than `after`.
///
///     0 ... after            before ... n          0 ... before - n       after ... n
///           [##]  may be away [##]                        [##]  present    [##]  away, over the step's end
struct absence {
  std::uint32_t variable = 0;
  std::uint32_t after = 0;   ///< the operation of the last access
  std::uint32_t before = 0;  ///< the operation of the next one, or its death; an operation at least lies between

  friend bool operator==(absence const&, absence const&) = default;
};

/// Whether something comes back at its end: not where that is the variable's death.
[[nodiscard]] inline bool comes_back(program const& p, absence const& a) noexcept {
  variable const& v = p.variables[a.variable];
  return v.carried || a.before < v.death;
}

/// In the order of variables, and of operations within one. Linear.
[[nodiscard]] inline std::vector<absence> absences_of(program const& p) {
  auto const end = static_cast<std::uint32_t>(p.operations.size());
  std::vector<absence> all;
  for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
    variable const& of = p.variables[v];
    auto const& accesses = of.accesses;
    auto const add = [&](std::uint32_t after, std::uint32_t before) {
      if (before > after + 1) all.push_back({v, after, before});
    };
    for (std::size_t k = 0; k + 1 < accesses.size(); ++k) add(accesses[k].operation, accesses[k + 1].operation);
    if (accesses.empty() || of.handed_on) continue;
    add(accesses.back().operation, of.carried ? accesses.front().operation + end : of.death);
  }
  return all;
}

}  // namespace gmlake::swap
