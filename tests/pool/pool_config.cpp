/// A configuration takes a policy only in the place of its own kind, and a pool takes only a whole configuration.

#include "gmlake/pool/pool_config.hpp"

#include "gmlake/backend/simulated.hpp"
#include "gmlake/evict/no_evict.hpp"
#include "gmlake/fwd.hpp"
#include "gmlake/grow/fixed_chunks.hpp"
#include "gmlake/observe/event_log.hpp"
#include "gmlake/plan/plan_at_once.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/split/tlsf.hpp"
#include "gmlake/stitch/no_stitch.hpp"
#include "gmlake/stream/grow_before_waiting.hpp"
#include "gmlake/stream/simulated_streams.hpp"

namespace gmlake {
namespace {

using config = pool_config<simulated>;

template <class T, class Named>
inline constexpr bool names = std::same_as<T, Named>;

// Each alias changes its own policy and keeps the others.
using changed = config::with_streams<simulated_streams>::with_wait<grow_before_waiting>::with_split<tlsf>::with_growth<
    fixed_chunks>::with_stitch<no_stitch>::with_evict<no_evict>::with_observer<event_log>::with_mutex<null_mutex>;
static_assert(names<changed::backend, simulated> && names<changed::streams, simulated_streams>);
static_assert(names<changed::wait, grow_before_waiting> && names<changed::split, tlsf>);
static_assert(names<changed::growth, fixed_chunks> && names<changed::stitching, no_stitch>);
static_assert(names<changed::eviction, no_evict> && names<changed::observer, event_log>);
static_assert(names<changed::mutex, null_mutex>);
static_assert(names<changed::planning, plan::no_plans>);
static_assert(names<config::with_planning<plan::plan_at_once>::planning, plan::plan_at_once>);
static_assert(names<config::with_split<tlsf>::with_split<best_fit>, config>);
static_assert(names<config::with_backend<simulated>, config>);

// Each takes its own kind of policy, and no other.
template <class T>
concept AsBackend = requires { typename config::with_backend<T>; };
template <class T>
concept AsStreams = requires { typename config::with_streams<T>; };
template <class T>
concept AsWait = requires { typename config::with_wait<T>; };
template <class T>
concept AsSplit = requires { typename config::with_split<T>; };
template <class T>
concept AsGrowth = requires { typename config::with_growth<T>; };
template <class T>
concept AsStitch = requires { typename config::with_stitch<T>; };
template <class T>
concept AsEvict = requires { typename config::with_evict<T>; };
template <class T>
concept AsObserver = requires { typename config::with_observer<T>; };
template <class T>
concept AsMutex = requires { typename config::with_mutex<T>; };
template <class T>
concept AsPlanning = requires { typename config::with_planning<T>; };

template <class T>
constexpr int places() {
  return AsBackend<T> + AsStreams<T> + AsWait<T> + AsSplit<T> + AsGrowth<T> + AsStitch<T> + AsEvict<T> + AsObserver<T> +
         AsMutex<T> + AsPlanning<T>;
}
static_assert(AsBackend<simulated> && places<simulated>() == 1);
static_assert(AsStreams<simulated_streams> && places<simulated_streams>() == 1);
static_assert(AsWait<grow_before_waiting> && places<grow_before_waiting>() == 1);
static_assert(AsSplit<tlsf> && places<tlsf>() == 1);
static_assert(AsGrowth<fixed_chunks> && places<fixed_chunks>() == 1);
static_assert(AsStitch<no_stitch> && places<no_stitch>() == 1);
static_assert(AsEvict<no_evict> && places<no_evict>() == 1);
static_assert(AsObserver<event_log> && places<event_log>() == 1);
static_assert(AsMutex<null_mutex> && places<null_mutex>() == 1);
static_assert(AsPlanning<plan::plan_at_once> && places<plan::plan_at_once>() == 1);
static_assert(places<int>() == 0 && places<config>() == 0);

// A configuration of one's own names all ten; a missing or wrong one is found by name.
struct model {
  using backend = simulated;
  using streams = one_stream;
  using wait = wait_before_growing;
  using split = best_fit;
  using growth = adaptive_chunks;
  using stitching = largest_first;
  using eviction = lru;
  using observer = counters;
  using mutex = null_mutex;
  using planning = plan::no_plans;
};
static_assert(PoolConfig<model> && PoolConfig<config> && PoolConfig<changed> && !PoolConfig<int>);

struct other_backend : model {
  using backend = one_stream;
};
struct other_streams : model {
  using streams = simulated;
};
struct other_wait : model {
  using wait = best_fit;
};
struct other_split : model {
  using split = largest_first;
};
struct other_growth : model {
  using growth = no_stitch;
};
struct other_stitching : model {
  using stitching = fixed_chunks;
};
struct other_eviction : model {
  using eviction = best_fit;
};
struct other_observer : model {
  using observer = void;
};
struct other_mutex : model {
  using mutex = int;
};
struct other_planning : model {
  using planning = null_mutex;
};
static_assert(!PoolConfig<other_backend> && !PoolConfig<other_streams> && !PoolConfig<other_wait>);
static_assert(!PoolConfig<other_split> && !PoolConfig<other_growth> && !PoolConfig<other_stitching>);
static_assert(!PoolConfig<other_eviction> && !PoolConfig<other_observer> && !PoolConfig<other_mutex>);
static_assert(!PoolConfig<other_planning>);

struct without_backend {
  using streams = one_stream;
  using wait = wait_before_growing;
  using split = best_fit;
  using growth = adaptive_chunks;
  using stitching = largest_first;
  using eviction = lru;
  using observer = counters;
  using mutex = null_mutex;
  using planning = plan::no_plans;
};
static_assert(!PoolConfig<without_backend>);

template <class C>
concept Pooled = requires { typename basic_pool<C>; };
static_assert(Pooled<model> && Pooled<changed> && !Pooled<other_split> && !Pooled<simulated>);

// The default pool is the default preset.
static_assert(std::same_as<pool<simulated>, lake_pool<simulated>>);
static_assert(std::same_as<pool<simulated, simulated_streams>, lake_pool<simulated, simulated_streams>>);

}  // namespace
}  // namespace gmlake
