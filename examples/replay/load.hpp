#pragma once
/// A trace from a file, or what is wrong with it.

#include <string>

#include "gmlake/trace/event.hpp"

namespace gmlake::tools {

struct loaded {
  trace::trace value;
  std::string wrong;  ///< names the file, and the line where there is one; empty: nothing
};

/// Reads `path` in either format, packed or not.
[[nodiscard]] loaded load_trace(std::string const& path);

/// The name of a trace: its file's, without folder, `.gz` and `.csv`.
[[nodiscard]] std::string trace_name(std::string const& path);

}  // namespace gmlake::tools
