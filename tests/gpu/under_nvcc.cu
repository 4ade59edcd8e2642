/// The library compiles in a .cu file, beside a kernel, and serves from there. Only what needs no GPU is run: whether
/// there is a driver or not, asking for one gives an answer.

#include <cuda.h>
#include <every_cuda_header.hpp>
#include <every_header.hpp>

__global__ void fill(std::byte* p, gmlake::bytes n) {
  gmlake::bytes const i = blockIdx.x * gmlake::bytes{blockDim.x} + threadIdx.x;
  if (i < n) p[i] = std::byte{1};
}

template <gmlake::Pool P>
bool serves(P&& pool) {
  using namespace gmlake::literals;
  auto const block = pool.allocate(2_MiB, gmlake::stream{});
  return block.has_value() && pool.deallocate(*block).has_value();
}

int main() {
  auto const device = gmlake::cuda_vmm::open();
  bool const answered = device.has_value() || device.error().code != gmlake::errc{};
  return answered && serves(gmlake::lake_pool<gmlake::simulated>(gmlake::simulated{})) ? 0 : 1;
}
