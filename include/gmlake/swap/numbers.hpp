#pragma once
/// Numbers without order, the same on every machine (splitmix64: Steele, Lea & Flood, OOPSLA 2014).

#include <cstdint>

namespace gmlake::swap {

struct numbers {
  std::uint64_t state = 0;

  [[nodiscard]] constexpr std::uint64_t next() noexcept {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
  /// From 0 up to but without 1.
  [[nodiscard]] constexpr double share() noexcept {
    return static_cast<double>(next() >> 11) / static_cast<double>(std::uint64_t{1} << 53);
  }
};

}  // namespace gmlake::swap
