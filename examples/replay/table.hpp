#pragma once
/// Records as a table for a terminal.

#include <string>
#include <vector>

#include "run.hpp"

namespace gmlake::tools {

[[nodiscard]] std::string to_table(std::vector<run_record> const& records);

/// What happened from the fifth step on, and what plans did all along; empty where there is neither.
[[nodiscard]] std::string to_steady_table(std::vector<run_record> const& records);

/// The driver's calls and their time by kind, with the time that one took.
[[nodiscard]] std::string to_call_table(std::vector<run_record> const& records);

}  // namespace gmlake::tools
