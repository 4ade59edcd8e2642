#pragma once
/// Which policies make up a pool, chosen by name. A misspelt name, or a class that is no such policy, fails here:
///
///     using config = pool_config<simulated>::with_split<tlsf>::with_evict<no_evict>;
///     basic_pool<config> pool(simulated{});

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/atomic_mutex.hpp"
#include "gmlake/evict/lru.hpp"
#include "gmlake/grow/adaptive_chunks.hpp"
#include "gmlake/observe/counters.hpp"
#include "gmlake/plan/planning_policy.hpp"
#include "gmlake/split/best_fit.hpp"
#include "gmlake/stitch/largest_first.hpp"
#include "gmlake/stream/one_stream.hpp"
#include "gmlake/stream/wait_before_growing.hpp"

namespace gmlake {

template <PhysicalBackend Backend, StreamPolicy Streams = one_stream, WaitPolicy Wait = wait_before_growing,
          SplitPolicy Split = best_fit, GrowthPolicy Growth = adaptive_chunks, StitchPolicy Stitch = largest_first,
          EvictionPolicy Evict = lru, Observer Observe = counters, Mutex Lock = atomic_mutex,
          plan::PlanningPolicy Planning = plan::no_plans>
struct pool_config {
  using backend = Backend;
  using streams = Streams;
  using wait = Wait;
  using split = Split;
  using growth = Growth;
  using stitching = Stitch;
  using eviction = Evict;
  using observer = Observe;
  using mutex = Lock;
  using planning = Planning;

  template <PhysicalBackend T>
  using with_backend = pool_config<T, Streams, Wait, Split, Growth, Stitch, Evict, Observe, Lock, Planning>;
  template <StreamPolicy T>
  using with_streams = pool_config<Backend, T, Wait, Split, Growth, Stitch, Evict, Observe, Lock, Planning>;
  template <WaitPolicy T>
  using with_wait = pool_config<Backend, Streams, T, Split, Growth, Stitch, Evict, Observe, Lock, Planning>;
  template <SplitPolicy T>
  using with_split = pool_config<Backend, Streams, Wait, T, Growth, Stitch, Evict, Observe, Lock, Planning>;
  template <GrowthPolicy T>
  using with_growth = pool_config<Backend, Streams, Wait, Split, T, Stitch, Evict, Observe, Lock, Planning>;
  template <StitchPolicy T>
  using with_stitch = pool_config<Backend, Streams, Wait, Split, Growth, T, Evict, Observe, Lock, Planning>;
  template <EvictionPolicy T>
  using with_evict = pool_config<Backend, Streams, Wait, Split, Growth, Stitch, T, Observe, Lock, Planning>;
  template <Observer T>
  using with_observer = pool_config<Backend, Streams, Wait, Split, Growth, Stitch, Evict, T, Lock, Planning>;
  template <plan::PlanningPolicy T>
  using with_planning = pool_config<Backend, Streams, Wait, Split, Growth, Stitch, Evict, Observe, Lock, T>;
  template <Mutex T>
  using with_mutex = pool_config<Backend, Streams, Wait, Split, Growth, Stitch, Evict, Observe, T, Planning>;
};

/// What `basic_pool` takes: a `pool_config`, or anything that names as much.
template <class C>
concept PoolConfig =
    PhysicalBackend<typename C::backend> && StreamPolicy<typename C::streams> && WaitPolicy<typename C::wait> &&
    SplitPolicy<typename C::split> && GrowthPolicy<typename C::growth> && StitchPolicy<typename C::stitching> &&
    EvictionPolicy<typename C::eviction> && Observer<typename C::observer> && Mutex<typename C::mutex> &&
    plan::PlanningPolicy<typename C::planning>;

/// The policies' own values, for those that take options.
template <PoolConfig Config>
struct pool_policies {
  typename Config::wait wait{};
  typename Config::growth growth{};
  typename Config::stitching stitch{};
  typename Config::eviction evict{};
  typename Config::observer observer{};
  typename Config::planning planning{};
};

}  // namespace gmlake
