#pragma once
/// The presets that the tool knows. To add one: say how its pool is made, and give it a line in `presets`.

#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "drive.hpp"
#include "gmlake/pool/presets/expandable.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/pool/presets/planned.hpp"
#include "gmlake/pool/presets/pytorch.hpp"
#include "gmlake/pool/presets/smartpool.hpp"
#include "gmlake/pool/presets/stweaver.hpp"
#include "gmlake/pool/presets/stweaver_plan.hpp"
#include "gmlake/trace/lifetimes.hpp"
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
    if (!r.plans.empty() && !made->adopt(r.plans)) throw std::bad_alloc();
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

struct preset {
  std::string_view name;
  std::string_view what;  ///< for --help
  void (*run)(run_request const&, run_record&);
};

/// The preset whose pools `Make` makes, on any backend.
template <class Make>
constexpr preset a_preset(std::string_view name, std::string_view what) {
  return {name, what, [](run_request const& q, run_record& out) {
            Make make;
            if constexpr (requires { make.prepare(q); }) make.prepare(q);
            with_backend(q.backend, [&](auto open) { drive(q, open, make, out); });
          }};
}

inline constexpr std::array presets = {
    a_preset<make_lake>("lake", "the library's default"),
    a_preset<make_planned>("planned", "lake, with plans of the steps that repeat in front"),
    a_preset<make_gmlake>("gmlake", "the GMLake paper's algorithm"),
    a_preset<make_pytorch>("pytorch", "PyTorch's native caching allocator, as a model"),
    a_preset<make_expandable>("expandable", "PyTorch's expandable segments, as a model"),
    a_preset<make_smartpool>("smartpool", "SmartPool's plan, once an iteration repeats, over pytorch; as a model"),
    a_preset<make_stweaver>("stweaver", "STWeaver's plan of a profiled run, over pytorch; as a model"),
};

}  // namespace gmlake::tools
