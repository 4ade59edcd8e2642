#pragma once
/// The report as a file.

#include <fstream>
#include <string>

#include "exit_status.hpp"
#include "report.hpp"

namespace gmlake::tools {

/// Whether it could be written; says so where it couldn't.
[[nodiscard]] inline bool write_page(std::string const& path, report const& page) {
  std::ofstream out(path, std::ios::binary);
  if ((out << render(page)).flush()) return true;
  say(path + ": can't be written");
  return false;
}

}  // namespace gmlake::tools
