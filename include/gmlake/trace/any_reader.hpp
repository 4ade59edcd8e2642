#pragma once
/// Reads a trace in whichever format its first line shows.

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "gmlake/trace/reader.hpp"
#include "gmlake/trace/rmm_reader.hpp"

namespace gmlake::trace {

enum class file_format : std::uint8_t { gmlake, rmm };

/// The format of a text that begins so. A few bytes suffice; what is not RMM's log is held to be gmlake's own format,
/// whose reader then says what is wrong with it.
[[nodiscard]] constexpr file_format detect(std::string_view beginning) noexcept {
  return beginning.starts_with(rmm_header.substr(0, rmm_header.find(',') + 1)) ? file_format::rmm : file_format::gmlake;
}

/// Takes the text in pieces, like `reader`; the first piece must hold the beginning of the first line (8 bytes do).
class any_reader {
 public:
  [[nodiscard]] bool feed(std::string_view piece) {
    if (!detected_ && !piece.empty()) {
      if (detect(piece) == file_format::rmm) reader_.emplace<rmm_reader>();
      detected_ = true;
    }
    return std::visit([piece](auto& r) { return r.feed(piece); }, reader_);
  }

  [[nodiscard]] parse_result finish() {
    parse_result done = std::visit([](auto& r) { return r.finish(); }, reader_);
    *this = any_reader{};
    return done;
  }

 private:
  std::variant<reader, rmm_reader> reader_;
  bool detected_ = false;
};

/// Reads a whole text of either format.
[[nodiscard]] inline parse_result read_any(std::string_view text) {
  return detect(text) == file_format::rmm ? read_rmm(text) : read(text);
}

}  // namespace gmlake::trace
