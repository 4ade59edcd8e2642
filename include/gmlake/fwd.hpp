#pragma once
/// Names for declaring functions and members with, without the engine behind them; and the default pool:
///
///     class session {
///       std::unique_ptr<gmlake::pool<gmlake::simulated>> memory_;
///     };
///
/// A configuration checks its policies, so those of the default one are included; define what you use from there on
/// with gmlake.hpp or the header that is named after it.

#include <cstdint>

#include "gmlake/core/types.hpp"
#include "gmlake/pool/pool_config.hpp"

namespace gmlake {

// What calls give and take.
struct memory_account;
struct pool_options;
struct pool_snapshot;
struct pool_stats;
struct request;
enum class placement : std::uint8_t;

// Backends.
class cuda_vmm;
class memfd;
class simulated;
template <PhysicalBackend B>
class faulty;

// Streams.
class cuda_events;
class one_stream;
class simulated_streams;
class simulated_timeline;

// Policies.
class adaptive_chunks;
class best_fit;
class counters;
class event_log;
class fixed_chunks;
class gmlake_limits;
class granule_chunks;
class largest_first;
class lifetime_log;
class lru;
class no_evict;
class tlsf;
struct grow_before_waiting;
struct no_observer;
struct no_stitch;
struct null_mutex;
struct wait_before_growing;
template <Observer First, Observer Second>
class both;
template <SplitPolicy Base>
class whole_granules;

// Pools.
template <PoolConfig Config>
class basic_pool;
template <PhysicalBackend Backend>
class expandable_pool;
template <PhysicalBackend Backend>
class pytorch_pool;
template <PhysicalBackend Backend>
class smartpool;
template <PhysicalBackend Backend>
class stweaver;

namespace plan {

// Static problems, and what packs them.
struct buffer;
struct packed;
struct problem;
struct solution;
class best_fit_decreasing;
class exact_search;
class grouped;
class large_first;
class lifetime_sweep;
class lowest_offset;
class portfolio;
class priority_search;

// How a program's steps become plans.
struct found_step;
struct plan;
struct step_request;
class lifetimes;
class period_finder;
class step_log;

}  // namespace plan

/// The default pool: the `lake` preset.
template <PhysicalBackend Backend, StreamPolicy Streams = one_stream>
using pool = basic_pool<pool_config<Backend, Streams>>;

}  // namespace gmlake
