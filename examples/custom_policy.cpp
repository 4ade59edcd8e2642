/// A policy of one's own, complete: which chunks a stitch may be made of, in a pool that is otherwise the default.
///
/// A stitch costs the driver time for each handle in it. `few_handles` therefore takes what the default policy chooses
/// only if it is few chunks, and has the pool grow otherwise: less driver time while the program runs, at the price of
/// more memory. The program replays one made-up training run through both pools, prints what each took, and fails if
/// the policy did not keep its promise.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/observe/counters.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/stitch/largest_first.hpp"
#include "gmlake/trace/replay.hpp"

namespace {

using namespace gmlake;

/// The policy: three functions, all `noexcept`. It answers and does nothing else: no locks, no memory, no driver calls.
class few_handles {
 public:
  /// Policies with options come as values; see `few_pool` below.
  explicit few_handles(std::size_t most = 8) noexcept : most_(most) {}

  /// Whether a request of n bytes may be stitched at all; `grown_first`: the pool could not grow instead.
  [[nodiscard]] bool stitches(bytes n, bool grown_first) const noexcept { return base_.stitches(n, grown_first); }

  /// Whether an idle stitch may serve a smaller request: always, as it costs nothing.
  [[nodiscard]] bool reuses(bytes capacity, bytes n) const noexcept { return base_.reuses(capacity, n); }

  /// Writes the extents that make up n bytes to `out`, or says how many bytes to create instead.
  [[nodiscard]] stitch_choice choose(stitch_candidates from, bytes n, std::span<extent> out) const noexcept {
    stitch_choice const choice = base_.choose(from, n, out);
    if (choice.shortfall > 0 || choice.count <= most_) return choice;
    return {.count = 0, .shortfall = n};
  }

 private:
  largest_first base_;
  std::size_t most_;
};
static_assert(StitchPolicy<few_handles>);  // what is missing or misspelt is said here

/// An observer of one's own, to see whether the promise is kept: the usual counters, and the widest stitch.
struct widest_stitch : counters {
  std::size_t handles = 0;

  void stitched(stitch_event const& s) noexcept {
    counters::stitched(s);
    handles = std::max(handles, s.handles);
  }
};
static_assert(CountingObserver<widest_stitch>);

/// The default pool, and the same with another policy.
using default_config = lake_config<simulated>::with_observer<widest_stitch>;
using few_config = default_config::with_stitch<few_handles>;
using default_pool = basic_pool<default_config>;
using few_pool = basic_pool<few_config>;

/// Steps of a training run with sequences of varying length: activations pile up forward and go backward, while the
/// gradients that come then stay until the next step, in between what the next step brings.
trace::trace training_run() {
  constexpr int steps = 60;
  constexpr std::uint32_t layers = 48;
  std::mt19937 random(1);
  std::uniform_int_distribution<bytes> lengths(200, 2000);
  trace::trace t;
  auto const allocate = [&t](bytes size) {
    t.events.push_back({.size = size, .id = t.allocations, .kind = trace::event_kind::allocate});
    return t.allocations++;
  };
  auto const deallocate = [&t](std::uint32_t id) {
    t.events.push_back({.id = id, .kind = trace::event_kind::deallocate});
  };
  std::vector<std::uint32_t> gradients;
  for (int step = 0; step < steps; ++step) {
    bytes const length = lengths(random);
    std::vector<std::uint32_t> activations;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      activations.push_back(allocate(length * (layer % 3 == 0 ? 160_KiB : 40_KiB)));
    }
    for (std::uint32_t const id : std::exchange(gradients, {})) deallocate(id);
    for (; !activations.empty(); activations.pop_back()) {
      gradients.push_back(allocate(24_MiB));
      deallocate(activations.back());
    }
  }
  return t;
}

struct outcome {
  pool_stats stats;
  std::size_t widest = 0;
};

template <class P>
outcome replay(char const* name, trace::trace const& events, P& pool) {
  trace::replay_result const done = trace::replay(events, pool);
  if (!done.ok()) {
    std::printf("%s: %s at event %zu\n", name, to_string(done.error.code), done.failed_event);
    std::exit(EXIT_FAILURE);
  }
  outcome const o{done.stats, pool.observe([](widest_stitch const& seen) { return seen.handles; })};
  std::printf("%-12s %10zu %10zu %12.1f %10llu %8zu\n", name, o.stats.requested.peak >> 20, o.stats.reserved.peak >> 20,
              static_cast<double>(o.stats.driver.total().time.count()) / 1e6,
              static_cast<unsigned long long>(o.stats.stitches_made), o.widest);
  return o;
}

}  // namespace

int main() {
  trace::trace const events = training_run();
  std::printf("%-12s %10s %10s %12s %10s %8s\n", "policy", "asked MiB", "held MiB", "driver ms", "stitches", "widest");

  default_pool usual{simulated{}};
  outcome const before = replay("default", events, usual);

  // A policy's options are given by its name; those not named are as they are by default.
  constexpr std::size_t most_handles = 8;
  few_pool frugal(simulated{}, pool_options{}, {.stitch = few_handles(most_handles)});
  outcome const after = replay("few_handles", events, frugal);

  bool const kept = after.widest <= most_handles && before.widest > most_handles;
  bool const sound = usual.validate() == nullptr && frugal.validate() == nullptr;
  if (!kept) std::puts("the policy was not followed");
  if (!sound) std::puts("an invariant is broken");
  return kept && sound ? EXIT_SUCCESS : EXIT_FAILURE;
}
