#pragma once
/// One event of an allocation trace, and a trace as a value.
///
/// Ids of allocations are dense from 0 in order of birth. An event stands for 24 bytes, so that a trace of ten million
/// events fits easily.

#include <cstdint>
#include <string>
#include <vector>

#include "gmlake/core/types.hpp"

namespace gmlake::trace {

enum class event_kind : std::uint8_t {
  allocate,
  deallocate,
  mark,
  read,       ///< the running operation reads the allocation
  write,      ///< the running operation writes it
  operation,  ///< the running operation ends
  host_copy,  ///< the host has a copy of the allocation, which nobody writes from here on
};

struct event {
  bytes size = 0;            ///< allocate: bytes requested; operation: the nanoseconds that it took
  std::uint32_t id = 0;      ///< which allocation; mark: index into `trace::labels`; operation: 0
  std::uint32_t stream = 0;  ///< allocate: the recorded stream's number
  event_kind kind = event_kind::allocate;
};
static_assert(sizeof(event) == 24);

struct trace {
  std::vector<event> events;
  std::vector<std::string> labels;  ///< distinct labels of marks: "step", "backward", ...
  std::uint32_t allocations = 0;    ///< ids run from 0 to allocations − 1
};

/// The mark that begins a step: every fence recorded before it is reached.
inline constexpr char const step_label[] = "step";

}  // namespace gmlake::trace
