#pragma once
/// Which blocks of a step are movable ones, each on a mapping that is kept for it from step to step: what moves; and as
/// far as mappings suffice, whatever else is large enough, since its memory can be put together from any free chunks
/// then. Where there are too many, those that come and go between two moves do without.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

struct mapping_budget {
  std::size_t blocks = 3000;
  bytes addresses = bytes{160} << 30;
};

/// By variable, of those that are not carried. `moments`: the operations after which something leaves or comes back.
/// Precondition: `moves` has each of the program's variables. O(n log n).
[[nodiscard]] inline std::vector<bool> own_mappings(program const& p, std::vector<bool> const& moves,
                                                    std::vector<std::uint32_t> moments, bytes smallest,
                                                    mapping_budget const& most = {}) {
  std::ranges::sort(moments);
  auto const spans = [&](variable const& v) {
    auto const next = std::ranges::lower_bound(moments, v.birth);
    return next != moments.end() && *next < v.death;
  };
  std::vector<bool> all(p.variables.size()), lasting(p.variables.size());
  std::size_t blocks = 0;
  bytes addresses = 0;
  for (std::size_t v = 0; v < all.size(); ++v) {
    variable const& of = p.variables[v];
    if (of.carried || (of.size < smallest && !moves[v])) continue;
    all[v] = true;
    lasting[v] = moves[v] || spans(of);
    ++blocks;
    addresses += of.size;
  }
  return blocks <= most.blocks && addresses <= most.addresses ? all : lasting;
}

}  // namespace gmlake::swap
