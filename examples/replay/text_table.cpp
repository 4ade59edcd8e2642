#include "text_table.hpp"

#include <algorithm>

namespace gmlake::tools {
namespace {

void append(std::string& out, text_row const& r, std::vector<std::size_t> const& widths, std::size_t names) {
  std::string line;
  for (std::size_t i = 0; i < r.size(); ++i) {
    std::string const space(widths[i] - r[i].size(), ' ');
    line += i < names ? r[i] + space : space + r[i];
    line += "  ";
  }
  out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string text_table(std::vector<text_row> const& rows, std::size_t names) {
  std::vector<std::size_t> widths(rows.front().size());
  for (text_row const& r : rows) {
    for (std::size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], r[i].size());
  }
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    append(out, rows[i], widths, names);
    if (i != 0) continue;
    for (std::size_t w : widths) out += std::string(w, '-') + "  ";
    out.resize(out.size() - 2);
    out += "\n";
  }
  return out;
}

}  // namespace gmlake::tools
