#pragma once
/// The traces that benchmarks replay.

#include <string>
#include <vector>

#include "gmlake/trace/event.hpp"

namespace gmlake::bench {

/// Reads a trace; ends the program where it can't.
[[nodiscard]] trace::trace load(std::string const& path);

/// The folder of the traces that come with the project.
[[nodiscard]] char const* shipped_traces() noexcept;

/// The traces (*.csv, *.csv.gz) in a folder, by path.
[[nodiscard]] std::vector<std::string> trace_paths(char const* folder);

/// A file's name without folder and endings.
[[nodiscard]] std::string name_of(std::string const& path);

}  // namespace gmlake::bench
