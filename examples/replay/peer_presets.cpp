/// Others' allocators, as models of them and as presets of the tool.

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "a_preset.hpp"
#include "gmlake/pool/presets/expandable.hpp"
#include "gmlake/pool/presets/pytorch.hpp"
#include "gmlake/pool/presets/smartpool.hpp"
#include "gmlake/pool/presets/stweaver.hpp"
#include "gmlake/pool/presets/stweaver_plan.hpp"
#include "gmlake/trace/lifetimes.hpp"

namespace gmlake::tools {
namespace {

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

struct make_smartpool {
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams const&, pool_request const& r) const {
    return std::make_unique<smartpool<B>>(std::move(backend), smartpool_options{.limit = r.limit});
  }
};

/// The trace itself is the run profiled beforehand.
struct make_stweaver {
  void prepare(run_request const& q) {
    auto const begin = std::chrono::steady_clock::now();
    plans = make_stweaver_plans(trace::lifetimes_of(*q.events));
    took = std::chrono::steady_clock::now() - begin;
  }
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams const&, pool_request const& r) const {
    return std::make_unique<stweaver<B>>(std::move(backend), stweaver_options{.limit = r.limit, .plans = plans});
  }
  [[nodiscard]] std::chrono::nanoseconds prepared_in() const noexcept { return took; }

  std::vector<plan::plan> plans;
  std::chrono::nanoseconds took{0};
};

constexpr std::array peers = {
    a_preset<make_pytorch>("pytorch", "PyTorch's native caching allocator, as a model"),
    a_preset<make_expandable>("expandable", "PyTorch's expandable segments, as a model"),
    a_preset<make_smartpool>("smartpool", "SmartPool's plan, once an iteration repeats, over pytorch; as a model"),
    a_preset<make_stweaver>("stweaver", "STWeaver's plan of a profiled run, over pytorch; as a model"),
};

}  // namespace

std::span<preset const> peer_presets() noexcept { return peers; }

}  // namespace gmlake::tools
