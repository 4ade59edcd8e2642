#pragma once
/// What came of swapping, as tables and as JSON.

#include <string>
#include <vector>

#include "swap_run.hpp"

namespace gmlake::tools {

/// Schedules without stalls, and those under the limit: what they come to, what no schedule can beat, and what the pool
/// reserved when it went through them.
[[nodiscard]] std::string to_swap_table(std::vector<swap_record> const& records);

/// One line. Bytes are integers, times milliseconds. What a scheduler does not look for, or the limit does not allow,
/// is null.
[[nodiscard]] std::string to_json(swap_record const& r);

}  // namespace gmlake::tools
