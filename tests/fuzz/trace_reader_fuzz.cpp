/// Feeds arbitrary text to the trace readers. They either name a line or give a trace that keeps the format's rules and
/// comes back the same when written and read again, however the text is cut into pieces.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gmlake/trace/any_reader.hpp"
#include "gmlake/trace/programs.hpp"
#include "gmlake/trace/summary.hpp"
#include "gmlake/trace/writer.hpp"

namespace {
using namespace gmlake::trace;

void require(bool holds) {
  if (!holds) std::abort();
}

bool same(event const& a, event const& b) {
  return a.kind == b.kind && a.id == b.id && a.size == b.size && a.stream == b.stream;
}

void check_well_formed(trace const& t) {
  std::vector<bool> freed, copied;
  std::uint64_t time = 0;
  for (event const& e : t.events) {
    switch (e.kind) {
      case event_kind::allocate:
        require(e.id == freed.size() && e.size <= max_size);
        freed.push_back(false);
        copied.push_back(false);
        break;
      case event_kind::deallocate:
        require(e.id < freed.size() && !freed[e.id]);
        freed[e.id] = true;
        break;
      case event_kind::mark: require(e.id < t.labels.size()); break;
      case event_kind::read: require(e.id < freed.size() && !freed[e.id]); break;
      case event_kind::write: require(e.id < freed.size() && !freed[e.id] && !copied[e.id]); break;
      case event_kind::host_copy:
        require(e.id < freed.size() && !freed[e.id]);
        copied[e.id] = true;
        break;
      case event_kind::operation:
        require(e.size <= max_time - time);
        time += e.size;
        break;
    }
  }
  require(freed.size() == t.allocations);
  require(summarize(t).peak_requested <= max_size);
}

void check_programs(trace const& t) {
  step_programs const made = programs_of(t);
  require(made.has_value() == !made.steps.empty());
  for (step_program const& s : made.steps) {
    require(gmlake::swap::find_fault(s.program) == nullptr);
    require(s.allocations.size() == s.program.variables.size());
    require(alike(s.program, s.program));
  }
}

void check(parse_result const& whole, parse_result const& pieces) {
  require(whole.error.line == pieces.error.line && whole.error.message == pieces.error.message);
  if (!whole) return require(!whole.error.message.empty());
  check_well_formed(whole.value);
  check_programs(whole.value);
  parse_result const again = read(write(whole.value));
  require(again.has_value() && again.value.events.size() == whole.value.events.size());
  require(again.value.labels == whole.value.labels && again.value.allocations == whole.value.allocations);
  for (std::size_t i = 0; i < again.value.events.size(); ++i) {
    require(same(again.value.events[i], whole.value.events[i]));
    require(same(again.value.events[i], pieces.value.events[i]));
  }
}

template <class Reader>
parse_result in_pieces(Reader r, std::string_view text, std::size_t size) {
  for (; !text.empty(); text.remove_prefix(size < text.size() ? size : text.size())) {
    if (!r.feed(text.substr(0, size))) break;
  }
  return r.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  std::size_t const piece = 1 + data[0] % 64;
  std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
  check(read(text), in_pieces(reader{}, text, piece));
  check(read_rmm(text), in_pieces(rmm_reader{}, text, piece));
  // The header costs a fuzzer long to find.
  std::string const log = std::string(rmm_header) + "\n" + std::string(text);
  check(read_any(log), in_pieces(rmm_reader{}, log, piece));
  return 0;
}
