#pragma once
/// What lies between runs of addresses.

#include <algorithm>
#include <span>

#include "gmlake/core/types.hpp"

namespace gmlake {

struct address_run {
  address begin{};
  address end{};

  [[nodiscard]] bool overlaps(address low, address high) const noexcept { return begin < high && low < end; }
};

/// Calls `f(begin, end)` for each part of [low, high) that no run covers. The runs are in order of their beginnings,
/// may overlap, and none reaches across `low`. O(log n) and the runs there.
template <class F>
void each_gap(std::span<address_run const> runs, address low, address high, F&& f) {
  auto next = std::ranges::lower_bound(runs, low, {}, &address_run::begin);
  for (address at = low; at < high; ++next) {
    bool const last = next == runs.end() || next->begin >= high;
    address const upto = last ? high : next->begin;
    if (upto > at) f(at, upto);
    if (last) return;
    at = std::max(at, next->end);
  }
}

}  // namespace gmlake
