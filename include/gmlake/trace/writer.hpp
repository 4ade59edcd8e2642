#pragma once
/// Writes gmlake's trace format (see reader.hpp), event by event, into a string that the caller stores or sends on as
/// it likes. What it writes is read back as the same trace.

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gmlake/trace/event.hpp"

namespace gmlake::trace {

/// Appends lines to `out`. The caller keeps the format's rules: ids dense in order of birth, each freed at most once.
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
  void deallocate(std::uint32_t id) {
    *out_ += 'f';
    number(id);
    *out_ += '\n';
  }
  /// `label` is printable ASCII and not empty.
  void mark(std::string_view label) { ((*out_ += "m,") += label) += '\n'; }

  /// One event of `t`.
  void write(event const& e, trace const& t) {
    switch (e.kind) {
      case event_kind::allocate: return allocate(e.id, e.size, e.stream);
      case event_kind::deallocate: return deallocate(e.id);
      case event_kind::mark: return mark(t.labels[e.id]);
    }
  }

 private:
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
