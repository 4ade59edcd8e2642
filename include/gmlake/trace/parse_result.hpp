#pragma once
/// What a reader gives back: a well-formed trace, or the first line that is not part of one and why.
///
/// Every reader keeps the invariant that a trace without an error is well-formed: ids dense in order of birth, each
/// freed at most once and only while live, sizes and their live sum within `max_size`; accesses only of what lives, no
/// write behind a host copy, and the sum of all times within `max_time`. Nothing here throws but for want of host
/// memory.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gmlake/trace/event.hpp"

namespace gmlake::trace {

/// No size, nor the sum of those live at once, may exceed this: a device's address space is 47 bits wide.
inline constexpr bytes max_size = bytes{1} << 47;

/// The sum of the times of all operations, in nanoseconds: what fits a signed number of 64 bits, 292 years.
inline constexpr std::uint64_t max_time = std::numeric_limits<std::int64_t>::max();

/// No line may be longer; far above what either format needs.
inline constexpr std::size_t max_line_length = 4096;

struct parse_error {
  std::uint64_t line = 0;  ///< counted from 1
  std::string message;     ///< without the line's number and a full stop
};

struct parse_result {
  trace value;        ///< meaningless where there is an error
  parse_error error;  ///< line 0: none

  [[nodiscard]] bool has_value() const noexcept { return error.line == 0; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
};

/// `text` in quotes for a message: printable, and cut off where it is long.
[[nodiscard]] inline std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 40;
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char const c : text.substr(0, longest)) {
    auto const code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code < 0x7f) out += c;
    else (((out += "\\x") += digits[code >> 4]) += digits[code & 15]);
  }
  return out += text.size() > longest ? "...\"" : "\"";
}

}  // namespace gmlake::trace
