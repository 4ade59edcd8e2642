#pragma once
/// What a file holds: a trace, or a problem in MiniMalloc's CSV. Told by the file's first line.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "gmlake/plan/minimalloc_csv.hpp"
#include "gmlake/trace/event.hpp"

namespace gmlake::tools {

enum class input_format : std::uint8_t { detect, trace, csv };

struct input {
  std::variant<trace::trace, plan::named_problem> value;
  std::string wrong;  ///< names the file, and the line where there is one; empty: nothing
};

/// Reads `path`, packed or not.
[[nodiscard]] input load_input(std::string const& path, input_format format);

/// The whole of a file as text, unpacked. Returns what is wrong, with the file's name; empty: nothing.
[[nodiscard]] std::string read_text(std::string const& path, std::string& text);

/// Whether a text begins with a line that names columns of MiniMalloc's.
[[nodiscard]] bool names_columns(std::string_view text) noexcept;

}  // namespace gmlake::tools
