#pragma once
/// What the host has left, as Linux tells it: free memory and what the kernel would give up for it.

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

/// Of the whole machine: a process confined to less (cgroups, a NUMA node) is not told so. Error: `not_supported`.
[[nodiscard]] inline result<device_memory> host_memory_info() noexcept {
  std::FILE* const file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return failure(errc::not_supported, "/proc/meminfo");
  device_memory m;
  char line[128];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    std::string_view const text = line;
    for (auto const& [name, value] :
         {std::pair{std::string_view("MemTotal:"), &m.total}, std::pair{std::string_view("MemAvailable:"), &m.free}}) {
      if (text.starts_with(name)) *value = bytes{std::strtoull(line + name.size(), nullptr, 10)} << 10;  // from KiB
    }
  }
  static_cast<void>(std::fclose(file));
  if (m.total == 0 || m.free == 0) return failure(errc::not_supported, "/proc/meminfo");
  return m;
}

}  // namespace gmlake
