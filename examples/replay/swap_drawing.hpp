#pragma once
/// A schedule as the report draws it.

#include "report.hpp"
#include "swap_run.hpp"

namespace gmlake::tools {

[[nodiscard]] report_swap_section swap_section_of(swap_subject const& of);

/// Adds what the scheduler found: none, one or two schedules.
void add_schedules(swap_record const& r, report_swap_section& to);

}  // namespace gmlake::tools
