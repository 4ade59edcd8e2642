#include "tests/adapter/torch_rig.hpp"

namespace gmlake::test {

std::unique_ptr<torch_pool> make_rigged_pool(simulated_gpu& gpu, torch_registry& registry,
                                             torch_settings const& settings, torch_registry::number n,
                                             pool_options const& options, adaptive_options const& chunks,
                                             torch_runtime::pauses pauses,
                                             std::atomic<torch_listener*> const* listener) {
  pool_options fewer = options;
  fewer.home_addresses = std::min(options.home_addresses, 4_GiB);  // the simulated device gives none out twice
  return make_torch_pool(settings, claimed<lent_memory>(lent_memory(gpu), registry.owners(), n),
                         torch_streams<lent_streams>(lent_streams(gpu), std::move(pauses), gpu.foreign), fewer, chunks,
                         listener);
}

}  // namespace gmlake::test
