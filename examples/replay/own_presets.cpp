/// gmlake's own pools, as presets of the tool.

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "a_preset.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/pool/presets/planned.hpp"

namespace gmlake::tools {
namespace {

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

/// Plans as `plan_at_once` does, and adds up the time that it takes.
struct timed_planning {
  static constexpr bool enabled = true;
  std::chrono::nanoseconds* spent = nullptr;  ///< outlives the pool

  void start(std::shared_ptr<plan::plan_job> const& job) const noexcept {
    auto const begin = std::chrono::steady_clock::now();
    plan::plan_at_once{}.start(job);
    if (spent != nullptr) *spent += std::chrono::steady_clock::now() - begin;
  }
};
static_assert(plan::PlanningPolicy<timed_planning>);

struct make_planned {
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams streams, pool_request const& r) const {
    using pool = planned_pool<B, simulated_streams, timed_planning>;
    adaptive_options chunks;
    if (r.chunk) chunks = adaptive_options::fixed(*r.chunk);
    *spent = {};
    auto made =
        std::make_unique<pool>(std::move(backend), std::move(streams), pool_options{.limit = r.limit},
                               typename pool::policies{.growth = adaptive_chunks(chunks), .planning = {spent.get()}});
    if (!r.plans.empty()) {
      if (result<void> const done = made->adopt(r.plans); !done) {
        throw std::runtime_error(std::string("the plans can't be followed: ") + done.error().call + ": " +
                                 to_string(done.error().code));
      }
    }
    return made;
  }
  /// Of the pool made last.
  [[nodiscard]] std::chrono::nanoseconds planning_time() const noexcept { return *spent; }

  std::unique_ptr<std::chrono::nanoseconds> spent = std::make_unique<std::chrono::nanoseconds>();
};

struct make_gmlake {
  template <PhysicalBackend B>
  auto operator()(B backend, simulated_streams streams, pool_request const& r) const {
    return std::make_unique<gmlake_pool<B, simulated_streams>>(std::move(backend), std::move(streams),
                                                               pool_options{.limit = r.limit});
  }
};

constexpr std::array own = {
    a_preset<make_lake>("lake", "the library's default"),
    a_preset<make_planned>("planned", "lake, with plans of the steps that repeat in front"),
    a_preset<make_gmlake>("gmlake", "the GMLake paper's algorithm"),
};

}  // namespace

std::span<preset const> own_presets() noexcept { return own; }

}  // namespace gmlake::tools
