#pragma once
/// The calls that a pool makes of its backend, by kind, and what they came to.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gmlake {

/// The kinds of call that a pool makes of its backend, in the order in which memory comes and goes.
enum class driver_call : std::uint8_t { create, map, set_access, unmap, release, reserve, unreserve };
inline constexpr std::array<std::string_view, 7> driver_call_names = {"create",  "map",     "set_access", "unmap",
                                                                      "release", "reserve", "unreserve"};

/// Calls of a backend, failed ones included, and the time spent in them.
struct driver_usage {
  struct line {
    std::uint64_t calls = 0;
    std::chrono::nanoseconds time{0};
  };
  std::array<line, driver_call_names.size()> lines{};

  [[nodiscard]] constexpr line& operator[](driver_call c) noexcept { return lines[static_cast<std::size_t>(c)]; }
  [[nodiscard]] constexpr line const& operator[](driver_call c) const noexcept {
    return lines[static_cast<std::size_t>(c)];
  }
  [[nodiscard]] constexpr line total() const noexcept {
    line sum;
    for (line const& l : lines) {
      sum.calls += l.calls;
      sum.time += l.time;
    }
    return sum;
  }
};

}  // namespace gmlake
