#pragma once
/// Reads gmlake's trace format, one event a line:
///
///     a,<id>,<bytes requested>,<stream>    an allocation; ids are dense from 0 in order of birth
///     f,<id>                               its free, from which on the memory may be used again
///     m,<label>                            a mark: "step", "backward", "optimizer", ...
///     r,<id>                               the running operation reads the allocation
///     w,<id>                               it writes the allocation; one that does both has both lines
///     o,<nanoseconds>                      the running operation ends, and took so long on the device
///     h,<id>                               the host has a copy of the allocation, which nobody writes from here on
///
/// The running operation has the accesses since the last `o`; it may have none. The same access twice counts once, and
/// so does `h`. Allocations, frees and marks may stand among them; what is accessed is live there. Accesses that no `o`
/// follows are of an operation that the trace's end has cut off. Blocks that live at the end have no free. Anything
/// else is an error that names the line; see parse_result.hpp for what a trace without one keeps.
///
/// The hot path only reads; a line it does not like goes to `explain`.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/trace/event.hpp"
#include "gmlake/trace/lines.hpp"
#include "gmlake/trace/parse_result.hpp"

namespace gmlake::trace {

/// Takes a trace's text in pieces of any size, so that it need not be in memory as a whole.
class reader {
 public:
  /// Makes room for so many events.
  void reserve(std::size_t events) { trace_.events.reserve(events); }

  /// Reads the next piece. Returns false once there is an error; the rest of the text need not be fed then.
  [[nodiscard]] bool feed(std::string_view piece) {
    if (error_.line != 0) return false;
    if (lines_.feed(piece, [this](std::string_view line) { return take(line); })) return true;
    if (error_.line == 0) fail("the line is too long");
    return false;
  }

  /// Says that the text is complete. The reader is empty afterwards.
  [[nodiscard]] parse_result finish() {
    if (error_.line == 0 && !lines_.unfinished().empty()) {
      error_ = {lines_.number() + 1, "truncated: the last line " + quoted(lines_.unfinished()) + " has no line end"};
    }
    if (error_.line == 0 && trace_.events.empty()) error_ = {1, "the trace has no events"};
    trace_.allocations = static_cast<std::uint32_t>(live_sizes_.size());
    parse_result done{std::move(trace_), std::move(error_)};
    *this = reader{};
    return done;
  }

 private:
  static constexpr bytes freed = std::numeric_limits<bytes>::max();

  bool take(std::string_view line) {
    char const* const last = line.data() + line.size();
    char const* at = line.data() + 2;
    if (line.size() < 3 || line[1] != ',') return explain(line);
    event e;
    switch (line[0]) {
      case 'a':
        if (!number(at, last, e.id) || !comma(at, last) || !number(at, last, e.size) || !comma(at, last) ||
            !number(at, last, e.stream) || at != last || e.id != live_sizes_.size() || e.size > max_size - live_) {
          return explain(line);
        }
        live_ += e.size;
        live_sizes_.push_back(e.size);
        break;
      case 'f':
        if (!number(at, last, e.id) || at != last || e.id >= live_sizes_.size() || live_sizes_[e.id] == freed) {
          return explain(line);
        }
        e.kind = event_kind::deallocate;
        live_ -= std::exchange(live_sizes_[e.id], freed);
        break;
      case 'm':
        if (!printable(line.substr(2))) return explain(line);
        e.kind = event_kind::mark;
        e.id = label(line.substr(2));
        break;
      default: return take_use(line);
    }
    trace_.events.push_back(e);
    return true;
  }

  /// What tells of the program's operations. Apart from `take`, which is a tenth slower with all kinds in it.
  [[gnu::noinline]] bool take_use(std::string_view line) {
    char const* const last = line.data() + line.size();
    char const* at = line.data() + 2;
    event e;
    switch (line[0]) {
      case 'r': e.kind = event_kind::read; break;
      case 'w': e.kind = event_kind::write; break;
      case 'h': e.kind = event_kind::host_copy; break;
      case 'o':
        if (!number(at, last, e.size) || at != last || e.size > max_time - time_) return explain(line);
        e.kind = event_kind::operation;
        time_ += e.size;
        trace_.events.push_back(e);
        return true;
      default: return explain(line);
    }
    if (!number(at, last, e.id) || at != last || e.id >= live_sizes_.size() || live_sizes_[e.id] == freed ||
        (e.kind == event_kind::write && copied(e.id))) {
      return explain(line);
    }
    if (e.kind == event_kind::host_copy) note_copy(e.id);
    trace_.events.push_back(e);
    return true;
  }

