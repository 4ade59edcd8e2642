#pragma once
/// Records as a table for a terminal.

#include <string>
#include <vector>

#include "record.hpp"

namespace gmlake::tools {

[[nodiscard]] std::string to_table(std::vector<plan_record> const& records);

}  // namespace gmlake::tools
