#pragma once
/// What charts are drawn with: lines through samples, areas, axes. Only for this folder's sources.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "format.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake::tools::charts {

/// Heights run from 0 at the top to this at the bottom: finer than any screen, coarse enough to stay short.
inline constexpr double height = 10000;

[[nodiscard]] inline int y_of(bytes n, bytes top) {
  return static_cast<int>(std::lround(height * (1 - static_cast<double>(n) / static_cast<double>(top))));
}

/// The line through one quantity of the samples, which are some, as relative moves, which are short.
template <class Sample>
[[nodiscard]] std::string line(std::vector<Sample> const& samples, bytes Sample::* quantity, bytes top) {
  int last = y_of(samples.front().*quantity, top);
  std::string d = "M0 " + std::to_string(last) + "l";
  for (std::size_t i = 1; i < samples.size(); ++i) {
    int const y = y_of(samples[i].*quantity, top);
    d += "1 " + std::to_string(y - last) + " ";
    last = y;
  }
  return samples.size() > 1 ? d : d + "1 0";  // one sample is a line too
}

/// The area under such a line.
[[nodiscard]] inline std::string area(std::string line, std::size_t samples) {
  return line += "L" + std::to_string(std::max<std::size_t>(samples, 2) - 1) + " 10000L0 10000Z";
}

[[nodiscard]] inline std::string horizontal(char const* kind, int y, double right) {
  std::string const at = std::to_string(y);
  return std::string("<path class=\"") + kind + "\" d=\"M0 " + at + "H" + fixed(right, 0) + "\"/>";
}

/// A mark on an axis.
struct tick {
  double at;  ///< from 0 to 1
  std::string label;
};

/// Round values up to `top`, about `wanted` of them, without 0.
[[nodiscard]] inline std::vector<double> round_values(double top, double wanted) {
  double const power = std::pow(10, std::floor(std::log10(top / wanted)));
  double step = 10 * power;
  for (double const digit : {1.0, 2.0, 5.0}) {
    if (top / (digit * power) <= wanted) {
      step = digit * power;
      break;
    }
  }
  std::vector<double> values;
  for (int k = 1; k * step <= top * 1.0001; ++k) values.push_back(k * step);
  return values;
}

[[nodiscard]] inline std::string short_number(double n) {
  if (n >= 1e6) return fixed(n / 1e6, std::fmod(n, 1e6) == 0 ? 0 : 1) + "M";
  if (n >= 1e3) return fixed(n / 1e3, std::fmod(n, 1e3) == 0 ? 0 : 1) + "k";
  return fixed(n, 0);
}

[[nodiscard]] inline std::vector<tick> size_ticks(bytes top) {
  double const unit = static_cast<double>(top >= 2_GiB ? 1_GiB : top >= 2_MiB ? 1_MiB : 1_KiB);
  char const* const name = top >= 2_GiB ? " GiB" : top >= 2_MiB ? " MiB" : " KiB";
  double const highest = static_cast<double>(top) / unit;
  std::vector<tick> ticks = {{0, "0"}};
  for (double const v : round_values(highest, 5.5)) ticks.push_back({v / highest, fixed(v, v < 1 ? 1 : 0) + name});
  return ticks;
}

/// Along `axis`, whose ticks are placed from `side`.
[[nodiscard]] inline std::string labels(std::vector<tick> const& ticks, char const* axis, char const* side) {
  std::string out = std::string("<div class=\"") + axis + "\" aria-hidden=\"true\">";
  for (tick const& t : ticks)
    out += std::string("<span style=\"") + side + ":" + fixed(100 * t.at, 2) + "%\">" + t.label + "</span>";
  return out + "</div>";
}

}  // namespace gmlake::tools::charts
