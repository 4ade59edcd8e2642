#pragma once
/// `lake`: the default. Adaptive chunks, best fit, largest extents first, a wide LRU cache of stitches.

#include "gmlake/backend/simulated.hpp"
#include "gmlake/pool/basic_pool.hpp"

namespace gmlake {

template <PhysicalBackend Backend, StreamPolicy Streams = one_stream>
using lake_config = pool_config<Backend, Streams>;

template <PhysicalBackend Backend, StreamPolicy Streams = one_stream>
using lake_pool = basic_pool<lake_config<Backend, Streams>>;
static_assert(Pool<lake_pool<simulated>>);

}  // namespace gmlake
