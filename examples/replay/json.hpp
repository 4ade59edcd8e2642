#pragma once
/// A record as one line of JSON.

#include <string>

#include "run.hpp"

namespace gmlake::tools {

/// Bytes are integers, times milliseconds or nanoseconds as their keys say. Where no limit was found, both of its keys
/// are null; so is "plans" for pools that know none, and "steady" where the trace has fewer than five marked steps.
/// `calls` adds the driver's time by kind.
[[nodiscard]] std::string to_json(run_record const& r, bool calls);

}  // namespace gmlake::tools
