#pragma once
/// Checks a solution that somebody else may have written.

#include <string>
#include <vector>

#include "cli.hpp"

namespace gmlake::tools {

/// Checks `c.validate` and prints what it holds. Returns the exit status.
[[nodiscard]] int check(command_line const& c);

}  // namespace gmlake::tools
