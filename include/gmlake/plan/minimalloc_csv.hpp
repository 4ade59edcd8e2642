#pragma once
/// Reads and writes problems and solutions in the CSV of google/minimalloc, one buffer a line:
///
///     id,lower,upper,size                  the columns in any order; `alignment` and `offset` may be there as well
///     b0,0,10,4096
///
/// As there, `buffer` and `buffer_id` are names of `id`, `begin` and `start` of `lower`; `end` stands for `upper` and
/// is one less, the last moment at which the buffer lives. An offset fixes the buffer in a problem (empty: it does
/// not), and is the answer in a solution. Ids are any text without commas and line ends, each once. Columns that are
/// named `hint` and `gaps` must be empty. Anything else is an error that names the line; nothing here throws but for
/// want of memory.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// A problem whose buffers have names.
struct named_problem {
  problem value;
  std::vector<std::string> ids;  ///< by buffer
};

template <class T>
struct csv_result {
  T value{};               ///< meaningless where there is an error
  std::uint64_t line = 0;  ///< of the error, counted from 1; 0: none
  std::string message;     ///< without the line's number and a full stop

  [[nodiscard]] bool has_value() const noexcept { return line == 0; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
};

namespace csv_parts {

[[nodiscard]] inline std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 40;
  return '"' + std::string(text.substr(0, longest)) + (text.size() > longest ? "...\"" : "\"");
}

/// Takes what stands before `separator` off the front.
[[nodiscard]] inline std::string_view cut(std::string_view& text, char separator) {
  std::size_t const end = text.find(separator);
  std::string_view const front = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return front;
}

/// A file's lines as fields by column. After an error `message` is not empty, and `number` is the line's.
class table {
 public:
  explicit table(std::string_view text) : rest_(text) { read_header(); }

  enum column : std::uint8_t { id, lower, upper, size, alignment, offset, hint, gaps };
  static constexpr std::array<std::string_view, 8> names = {"id",        "lower",  "upper", "size",
                                                            "alignment", "offset", "hint",  "gaps"};
  static constexpr std::array<std::pair<std::string_view, column>, 5> other_names = {
      {{"buffer", id}, {"buffer_id", id}, {"begin", lower}, {"start", lower}, {"end", upper}}};

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::string& message() noexcept { return message_; }
  [[nodiscard]] bool failed() const noexcept { return !message_.empty(); }

  void fail(std::string message) {
    if (message_.empty()) message_ = std::move(message);
    number_ = std::max<std::uint64_t>(number_, 1);
  }

  [[nodiscard]] bool has(column c) const { return columns_.contains(c); }
  void require(column c) {
    if (!has(c)) fail("column " + quoted(names[c]) + " is missing");
  }

  /// To the next line; false at the end and after an error.
  [[nodiscard]] bool next() {
    if (failed() || !next_line()) return false;
    if (fields_.size() != columns_.size()) {
      fail("the line has " + std::to_string(fields_.size()) + " fields, the header " + std::to_string(columns_.size()));
    } else if (at(id).empty()) {
      fail("id is missing");
    } else if (!ids_.emplace(at(id)).second) {
      fail("id " + quoted(at(id)) + " stands there twice");
    } else if (!at(hint).empty() || !at(gaps).empty()) {
      fail(std::string(at(hint).empty() ? "gaps" : "hints") + " are not supported");
    }
    return !failed();
  }

  /// Empty where there is no such column.
  [[nodiscard]] std::string_view at(column c) const {
    auto const found = columns_.find(c);
    return found == columns_.end() ? std::string_view{} : fields_[found->second];
  }

  /// Where a buffer's life ends; after a failure 0.
  [[nodiscard]] std::uint64_t upper_end() {
    std::uint64_t const value = number_at(upper);
    if (!last_moment_ || failed()) return value;
    if (value == std::numeric_limits<std::uint64_t>::max()) fail("end is too large");
    return value + 1;
  }

  /// The field as a number; after a failure 0.
  [[nodiscard]] std::uint64_t number_at(column c) {
    std::string_view const field = at(c);
    std::uint64_t value = 0;
    char const* const last = field.data() + field.size();
    auto const [end, code] = std::from_chars(field.data(), last, value);
    if (code == std::errc{} && end == last) return value;
    std::string what(names[c]);
    if (field.empty()) fail(std::move(what += " is missing"));
    else if (code == std::errc::result_out_of_range) fail(std::move((what += ' ') += quoted(field) + " is too large"));
    else fail(std::move((what += ' ') += quoted(field) + " is not a number"));
    return 0;
  }

 private:
  void read_header() {
    if (!next_line() && !failed()) fail("there is no header");
    for (std::string_view const name : fields_) {
      auto const known = std::ranges::find(names, name);
      auto const other = std::ranges::find(other_names, name, &std::pair<std::string_view, column>::first);
      if (known == names.end() && other == other_names.end()) return fail("unknown column " + quoted(name));
      auto const c = known != names.end() ? static_cast<column>(known - names.begin()) : other->second;
      last_moment_ = last_moment_ || name == "end";
      if (!columns_.emplace(c, columns_.size()).second) return fail("column " + quoted(name) + " stands there twice");
    }
  }

