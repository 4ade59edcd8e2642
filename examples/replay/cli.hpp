#pragma once
/// The command line as a value.

#include <string>
#include <variant>
#include <vector>

#include "run.hpp"
#include "swap_options.hpp"

namespace gmlake::tools {

struct command_line {
  std::vector<std::string> traces;   ///< paths
  std::vector<std::string> presets;  ///< names of known presets, each once
  backend_kind backend = backend_kind::sim;
  pool_request pool;
  bool min_limit = false;
  double scale = 1;
  bool json = false;
  bool calls = false;  ///< tell the driver's calls by kind
  bool verify = false;
  bool marks = true;   ///< tell pools where steps begin
  std::string plan;    ///< path of plans to go by; empty: none
  std::string report;  ///< path; empty: none
  swap_options swap;   ///< where it names schedulers, they run instead of the presets
};

/// What the process has to end with at once: after --help, or where the command line is wrong. The text is printed.
struct exit_now {
  int status = 0;
};

/// Reads the command line.
[[nodiscard]] std::variant<command_line, exit_now> parse(int argc, char const* const* argv);

}  // namespace gmlake::tools
