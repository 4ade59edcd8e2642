#pragma once
/// What `--swap` does: plans, rehearses, prints, draws.

#include "cli.hpp"

namespace gmlake::tools {

/// Every trace through every scheduler. Returns the exit status.
[[nodiscard]] int swap_all(command_line const& c);

}  // namespace gmlake::tools
