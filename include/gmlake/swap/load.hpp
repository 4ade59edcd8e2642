#pragma once
/// How much memory a program takes while nothing leaves: at each operation, the bytes of what lives then.

#include <algorithm>
#include <vector>

#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// Bytes for each operation. Linear.
[[nodiscard]] inline std::vector<bytes> loads_of(program const& p) {
  std::vector<bytes> loads(p.operations.size() + 1);
  for (variable const& v : p.variables) {
    loads[v.birth] += v.size;
    loads[v.death] -= v.size;  // wraps below zero, and back in the sum
  }
  bytes live = 0;
  for (bytes& l : loads) l = live += l;
  loads.pop_back();
  return loads;
}

/// The highest of them; 0 where there are none.
[[nodiscard]] inline bytes peak_of(std::vector<bytes> const& loads) noexcept {
  return loads.empty() ? 0 : *std::ranges::max_element(loads);
}

}  // namespace gmlake::swap
