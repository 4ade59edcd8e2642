#pragma once
/// The backends that a replay may run on, each opened afresh for every pool.

#include "gmlake/backend/memfd.hpp"
#include "gmlake/backend/simulated.hpp"
#include "run.hpp"
#ifdef GMLAKE_REPLAY_CUDA
#include "gmlake/backend/cuda_vmm.hpp"
#endif

namespace gmlake::tools {

#ifdef GMLAKE_REPLAY_CUDA
inline constexpr bool built_with_cuda = true;
#else
inline constexpr bool built_with_cuda = false;
#endif

struct open_simulated {
  result<simulated> operator()() const noexcept { return simulated(); }
};
struct open_memfd {
  result<memfd> operator()() const noexcept { return memfd::open(); }
};
#ifdef GMLAKE_REPLAY_CUDA
struct open_cuda {
  result<cuda_vmm> operator()() const noexcept { return cuda_vmm::open(); }
};
#endif

/// Calls `use(open)` with what opens the backend. Precondition: the tool is built with it.
template <class Use>
decltype(auto) with_backend(backend_kind kind, Use&& use) {
  if (kind == backend_kind::host) return use(open_memfd{});
#ifdef GMLAKE_REPLAY_CUDA
  if (kind == backend_kind::cuda) return use(open_cuda{});
#endif
  return use(open_simulated{});
}

}  // namespace gmlake::tools
