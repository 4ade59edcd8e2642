#pragma once
/// Errors as the frameworks' users see them.

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

/// What can't be expressed as a result in the frameworks' interfaces.
class torch_failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An error in words, for users.
[[nodiscard]] inline std::string describe(error const& e) {
  std::string out = std::string("gmlake: ") + to_string(e.code) + " in " + e.call;
  return e.native != 0 ? out + " (code " + std::to_string(e.native) + ")" : out;
}

/// A size as PyTorch writes it.
[[nodiscard]] inline std::string in_units(bytes n) {
  if (n <= 1_KiB) return std::to_string(n) + " bytes";
  auto const [unit, name] = n <= 1_MiB   ? std::pair{1_KiB, " KiB"}
                            : n <= 1_GiB ? std::pair{1_MiB, " MiB"}
                                         : std::pair{1_GiB, " GiB"};
  std::array<char, 32> text{};
  static_cast<void>(
      std::snprintf(text.data(), text.size(), "%.2f", static_cast<double>(n) / static_cast<double>(unit)));
  return text.data() + std::string(name);
}

}  // namespace gmlake
