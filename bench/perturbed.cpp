// What plans are worth where steps don't repeat themselves exactly: every trace in a folder, changed at random in one
// way at a time, replayed through `lake` and through `planned`, with and without marks of steps. A table: fragmentation
// (1 - peak requested / peak reserved) and modelled driver time of each, and the share of requests that the plan
// served.
//
//     gmlake-bench-perturbed [FOLDER] [SEED]        default: bench/traces, 1

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/command_line.hpp"
#include "bench/presets.hpp"
#include "bench/traces.hpp"
#include "gmlake/pool/presets/planned.hpp"

namespace {

using namespace gmlake;
using trace::event;
using trace::event_kind;

using of_planned = bench::of_basic<planned_config<simulated, simulated_streams, plan::plan_at_once>>;

/// A trace in the making: ids are any numbers, and become dense at the end.
class maker {
 public:
  maker(trace::trace const& t, std::uint64_t seed) : labels_(t.labels), random_(seed), next_id_(t.allocations) {
    events_.reserve(t.events.size());
    for (event const& e : t.events) {
      bool const counts =
          e.kind == event_kind::allocate || e.kind == event_kind::deallocate || e.kind == event_kind::mark;
      if (counts) events_.push_back(e);
    }
  }

  [[nodiscard]] bool chance(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }
  [[nodiscard]] double between(double least, double most) {
    return std::uniform_real_distribution<>(least, most)(random_);
  }
  [[nodiscard]] std::vector<event>& events() { return events_; }
  [[nodiscard]] std::uint32_t new_id() { return next_id_++; }

  [[nodiscard]] static bytes times(bytes n, double factor) {
    return std::max<bytes>(1, static_cast<bytes>(static_cast<double>(n) * factor));
  }

  [[nodiscard]] trace::trace made() {
    trace::trace t;
    t.labels = labels_;
    constexpr auto none = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> names(next_id_, none);
    for (event e : events_) {
      if (e.kind == event_kind::allocate) names[e.id] = t.allocations++;
      if (e.kind != event_kind::mark) {
        if (names[e.id] == none) continue;
        e.id = names[e.id];
      }
      t.events.push_back(e);
    }
    return t;
  }

 private:
  std::vector<std::string> labels_;
  std::mt19937_64 random_;
  std::vector<event> events_;
  std::uint32_t next_id_;
};

void resize(maker& m, double share) {
  for (event& e : m.events()) {
    if (e.kind == event_kind::allocate && m.chance(share)) e.size = maker::times(e.size, m.between(0.5, 1.5));
  }
}

/// Blocks of 512 bytes to 64 MiB that live for a few events.
void add(maker& m, double share) {
  std::vector<event> all;
  std::vector<std::pair<std::size_t, std::uint32_t>> open;  // to be freed before so many events
  for (std::size_t i = 0; i < m.events().size(); ++i) {
    std::erase_if(open, [&](auto const& o) {
      if (o.first > i) return false;
      all.push_back({.id = o.second, .kind = event_kind::deallocate});
      return true;
    });
    all.push_back(m.events()[i]);
    if (!m.chance(share)) continue;
    event const extra{.size = static_cast<bytes>(std::exp2(m.between(9, 26))), .id = m.new_id()};
    all.push_back(extra);
    open.emplace_back(i + 1 + static_cast<std::size_t>(m.between(0, 20)), extra.id);
  }
  m.events() = std::move(all);
}

void leave_out(maker& m, double share) {
  std::erase_if(m.events(), [&](event const& e) { return e.kind == event_kind::allocate && m.chance(share); });
}

void exchange(maker& m, double share) {
  auto& all = m.events();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    bool const both = all[i].kind == event_kind::allocate && all[i + 1].kind == event_kind::allocate;
    if (both && m.chance(share)) std::swap(all[i], all[i + 1]);
  }
}

void free_late(maker& m, double share) {
  auto& all = m.events();
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].kind != event_kind::deallocate || !m.chance(share)) continue;
    std::size_t const to = std::min(all.size() - 1, i + static_cast<std::size_t>(m.between(1, 200)));
    auto const at = [&](std::size_t n) { return all.begin() + static_cast<std::ptrdiff_t>(n); };
    std::rotate(at(i), at(i + 1), at(to + 1));
  }
}

