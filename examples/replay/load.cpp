#include "load.hpp"

#include <filesystem>

#include "file.hpp"
#include "gmlake/trace/any_reader.hpp"

namespace gmlake::tools {

loaded load_trace(std::string const& path) {
  trace::any_reader reader;
  std::string const wrong = read_file(path, [&reader](std::string_view piece) { return reader.feed(piece); });
  trace::parse_result parsed = reader.finish();
  // A file that breaks off ends in the middle of a line: what broke is the file.
  if (!wrong.empty()) return {{}, path + ": " + wrong};
  if (!parsed) return {{}, path + ":" + std::to_string(parsed.error.line) + ": " + parsed.error.message};
  return {std::move(parsed.value), {}};
}

std::string trace_name(std::string const& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  for (char const* extension : {".gz", ".csv"}) {
    if (name.extension() == extension) name = name.stem();
  }
  return name.string();
}

}  // namespace gmlake::tools
