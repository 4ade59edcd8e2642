#pragma once
/// Writes gmlake's trace format (see reader.hpp), event by event, into a string that the caller stores or sends on as
/// it likes. What it writes is read back as the same trace.

#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gmlake/trace/event.hpp"

namespace gmlake::trace {

/// Appends lines to `out`. The caller keeps the format's rules: ids dense in order of birth, each freed at most once,
/// and whatever else names one in its life.
/// Throws only for want of host memory.
class writer {
 public:
  explicit writer(std::string& out) noexcept : out_(&out) {}

  void allocate(std::uint32_t id, bytes size, std::uint32_t stream) {
    *out_ += 'a';
    number(id);
    number(size);
    number(stream);
    *out_ += '\n';
  }
  void deallocate(std::uint32_t id) { line('f', id); }
  void read(std::uint32_t id) { line('r', id); }
  void wrote(std::uint32_t id) { line('w', id); }
  void host_copy(std::uint32_t id) { line('h', id); }
  /// Ends the group of accesses since the last one. `took` is not negative.
  void operation(std::chrono::nanoseconds took) { line('o', static_cast<std::uint64_t>(took.count())); }
  /// `label` is printable ASCII and not empty.
  void mark(std::string_view label) { ((*out_ += "m,") += label) += '\n'; }

  /// One event of `t`.
  void write(event const& e, trace const& t) {
    switch (e.kind) {
      case event_kind::allocate: return allocate(e.id, e.size, e.stream);
      case event_kind::deallocate: return deallocate(e.id);
      case event_kind::mark: return mark(t.labels[e.id]);
      case event_kind::read: return read(e.id);
      case event_kind::write: return wrote(e.id);
      case event_kind::operation: return line('o', e.size);
      case event_kind::host_copy: return host_copy(e.id);
    }
  }

 private:
  void line(char kind, std::uint64_t n) {
    *out_ += kind;
    number(n);
    *out_ += '\n';
  }
  void number(std::uint64_t n) {
    char digits[1 + std::numeric_limits<std::uint64_t>::digits10 + 1] = {','};
    out_->append(digits, std::to_chars(digits + 1, digits + sizeof digits, n).ptr);
  }

  std::string* out_;
};

/// A whole trace as text.
[[nodiscard]] inline std::string write(trace const& t) {
  std::string out;
  writer w(out);
  for (event const& e : t.events) w.write(e, t);
  return out;
}

}  // namespace gmlake::trace