  /// Skips nothing: an empty line ends the table, and only empty ones may follow it.
  [[nodiscard]] bool next_line() {
    bool ended = false;
    while (!rest_.empty()) {
      ++number_;
      std::string_view line = cut(rest_, '\n');
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) {
        ended = true;
        continue;
      }
      if (ended) return fail("the line before is empty"), false;
      fields_.clear();
      bool more = true;
      while (more) {
        more = line.find(',') != line.npos;
        fields_.push_back(cut(line, ','));
      }
      return true;
    }
    return false;
  }

  std::string_view rest_;
  std::uint64_t number_ = 0;
  std::string message_;
  std::vector<std::string_view> fields_;
  std::map<column, std::size_t> columns_;
  bool last_moment_ = false;  ///< `upper` is given as that
  std::set<std::string_view> ids_;
};

inline void write_offset(std::string& out, std::optional<bytes> offset) {
  out += ',';
  if (offset) out += std::to_string(*offset);
}

template <class OffsetOf>
[[nodiscard]] std::string write(named_problem const& p, bool offsets, OffsetOf&& offset_of) {
  auto const& all = p.value.buffers;
  bool const aligned = std::ranges::any_of(all, [](buffer const& b) { return b.alignment != 1; });
  std::string out = "id,lower,upper,size";
  if (aligned) out += ",alignment";
  if (offsets) out += ",offset";
  out += '\n';
  for (std::size_t i = 0; i < all.size(); ++i) {
    out += p.ids[i];
    for (std::uint64_t const n : {all[i].lower, all[i].upper, std::uint64_t{all[i].size}}) {
      (out += ',') += std::to_string(n);
    }
    if (aligned) (out += ',') += std::to_string(all[i].alignment);
    if (offsets) write_offset(out, offset_of(i));
    out += '\n';
  }
  return out;
}

}  // namespace csv_parts

/// O(n log n). Its result is valid (validate.hpp).
[[nodiscard]] inline csv_result<named_problem> read_minimalloc_problem(std::string_view text) {
  using csv_parts::table;
  table t(text);
  for (auto const c : {table::id, table::lower, table::upper, table::size}) t.require(c);
  csv_result<named_problem> read;
  bytes sum = 0;
  while (t.next()) {
    buffer b;
    b.lower = t.number_at(table::lower);
    b.upper = t.upper_end();
    b.size = t.number_at(table::size);
    if (t.has(table::alignment)) b.alignment = t.number_at(table::alignment);
    if (!t.at(table::offset).empty()) b.fixed = t.number_at(table::offset);
    if (t.failed()) break;
    constexpr bytes most = std::numeric_limits<bytes>::max();
    if (b.upper <= b.lower) t.fail("upper is not above lower");
    else if (b.size == 0) t.fail("size is 0");
    else if (b.size > most - sum) t.fail("the sizes overflow in sum");
    else if (!std::has_single_bit(b.alignment)) t.fail("alignment is no power of two");
    else if (b.fixed && !is_aligned(*b.fixed, b.alignment)) t.fail("offset is not aligned");
    else if (b.fixed && *b.fixed > most - b.size) t.fail("offset and size overflow in sum");
    if (t.failed()) break;
    sum += b.size;
    read.value.value.buffers.push_back(b);
    read.value.ids.emplace_back(t.at(table::id));
  }
  if (t.failed()) return {.line = t.number(), .message = std::move(t.message())};
  return read;
}

/// Offsets for the buffers of `p`, by id; the file's other columns are not compared. The solution has them all, but
/// need not be valid. O(n log n).
[[nodiscard]] inline csv_result<solution> read_minimalloc_solution(std::string_view text, named_problem const& p) {
  using csv_parts::table;
  table t(text);
  for (auto const c : {table::id, table::offset}) t.require(c);
  std::map<std::string_view, std::size_t> by_id;
  for (std::size_t i = 0; i < p.ids.size(); ++i) by_id.emplace(p.ids[i], i);
  csv_result<solution> read;
  read.value.offsets.resize(p.ids.size());
  while (t.next()) {
    auto const named = by_id.find(t.at(table::id));
    if (named == by_id.end()) {
      t.fail("id " + csv_parts::quoted(t.at(table::id)) + " is not in the problem, or stands there twice");
      break;
    }
    bytes const offset = t.number_at(table::offset);
    bytes const size = p.value.buffers[named->second].size;
    if (!t.failed() && offset > std::numeric_limits<bytes>::max() - size) t.fail("offset and size overflow in sum");
    if (t.failed()) break;
    read.value.offsets[named->second] = offset;
    read.value.height = std::max(read.value.height, offset + size);
    by_id.erase(named);
  }
  if (!t.failed() && !by_id.empty()) t.fail("id " + csv_parts::quoted(by_id.begin()->first) + " is missing");
  if (t.failed()) return {.line = t.number(), .message = std::move(t.message())};
  return read;
}

/// Ids hold no comma and no line end. Only what the format has: no period and no streams. O(n).
[[nodiscard]] inline std::string write_minimalloc_problem(named_problem const& p) {
  bool const fixed = std::ranges::any_of(p.value.buffers, [](buffer const& b) { return b.fixed.has_value(); });
  return csv_parts::write(p, fixed, [&](std::size_t i) { return p.value.buffers[i].fixed; });
}

/// As google/minimalloc writes it: the problem, with an offset for every buffer. O(n).
[[nodiscard]] inline std::string write_minimalloc_solution(named_problem const& p, solution const& s) {
  return csv_parts::write(p, true, [&](std::size_t i) { return std::optional<bytes>(s.offsets[i]); });
}

}  // namespace gmlake::plan
