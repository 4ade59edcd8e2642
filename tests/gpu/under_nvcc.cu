/// The library compiles in a .cu file, beside a kernel; what it calculates needs no GPU.

#include <cuda.h>
#include <gmlake/core/types.hpp>

__global__ void fill(std::byte* p, gmlake::bytes n) {
  gmlake::bytes const i = blockIdx.x * gmlake::bytes{blockDim.x} + threadIdx.x;
  if (i < n) p[i] = std::byte{1};
}

int main() {
  using namespace gmlake::literals;
  return 2_MiB == gmlake::bytes{1} << 21 ? 0 : 1;
}
