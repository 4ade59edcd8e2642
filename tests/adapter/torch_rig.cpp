#include "tests/adapter/torch_rig.hpp"

namespace gmlake::test {

std::unique_ptr<torch_pool> make_rigged_pool(simulated_gpu& gpu, torch_registry& registry,
                                             torch_settings const& settings, torch_making with) {
  // The simulated device gives none out twice.
  with.options.home_addresses = std::min(with.options.home_addresses, bytes{4_GiB});
  return make_torch_pool(settings, claimed<lent_memory>(lent_memory(gpu), registry.owners(), with.number),
                         torch_streams<lent_streams>(lent_streams(gpu), with.pauses, gpu.foreign), with);
}

namespace {

/// Copies of memory that has no contents.
struct idle_copier {
  [[nodiscard]] stream stream_out() const noexcept { return stream{901}; }
  [[nodiscard]] stream stream_in() const noexcept { return stream{902}; }
  [[nodiscard]] result<void> copy_out(address, address, bytes) noexcept { return {}; }
  [[nodiscard]] result<void> copy_in(address, address, bytes) noexcept { return {}; }
};
static_assert(swap::Copier<idle_copier>);

}  // namespace

std::unique_ptr<torch_swapper> make_rigged_swapper(simulated_gpu& gpu, torch_movable main) {
  using host = lake_pool<simulated>;
  using copying = torch_copying<lent_streams, idle_copier>;
  auto pinned = std::make_unique<host>(simulated({.capacity = 4_GiB}));
  return std::make_unique<torch_swapping<host, lent_streams, idle_copier>>(
      main, std::move(pinned), copying{lent_streams(gpu), {}}, copying{lent_streams(gpu), {}}, swap::swap_file{}, false,
      true);
}

}  // namespace gmlake::test