  template <class T>
  static bool number(char const*& at, char const* last, T& out) noexcept {
    auto const [end, code] = std::from_chars(at, last, out);
    at = end;
    return code == std::errc{};
  }
  static bool comma(char const*& at, char const* last) noexcept { return at != last && *at++ == ','; }
  static bool printable(std::string_view label) noexcept {
    return std::all_of(label.begin(), label.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  }

  [[nodiscard]] bool copied(std::uint32_t id) const noexcept { return id < copied_.size() && copied_[id]; }
  void note_copy(std::uint32_t id) {
    if (id >= copied_.size()) copied_.resize(live_sizes_.size());
    copied_[id] = true;
  }

  std::uint32_t label(std::string_view name) {
    auto found = labels_.find(name);
    if (found == labels_.end()) {
      found = labels_.emplace(name, static_cast<std::uint32_t>(trace_.labels.size())).first;
      trace_.labels.emplace_back(name);
    }
    return found->second;
  }

  bool fail(std::string message) {
    error_ = {lines_.number(), std::move(message)};
    return false;
  }

  /// Finds out what is wrong with a line that `take` refused.
  bool explain(std::string_view line) {
    if (line.empty()) return fail("the line is empty");
    auto const kind = line.substr(0, line.find(','));
    if (kind == "a") return explain_allocation(fields<4>::of(line));
    if (kind == "f") return explain_use(fields<2>::of(line), "a free", "free");
    if (kind == "r") return explain_use(fields<2>::of(line), "a read", "read");
    if (kind == "w") return explain_use(fields<2>::of(line), "a write", "write");
    if (kind == "h") return explain_use(fields<2>::of(line), "a host copy", "host copy");
    if (kind == "o") return explain_operation(fields<2>::of(line));
    if (kind != "m") return fail("unknown kind " + quoted(kind) + ": expected a, f, m, r, w, o or h");
    if (line.size() < 3) return fail("truncated line: the mark's label is missing");
    return fail("the mark's label " + quoted(line.substr(2)) + " is not printable");
  }

  bool explain_allocation(fields<4> const& f) {
    if (f.count < 4) {
      return fail("truncated line: an allocation has 4 fields, this one " + std::to_string(f.count));
    }
    std::uint64_t id{};
    bytes size{};
    std::uint32_t stream{};
    if (auto wrong = read_number(f.at[1], "id", std::uint64_t{std::numeric_limits<std::uint32_t>::max()}, id);
        !wrong.empty()) {
      return fail(std::move(wrong));
    }
    if (id < live_sizes_.size()) return fail("id " + std::to_string(id) + " was born before");
    if (id > live_sizes_.size()) {
      return fail("id " + std::to_string(id) + " where " + std::to_string(live_sizes_.size()) +
                  " is due: ids are dense");
    }
    if (auto wrong = read_number(f.at[2], "size", max_size, size); !wrong.empty()) return fail(std::move(wrong));
    if (size > max_size - live_) return fail("size " + quoted(f.at[2]) + " overflows the sum of live sizes");
    if (auto wrong = read_number(f.at[3], "stream", std::numeric_limits<std::uint32_t>::max(), stream);
        !wrong.empty()) {
      return fail(std::move(wrong));
    }
    return fail("more allocations than ids");
  }

  bool explain_use(fields<2> const& f, std::string const& a_use, std::string const& use) {
    std::uint64_t id{};
    if (f.count < 2) return fail("truncated line: " + a_use + " has 2 fields, this one " + std::to_string(f.count));
    if (auto wrong = read_number(f.at[1], "id", std::numeric_limits<std::uint64_t>::max(), id); !wrong.empty()) {
      return fail(std::move(wrong));
    }
    if (id >= live_sizes_.size()) return fail(use + " of the unknown id " + std::to_string(id));
    if (use == "free") return fail("double free of id " + std::to_string(id));
    if (live_sizes_[id] == freed) return fail(use + " of id " + std::to_string(id) + ", which is freed");
    return fail("write of id " + std::to_string(id) + ", of which the host has a copy");
  }

  bool explain_operation(fields<2> const& f) {
    std::uint64_t took{};
    if (f.count < 2) return fail("truncated line: an operation has 2 fields, this one " + std::to_string(f.count));
    if (auto wrong = read_number(f.at[1], "time", max_time, took); !wrong.empty()) return fail(std::move(wrong));
    return fail("time " + quoted(f.at[1]) + " overflows the sum of times");
  }

  trace trace_;
  parse_error error_;
  lines lines_;
  std::vector<bytes> live_sizes_;  ///< by id; `freed` once it is
  std::vector<bool> copied_;       ///< by id, as far as it goes: the host has a copy
  bytes live_ = 0;
  std::uint64_t time_ = 0;  ///< of all operations
  std::map<std::string, std::uint32_t, std::less<>> labels_;
};

/// Reads a whole text. Linear; about 20 ns an event.
[[nodiscard]] inline parse_result read(std::string_view text) {
  reader r;
  r.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
  (void)r.feed(text);
  return r.finish();
}

}  // namespace gmlake::trace
