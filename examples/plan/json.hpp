#pragma once
/// A record as one line of JSON.

#include <string>

#include "record.hpp"

namespace gmlake::tools {

/// Sizes in bytes, `ms` in milliseconds. Without a solution, height and ratio are null.
[[nodiscard]] std::string to_json(plan_record const& r);

}  // namespace gmlake::tools
