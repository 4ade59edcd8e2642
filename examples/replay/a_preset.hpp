#pragma once
/// A preset of the tool from what makes its pools.

#include <string_view>

#include "drive.hpp"
#include "presets.hpp"

namespace gmlake::tools {

/// The preset whose pools `Make` makes, on any backend.
template <class Make>
constexpr preset a_preset(std::string_view name, std::string_view what) {
  return {name, what, [](run_request const& q, run_record& out) {
            Make make;
            if constexpr (requires { make.prepare(q); }) make.prepare(q);
            with_backend(q.backend, [&](auto open) { drive(q, open, make, out); });
          }};
}

}  // namespace gmlake::tools
