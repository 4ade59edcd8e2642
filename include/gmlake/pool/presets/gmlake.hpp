#pragma once
/// `gmlake`: the algorithm of the paper (Guo et al.: "GMLake", ASPLOS 2024, §3–4) from this library's policies. Exact
/// match and single split are best fit over ranges of 2 MiB chunks, one a growth; several blocks are stitched from the
/// largest down; where they do not suffice the deficit is created and stitched with them; StitchFree is the LRU cache.

#include "gmlake/backend/simulated.hpp"
#include "gmlake/grow/granule_chunks.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/split/whole_granules.hpp"
#include "gmlake/stitch/gmlake_limits.hpp"
#include "gmlake/stream/grow_before_waiting.hpp"

namespace gmlake {

template <PhysicalBackend Backend, StreamPolicy Streams = one_stream>
using gmlake_config =
    typename pool_config<Backend, Streams>::template with_wait<grow_before_waiting>::template with_split<
        whole_granules<best_fit>>::template with_growth<granule_chunks>::template with_stitch<gmlake_limits>;

template <PhysicalBackend Backend, StreamPolicy Streams = one_stream>
using gmlake_pool = basic_pool<gmlake_config<Backend, Streams>>;
static_assert(Pool<gmlake_pool<simulated>>);

}  // namespace gmlake
