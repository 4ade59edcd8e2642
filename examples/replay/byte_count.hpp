#pragma once
/// Sizes as people write them.

#include <optional>
#include <string>
#include <string_view>

#include "gmlake/core/types.hpp"

namespace gmlake::tools {

/// "1048576", "512MiB", "1.5GiB", "2G": bytes; nothing where it is not positive, or not representable.
[[nodiscard]] std::optional<bytes> parse_bytes(std::string_view text) noexcept;

/// What is wrong with such a text, for a command line; empty: nothing.
[[nodiscard]] std::string check_bytes(std::string const& text);

}  // namespace gmlake::tools
