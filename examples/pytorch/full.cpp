/// Puts gmlake in the place of PyTorch's own allocator.

#include "export.hpp"
#include "gmlake/adapter/torch_allocator.hpp"

extern "C" GMLAKE_EXPORT char const* gmlake_install() {
  return gmlake::torch_c::attempt([] { gmlake::torch_allocator::install(); });
}
