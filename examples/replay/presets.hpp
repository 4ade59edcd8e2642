#pragma once
/// The presets that the tool knows. To add one: say how its pool is made, and give it a line in `presets`.

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "drive.hpp"
#include "gmlake/pool/presets/expandable.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/pool/presets/pytorch.hpp"
#include "run.hpp"

namespace gmlake::tools {

/// `--chunk` asks for chunks of that one size instead of adaptive ones.
struct make_lake {
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams streams, pool_request const& r) const {
    using pool = lake_pool<B, simulated_streams>;
    adaptive_options chunks;
    if (r.chunk) chunks = adaptive_options::fixed(*r.chunk);
    return std::make_unique<pool>(std::move(backend), std::move(streams), pool_options{.limit = r.limit},
                                  typename pool::policies{.growth = adaptive_chunks(chunks)});
  }
};

struct make_gmlake {
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams streams, pool_request const& r) const {
    return std::make_unique<gmlake_pool<B, simulated_streams>>(std::move(backend), std::move(streams),
                                                               pool_options{.limit = r.limit});
  }
};

struct make_pytorch {
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams const&, pool_request const& r) const {
    return std::make_unique<pytorch_pool<B>>(std::move(backend), pytorch_options{.limit = r.limit});
  }
};

struct make_expandable {
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams const&, pool_request const& r) const {
    return std::make_unique<expandable_pool<B>>(std::move(backend), expandable_options{.limit = r.limit});
  }
};

struct preset {
  std::string_view name;
  std::string_view what;  ///< for --help
  void (*run)(run_request const&, run_record&);
};

/// The preset whose pools `Make` makes, on any backend.
template <class Make>
constexpr preset a_preset(std::string_view name, std::string_view what) {
  return {name, what, [](run_request const& q, run_record& out) {
            with_backend(q.backend, [&](auto open) { drive(q, open, Make{}, out); });
          }};
}

inline constexpr std::array presets = {
    a_preset<make_lake>("lake", "the library's default"),
    a_preset<make_gmlake>("gmlake", "the GMLake paper's algorithm"),
    a_preset<make_pytorch>("pytorch", "PyTorch's native caching allocator, as a model"),
    a_preset<make_expandable>("expandable", "PyTorch's expandable segments, as a model"),
};

}  // namespace gmlake::tools
