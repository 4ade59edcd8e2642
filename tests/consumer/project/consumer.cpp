/// Uses the library through whichever of CMake's ways brought it.

#include <gmlake/pool/presets/lake.hpp>

int main() {
  gmlake::lake_pool<gmlake::simulated> pool(gmlake::simulated{});
  auto const block = pool.allocate(1000, gmlake::stream{});
  return block.has_value() && pool.deallocate(*block).has_value() ? 0 : 1;
}
