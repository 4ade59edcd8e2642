#pragma once
/// Numbers as people read them.

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "gmlake/core/types.hpp"

namespace gmlake::tools {

[[nodiscard]] inline std::string fixed(double value, int decimals) {
  std::array<char, 64> text;
  int const n = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return {text.data(), static_cast<std::size_t>(n > 0 ? n : 0)};
}

/// 1234567 as "1,234,567".
[[nodiscard]] inline std::string grouped(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

/// In MiB, rounded, grouped; without the unit. What is not 0 does not read 0.
[[nodiscard]] inline std::string mebibytes(bytes n) {
  return n != 0 && n < 1_MiB / 2 ? "<1" : grouped((n + 1_MiB / 2) / 1_MiB);
}

/// With the unit that suits.
[[nodiscard]] inline std::string readable(bytes n) {
  double const value = static_cast<double>(n);
  if (n >= 1_GiB) return fixed(value / static_cast<double>(1_GiB), n >= 100_GiB ? 0 : n >= 10_GiB ? 1 : 2) + " GiB";
  if (n >= 1_MiB) return fixed(value / static_cast<double>(1_MiB), n >= 100_MiB ? 0 : 1) + " MiB";
  if (n >= 1_KiB) return fixed(value / static_cast<double>(1_KiB), 1) + " KiB";
  return std::to_string(n) + " B";
}

[[nodiscard]] inline std::string percent(double part) { return fixed(100 * part, part < 0.0995 ? 2 : 1) + "%"; }

}  // namespace gmlake::tools
