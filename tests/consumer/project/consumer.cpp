/// Uses the library through whichever of CMake's ways built it.

#include <gmlake/core/types.hpp>

int main() {
  using namespace gmlake::literals;
  return 2_MiB == gmlake::bytes{1} << 21 ? 0 : 1;
}
