#include "tests/adapter/torch_rig.hpp"

namespace gmlake::test {

std::unique_ptr<torch_pool> make_rigged_pool(simulated_gpu& gpu, torch_registry& registry,
                                             torch_settings const& settings, torch_making with) {
  // The simulated device gives none out twice.
  with.options.home_addresses = std::min(with.options.home_addresses, bytes{4_GiB});
  return make_torch_pool(settings, claimed<lent_memory>(lent_memory(gpu), registry.owners(), with.number),
                         torch_streams<lent_streams>(lent_streams(gpu), with.pauses, gpu.foreign), with);
}

}  // namespace gmlake::test
