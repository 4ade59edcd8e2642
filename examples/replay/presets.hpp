#pragma once
/// The presets that the tool knows: gmlake's own (own_presets.cpp), and others' allocators as models of them
/// (peer_presets.cpp). To add one: say there how its pool is made, and give it a line in the list at the end.

#include <span>
#include <string_view>
#include <vector>

#include "run.hpp"

namespace gmlake::tools {

struct preset {
  std::string_view name;
  std::string_view what;  ///< for --help
  void (*run)(run_request const&, run_record&);
};

[[nodiscard]] std::span<preset const> own_presets() noexcept;
[[nodiscard]] std::span<preset const> peer_presets() noexcept;

/// All of them; the first is the default.
[[nodiscard]] inline std::vector<preset> const& presets() {
  static std::vector<preset> const all = [] {
    std::vector<preset> both(own_presets().begin(), own_presets().end());
    both.insert(both.end(), peer_presets().begin(), peer_presets().end());
    return both;
  }();
  return all;
}

}  // namespace gmlake::tools
