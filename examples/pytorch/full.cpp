/// Puts gmlake in the place of PyTorch's own allocator.

#include "export.hpp"
#include "gmlake/adapter/torch_allocator.hpp"

extern "C" {

/// Which PyTorch it was compiled against. No other may use it: the interface is C++.
GMLAKE_EXPORT char const* gmlake_torch_version() { return TORCH_VERSION; }

GMLAKE_EXPORT char const* gmlake_install() {
  return gmlake::torch_c::attempt([] { gmlake::torch_allocator::install(); });
}

}  // extern "C"
