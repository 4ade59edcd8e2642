#pragma once
/// When the operations of a step are taken to run: as they would without stalls, or as a simulation found them. Stalls
/// are the gaps between them.

#include <cstdint>
#include <vector>

#include "gmlake/swap/outcome.hpp"
#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

struct pace {
  std::vector<time> begins, ends;
  time step{};

  /// Of an operation in any step.
  [[nodiscard]] time begin_of(std::int64_t i) const noexcept { return in_step(begins, i); }
  [[nodiscard]] time end_of(std::int64_t i) const noexcept { return in_step(ends, i); }

 private:
  [[nodiscard]] time in_step(std::vector<time> const& of, std::int64_t i) const noexcept {
    auto const n = static_cast<std::int64_t>(of.size());
    std::int64_t const s = i >= 0 ? i / n : -((n - 1 - i) / n);
    return of[static_cast<std::size_t>(i - s * n)] + s * step;
  }
};

[[nodiscard]] inline pace pace_of(setting const& at) {
  auto const& s = at.starts();
  return {{s.begin(), s.end() - 1}, {s.begin() + 1, s.end()}, at.step_time()};
}

/// As simulated, with stalls shortened to `part` of their length, in thousandths.
[[nodiscard]] inline pace pace_of(setting const& at, outcome const& o, std::int64_t part = 1000) {
  pace found = pace_of(at);
  time late{};
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < at.size(); ++i) {
    while (next < o.stalls.size() && o.stalls[next].operation == i) late += o.stalls[next++].length * part / 1000;
    found.begins[i] += late;
    found.ends[i] += late;
  }
  found.step += late;
  return found;
}

}  // namespace gmlake::swap
