#pragma once
/// Files as text, unpacked on the way where they are gzip.

#include <functional>
#include <string>
#include <string_view>

namespace gmlake::tools {

/// Takes the next piece of a file; returns false to have no more.
using sink = std::function<bool(std::string_view)>;

/// Reads `path`, plain or gzip (by its first bytes; several members may follow each other), piece by piece: the first
/// piece holds at least 64 bytes where the file does. Returns what went wrong, without the path; empty when nothing
/// did.
[[nodiscard]] std::string read_file(std::string const& path, sink const& take);

}  // namespace gmlake::tools