/// What is born and freed within a step is so many times as large there; `of` tells by the step's number.
template <class Of>
void scale_steps(maker& m, trace::trace const& t, Of&& of) {
  auto& all = m.events();
  std::vector<std::size_t> born(t.allocations), step_of(t.allocations);
  std::size_t step = 0;
  double factor = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    event const& e = all[i];
    if (e.kind == event_kind::mark && t.labels[e.id] == trace::step_label) factor = of(++step);
    if (e.kind == event_kind::allocate) born[e.id] = i, step_of[e.id] = step;
    if (e.kind == event_kind::deallocate && step > 0 && step_of[e.id] == step) {
      event& birth = all[born[e.id]];
      birth.size = maker::times(birth.size, factor);
    }
  }
}

struct figures {
  double lost = 0;       ///< percent
  double driver_ms = 0;  ///< modelled
  double planned = 0;    ///< percent of requests
};

template <class Preset>
figures replayed(trace::trace const& t) {
  figures f;
  Preset::with_pool([&](auto& pool, auto& timeline) {
    trace::replay_result const r = trace::replay(t, pool, timeline);
    if (!r.ok()) (void)std::fprintf(stderr, "a replay failed\n");
    f.lost = 100 * (1 - static_cast<double>(r.stats.requested.peak) / static_cast<double>(r.stats.reserved.peak));
    f.driver_ms = static_cast<double>(r.stats.driver.total().time.count()) / 1e6;
    if constexpr (requires { pool.plans_seen(); }) {
      f.planned = 100 * static_cast<double>(pool.plans_seen().placed) / static_cast<double>(t.allocations);
    }
  });
  return f;
}

void row(std::string const& name, char const* change, trace::trace t) {
  figures const lake = replayed<bench::of_lake>(t);
  figures const planned = replayed<of_planned>(t);
  std::erase_if(t.events, [](event const& e) { return e.kind == event_kind::mark; });
  figures const unmarked = replayed<of_planned>(t);
  std::printf("%-16s %-22s | %6.2f %8.1f | %6.2f %8.1f %6.1f | %6.2f %8.1f %6.1f\n", name.c_str(), change, lake.lost,
              lake.driver_ms, planned.lost, planned.driver_ms, planned.planned, unmarked.lost, unmarked.driver_ms,
              unmarked.planned);
  (void)std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = bench::shipped_traces();
  std::uint64_t seed = 1;
  CLI::App app{"What plans are worth where steps do not repeat themselves exactly.", "gmlake-bench-perturbed"};
  bench::takes_folder(app, folder, "Of traces. Default: those that come with the project");
  app.add_option("seed", seed, "Default: 1")->type_name("SEED");
  if (auto const status = bench::status_of(app, argc, argv)) return *status;
  std::printf("%-16s %-22s | %6s %8s | %6s %8s %6s | %6s %8s %6s\n", "", "", "lake %", "ms", "plan %", "ms", "served",
              "marks:", "none", "served");
  for (std::string const& path : bench::trace_paths(folder.c_str())) {
    trace::trace const t = bench::load(path);
    auto const changed = [&](char const* how, auto&& change) {
      maker m(t, seed);
      change(m);
      row(bench::name_of(path), how, m.made());
    };
    changed("as recorded", [](maker&) {});
    for (double const share : {0.001, 0.02}) {
      char text[40];
      auto const with = [&](char const* what, auto&& change) {
        (void)std::snprintf(text, sizeof text, "%.1f%% %s", 100 * share, what);
        changed(text, [&](maker& m) { change(m, share); });
      };
      with("resized", resize);
      with("more", add);
      with("left out", leave_out);
      with("exchanged", exchange);
      with("freed late", free_late);
    }
    changed("three lengths", [&](maker& m) {
      scale_steps(m, t,
                  [&](std::size_t) { return std::array{1.0, 0.8, 0.6}[static_cast<std::size_t>(m.between(0, 3))]; });
    });
    changed("any length", [&](maker& m) { scale_steps(m, t, [&](std::size_t) { return m.between(0.5, 1); }); });
    changed("shorter from half on", [&](maker& m) {
      auto const steps = std::ranges::count_if(
          t.events, [&](event const& e) { return e.kind == event_kind::mark && t.labels[e.id] == trace::step_label; });
      scale_steps(m, t, [&](std::size_t step) { return 2 * step > static_cast<std::size_t>(steps) ? 0.7 : 1.0; });
    });
  }
}
