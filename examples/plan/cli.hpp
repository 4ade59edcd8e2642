#pragma once
/// The command line as a value.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "input.hpp"
#include "packers.hpp"

namespace gmlake::tools {

struct command_line {
  std::vector<std::string> inputs;  ///< paths
  input_format format = input_format::detect;
  packing_request packing;
  std::optional<std::uint64_t> step;  ///< from 1
  bool marks = true;
  std::optional<plan::instant> stream_gap;
  bool json = false;
  std::string out;       ///< path; empty: none
  std::string report;    ///< path; empty: none
  std::string validate;  ///< path; empty: none

  /// The first option given that only means something for a trace; empty: none was.
  std::string for_traces_only;
};

/// What the process has to end with at once: after --help, or where the command line is wrong. The text is printed.
struct exit_now {
  int status = 0;
};

/// Reads the command line.
[[nodiscard]] std::variant<command_line, exit_now> parse(int argc, char const* const* argv);

}  // namespace gmlake::tools
