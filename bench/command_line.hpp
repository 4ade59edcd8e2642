#pragma once
/// What the benchmarks' command lines have in common.

#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace gmlake::bench {

/// The folder that a benchmark reads.
inline void takes_folder(CLI::App& app, std::string& folder, std::string const& of) {
  app.add_option("folder", folder, of)->type_name("FOLDER")->check(CLI::ExistingDirectory);
}

/// A number from `least` to `most`; CLI11's own check takes "nan".
[[nodiscard]] inline CLI::Validator between(double least, double most) {
  auto const check = [=](std::string const& text) -> std::string {
    double x = 0;
    if (CLI::detail::lexical_cast(text, x) && x >= least && x <= most) return {};
    char wrong[80];
    (void)std::snprintf(wrong, sizeof wrong, "is not a number from %g to %g", least, most);
    return "'" + text + "' " + wrong;
  };
  return CLI::Validator(check, "");
}

/// Reads the command line. Nothing where the program is to go on; else the status to exit with: 0 after `--help`, 2
/// where the command line is wrong, which has been said.
[[nodiscard]] inline std::optional<int> status_of(CLI::App& app, int argc, char** argv) {
  constexpr int bad_command_line = 2;
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return app.exit(e) == 0 ? 0 : bad_command_line;
  }
  return std::nullopt;
}

}  // namespace gmlake::bench
