#pragma once
/// The presets as benchmarks make them, on a simulated device: what its calls would cost is modelled and takes no time.

#include <memory>
#include <utility>

#include "gmlake/pool/presets/expandable.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/pool/presets/pytorch.hpp"
#include "gmlake/split/tlsf.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "gmlake/trace/replay.hpp"

namespace gmlake::bench {

/// A device without bounds, so that any number of blocks fits.
[[nodiscard]] inline simulated boundless() noexcept {
  return simulated({.capacity = simulated_options::unlimited, .addresses = 1024_TiB});
}

/// For one stream, on a boundless device: `make_lake{}()` is a `std::unique_ptr` to a pool.
template <PoolConfig Config>
struct make_basic {
  auto operator()() const { return std::make_unique<basic_pool<Config>>(boundless()); }
};
using make_lake = make_basic<lake_config<simulated>>;
using make_lake_unlocked = make_basic<lake_config<simulated>::with_mutex<null_mutex>>;
using make_lake_tlsf = make_basic<lake_config<simulated>::with_split<tlsf>>;
using make_lake_tlsf_unlocked = make_basic<lake_config<simulated>::with_split<tlsf>::with_mutex<null_mutex>>;
using make_gmlake = make_basic<gmlake_config<simulated>>;

struct make_pytorch {
  auto operator()() const { return std::make_unique<pytorch_pool<simulated>>(boundless()); }
};
struct make_expandable {
  auto operator()() const {
    return std::make_unique<expandable_pool<simulated>>(boundless(), expandable_options{.device_bytes = 16_TiB});
  }
};

/// For replays: `with_pool(f)` calls f(pool, timeline) with a fresh pool, and streams as `gmlake-replay` simulates
/// them.
template <PoolConfig Config>
struct of_basic {
  template <class F>
  static void with_pool(F&& f) {
    auto timeline = std::make_shared<simulated_timeline>();
    basic_pool<Config> pool(simulated{}, simulated_streams(timeline));
    std::forward<F>(f)(pool, *timeline);
  }
};
using of_lake = of_basic<lake_config<simulated, simulated_streams>>;
using of_lake_tlsf = of_basic<lake_config<simulated, simulated_streams>::with_split<tlsf>>;
using of_gmlake = of_basic<gmlake_config<simulated, simulated_streams>>;

template <Pool P>
struct of_peer {
  template <class F>
  static void with_pool(F&& f) {
    P pool(simulated{});
    trace::no_timeline none;
    std::forward<F>(f)(pool, none);
  }
};
using of_pytorch = of_peer<pytorch_pool<simulated>>;
using of_expandable = of_peer<expandable_pool<simulated>>;

}  // namespace gmlake::bench
