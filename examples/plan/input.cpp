#include "input.hpp"

#include <algorithm>
#include <utility>

#include "file.hpp"
#include "gmlake/plan/plan_file.hpp"
#include "load.hpp"

namespace gmlake::tools {

std::string read_text(std::string const& path, std::string& text) {
  std::string const wrong = read_file(path, [&text](std::string_view piece) {
    text += piece;
    return true;
  });
  return wrong.empty() ? wrong : path + ": " + wrong;
}

bool names_columns(std::string_view text) noexcept {
  using columns = plan::csv_parts::table;
  if (text.size() > 1 && text[1] == ',') return false;  // a trace's event, perhaps a mark of such a name
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (!line.empty()) {
    if (std::ranges::find(columns::names, plan::csv_parts::cut(line, ',')) != columns::names.end()) return true;
  }
  return false;
}

input load_input(std::string const& path, input_format format) {
  if (format != input_format::csv) {
    std::string beginning;
    // What is wrong with the file comes out again where it is read as a whole.
    (void)read_file(path, [&beginning](std::string_view piece) {
      beginning += piece;
      return beginning.empty();
    });
    if (beginning.starts_with(plan::plan_file_magic)) return {{}, path + ": is a plan file: --validate checks it"};
    if (format == input_format::trace || !names_columns(beginning)) {
      loaded read = load_trace(path);
      return {std::move(read.value), std::move(read.wrong)};
    }
  }
  std::string text;
  if (std::string wrong = read_text(path, text); !wrong.empty()) return {{}, std::move(wrong)};
  auto read = plan::read_minimalloc_problem(text);
  if (!read) return {{}, path + ":" + std::to_string(read.line) + ": " + read.message};
  if (read.value.ids.empty()) return {{}, path + ": the problem has no buffers"};
  return {std::move(read.value), {}};
}

}  // namespace gmlake::tools
