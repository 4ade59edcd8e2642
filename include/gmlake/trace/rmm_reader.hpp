#pragma once
/// Reads the log that RMM's `logging_resource_adaptor` writes, into the same trace as gmlake's own format:
///
///     Thread,Time,Action,Pointer,Size,Stream
///     140204,10:15:02:104233,allocate,0x7f3a10000000,1048576,0x0
///     140204,10:15:02:104391,free,0x7f3a10000000,1048576,0x0
///
/// Pointers, which are used again, become fresh ids; streams become numbers, dense in order of appearance. An `allocate
/// failure` left nothing behind and is checked and passed over. RMM logs a free before it takes place and an allocation
/// after, so that a pointer that is born while live is a corrupt log. Pointers and streams are hexadecimal, with `0x`
/// or without; null, which several allocations of no bytes may share, also reads `(nil)`. The stream of a free is
/// checked and then ignored: traces order a free by its place.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gmlake/trace/event.hpp"
#include "gmlake/trace/lines.hpp"
#include "gmlake/trace/parse_result.hpp"

namespace gmlake::trace {

inline constexpr std::string_view rmm_header = "Thread,Time,Action,Pointer,Size,Stream";

/// Takes a log's text in pieces, like `reader`.
class rmm_reader {
 public:
  /// Makes room for so many events.
  void reserve(std::size_t events) { trace_.events.reserve(events); }

  /// Reads the next piece. Returns false once there is an error.
  [[nodiscard]] bool feed(std::string_view piece) {
    if (error_.line != 0) return false;
    if (lines_.feed(piece, [this](std::string_view line) { return take(line); })) return true;
    if (error_.line == 0) fail("the line is too long");
    return false;
  }

  /// Says that the log is complete. The reader is empty afterwards.
  [[nodiscard]] parse_result finish() {
    if (error_.line == 0 && !lines_.unfinished().empty()) {
      error_ = {lines_.number() + 1, "truncated: the last line " + quoted(lines_.unfinished()) + " has no line end"};
    }
    if (error_.line == 0 && trace_.events.empty()) error_ = {1, "the log has no events"};
    parse_result done{std::move(trace_), std::move(error_)};
    *this = rmm_reader{};
    return done;
  }

 private:
  struct block {
    std::uint32_t id;
    bytes size;
  };
  using row = fields<6>;
  enum column : std::size_t { thread, time, action, pointer, size, stream };

  bool take(std::string_view line) {
    if (lines_.number() == 1) {
      return line == rmm_header || fail("the header is " + quoted(line) + " instead of " + std::string(rmm_header));
    }
    if (line.empty()) return fail("the line is empty");
    row const r = row::of(line);
    if (r.count < r.at.size()) {
      return fail("truncated line: an event has 6 fields, this one " + std::to_string(r.count));
    }
    std::uint64_t ignored{}, p{}, s{};
    bytes n{};
    constexpr auto any = std::numeric_limits<std::uint64_t>::max();
    if (auto wrong = read_number(r.at[thread], "thread", any, ignored); !wrong.empty()) return fail(std::move(wrong));
    if (!is_time(r.at[time])) return fail("time " + quoted(r.at[time]) + " is not a time of day");
    if (auto wrong = read_hexadecimal(r.at[pointer], "pointer", p); !wrong.empty()) return fail(std::move(wrong));
    if (auto wrong = read_number(r.at[size], "size", max_size, n); !wrong.empty()) return fail(std::move(wrong));
    if (auto wrong = read_hexadecimal(r.at[stream], "stream", s); !wrong.empty()) return fail(std::move(wrong));
    if (r.at[action] == "allocate") return allocate(p, n, s);
    if (r.at[action] == "free") return deallocate(p, n);
    if (r.at[action] == "allocate failure") return true;
    return fail("unknown action " + quoted(r.at[action]) + ": expected allocate, allocate failure or free");
  }

  bool allocate(std::uint64_t p, bytes n, std::uint64_t s) {
    if (p != 0 && live_blocks_.contains(p)) return fail("pointer " + hexadecimal(p) + " is live already");
    if (p == 0 && n != 0) return fail("an allocation of " + std::to_string(n) + " bytes at the null pointer");
    if (n > max_size - live_) return fail("size " + std::to_string(n) + " overflows the sum of live sizes");
    if (trace_.allocations == std::numeric_limits<std::uint32_t>::max()) return fail("more allocations than ids");
    std::uint32_t const id = trace_.allocations++;
    if (p == 0) empty_.push_back(id);
    else live_blocks_.emplace(p, block{id, n});
    live_ += n;
    auto const number = streams_.try_emplace(s, static_cast<std::uint32_t>(streams_.size())).first->second;
    trace_.events.push_back({.size = n, .id = id, .stream = number, .kind = event_kind::allocate});
    return true;
  }

  bool deallocate(std::uint64_t p, bytes n) {
    if (p == 0) return deallocate_empty(n);
    auto const found = live_blocks_.find(p);
    if (found == live_blocks_.end()) return fail("free of " + hexadecimal(p) + ", which is not live");
    auto const [id, born] = found->second;
    if (n != born) {
      return fail("free of " + std::to_string(n) + " bytes at " + hexadecimal(p) + ", which has " +
                  std::to_string(born));
    }
    live_blocks_.erase(found);
    live_ -= n;
    trace_.events.push_back({.size = 0, .id = id, .stream = 0, .kind = event_kind::deallocate});
    return true;
  }

  /// Freeing null is legal, and stands for one of the empty blocks where there is one.
  bool deallocate_empty(bytes n) {
    if (n != 0) return fail("free of " + std::to_string(n) + " bytes at the null pointer");
    if (empty_.empty()) return true;
    trace_.events.push_back({.size = 0, .id = empty_.back(), .stream = 0, .kind = event_kind::deallocate});
    empty_.pop_back();
    return true;
  }

  static bool is_time(std::string_view field) noexcept {
    auto const part = [](char c) { return (c >= '0' && c <= '9') || c == ':' || c == '.'; };
    return !field.empty() && std::all_of(field.begin(), field.end(), part);
  }
  static std::string read_hexadecimal(std::string_view field, std::string_view what, std::uint64_t& out) {
    if (field == "(nil)") return {};
    if (field.starts_with("0x") && field.size() > 2) field.remove_prefix(2);
    return read_number(field, what, std::numeric_limits<std::uint64_t>::max(), out, 16);
  }
  static std::string hexadecimal(std::uint64_t p) {
    char digits[16];
    return "0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, p, 16).ptr);
  }

  bool fail(std::string message) {
    error_ = {lines_.number(), std::move(message)};
    return false;
  }

  trace trace_;
  parse_error error_;
  lines lines_;
  std::unordered_map<std::uint64_t, block> live_blocks_;  ///< by pointer
  std::vector<std::uint32_t> empty_;                      ///< live ids at the null pointer
  bytes live_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> streams_;  ///< number by handle
};

/// Reads a whole log. Linear; about 150 ns an event.
[[nodiscard]] inline parse_result read_rmm(std::string_view text) {
  rmm_reader r;
  r.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
  (void)r.feed(text);
  return r.finish();
}

}  // namespace gmlake::trace
