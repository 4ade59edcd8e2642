#pragma once
/// Cuts text that arrives in pieces into lines, and lines into fields. A line is complete only with its line end: a
/// file that stops in the middle of one is truncated, even where what is left of the line looks like a line.

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "gmlake/trace/parse_result.hpp"

namespace gmlake::trace {

/// Remembers the unfinished line between pieces, and the number of the line at hand.
class lines {
 public:
  /// Calls `take(line)`, without the line end, for every line that `piece` completes, until one returns false. Returns
  /// false then, or when a line is longer than `max_line_length`; true when the piece is used up.
  template <std::predicate<std::string_view> Take>
  [[nodiscard]] bool feed(std::string_view piece, Take&& take) {
    if (!unfinished_.empty()) {
      std::size_t const end = piece.find('\n');
      if (end == piece.npos) return keep(piece);
      if (!keep(piece.substr(0, end))) return false;
      piece.remove_prefix(end + 1);
      ++number_;
      if (!take(std::string_view(unfinished_))) return false;
      unfinished_.clear();
    }
    while (!piece.empty()) {
      auto const* const end = static_cast<char const*>(std::memchr(piece.data(), '\n', piece.size()));
      if (end == nullptr) return keep(piece);
      auto const length = static_cast<std::size_t>(end - piece.data());
      ++number_;
      if (length > max_line_length || !take(piece.substr(0, length))) return false;
      piece.remove_prefix(length + 1);
    }
    return true;
  }

  /// The number of the last line taken, counted from 1.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// What follows the last line end.
  [[nodiscard]] std::string_view unfinished() const noexcept { return unfinished_; }

 private:
  [[nodiscard]] bool keep(std::string_view piece) {
    if (unfinished_.size() + piece.size() > max_line_length) return ++number_, false;
    unfinished_.append(piece);
    return true;
  }

  std::string unfinished_;
  std::uint64_t number_ = 0;
};

/// The fields of a line of at most N; the last holds the rest of a line that has more, with its commas.
template <std::size_t N>
struct fields {
  std::array<std::string_view, N> at{};
  std::size_t count = 0;

  [[nodiscard]] static fields of(std::string_view line) noexcept {
    fields cut;
    while (cut.count < N) {
      std::size_t const comma = cut.count + 1 < N ? line.find(',') : line.npos;
      cut.at[cut.count++] = line.substr(0, comma);
      if (comma == line.npos) break;
      line.remove_prefix(comma + 1);
    }
    return cut;
  }
};

/// Reads a whole field as a number up to `largest`. Returns what is wrong with it, said of `what`; empty when nothing
/// is.
template <std::unsigned_integral T>
[[nodiscard]] std::string read_number(std::string_view field, std::string_view what, T largest, T& out, int base = 10) {
  auto complaint = [&](std::string_view why) { return std::string(what) + " " + quoted(field) + std::string(why); };
  if (field.empty()) return std::string(what) + " is missing";
  if (field.front() == '-') {
    T ignored{};
    auto const [end, code] = std::from_chars(field.data() + 1, field.data() + field.size(), ignored, base);
    bool const number = code != std::errc::invalid_argument && end == field.data() + field.size();
    return complaint(number ? " is negative" : " is not a number");
  }
  auto const [end, code] = std::from_chars(field.data(), field.data() + field.size(), out, base);
  if (code == std::errc::invalid_argument) return complaint(" is not a number");
  if (end != field.data() + field.size()) return complaint(" has trailing garbage");
  if (code == std::errc::result_out_of_range || out > largest) return complaint(" is too large");
  return {};
}

}  // namespace gmlake::trace
