#pragma once
/// A table for a terminal.

#include <cstddef>
#include <string>
#include <vector>

namespace gmlake::tools {

using text_row = std::vector<std::string>;

/// Columns as wide as they need, the first `names` left-aligned and the others right; a line under the first row.
/// Precondition: there is a row, and all are of its length.
[[nodiscard]] std::string text_table(std::vector<text_row> const& rows, std::size_t names);

}  // namespace gmlake::tools
