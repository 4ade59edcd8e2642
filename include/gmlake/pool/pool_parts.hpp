#pragma once
/// Everything that a pool consists of, for the classes that each do one part of its work: `grower`, `stitcher`,
/// `reclaimer`, and `engine`, which decides their order.

#include <utility>

#include "gmlake/backend/arrears.hpp"
#include "gmlake/backend/metered.hpp"
#include "gmlake/pool/free_space.hpp"
#include "gmlake/pool/pool_config.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/pool/stitch_cache.hpp"

namespace gmlake {

template <PoolConfig Config>
struct pool_parts {
  using backend_type = metered<typename Config::backend>;
  using space_type = free_space<backend_type, typename Config::streams, typename Config::split>;

  pool_parts(typename Config::backend wrapped, typename Config::streams streams, pool_options const& o,
             pool_policies<Config> policies) noexcept
      : options(o),
        backend(std::move(wrapped)),
        owed(backend),
        space(owed, std::move(streams)),
        stitches(owed, std::move(policies.evict)),
        wait(std::move(policies.wait)),
        growth(std::move(policies.growth)),
        stitch(std::move(policies.stitch)),
        observer(std::move(policies.observer)),
        planning(std::move(policies.planning)),
        granule(backend.granularity()) {}
  pool_parts(pool_parts const&) = delete;
  pool_parts& operator=(pool_parts const&) = delete;
  /// Waits for the device first: what was freed may still be in use, and unmapping does not wait.
  ~pool_parts() {
    if (space.time().streams().concurrent()) (void)space.time().streams().synchronize_device();
    stitches.release_all();
    bytes const held = space.home().reserved();
    space.home().release_all();
    owed.settle();
    if (options.shared != nullptr) options.shared->give(held);
  }

  pool_options options;
  backend_type backend;
  arrears<backend_type> owed;
  space_type space;
  stitch_cache<backend_type, typename Config::eviction> stitches;
  typename Config::wait wait;
  typename Config::growth growth;
  typename Config::stitching stitch;
  typename Config::observer observer;
  [[no_unique_address]] typename Config::planning planning;
  bytes granule;
  bytes freed_since_growth = 0;
  std::uint64_t retries = 0;  ///< requests that came to the last resorts
};

}  // namespace gmlake
