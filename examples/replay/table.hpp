#pragma once
/// Records as a table for a terminal.

#include <string>
#include <vector>

#include "run.hpp"

namespace gmlake::replay_tool {

[[nodiscard]] std::string to_table(std::vector<run_record> const& records);

}  // namespace gmlake::replay_tool
