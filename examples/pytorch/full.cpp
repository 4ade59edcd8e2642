/// Puts gmlake in the place of PyTorch's own allocator.

#include "export.hpp"
#include "gmlake/adapter/torch_allocator.hpp"
#include "gmlake/adapter/torch_paging.hpp"

namespace {

void see(c10::OperatorHandle const& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  gmlake::torch_operators::run(op, keys, stack);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, all) {
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&see>());
  // For good: other threads' operators may be on their way through when the process ends.
  static auto const& kept = *new auto(gmlake::torch_operators::pass_by());
  static_cast<void>(kept);
}

}  // namespace

extern "C" {

/// Which PyTorch it was compiled against. No other may use it: the interface is C++.
GMLAKE_EXPORT char const* gmlake_torch_version() { return TORCH_VERSION; }

GMLAKE_EXPORT char const* gmlake_install() {
  return gmlake::torch_c::attempt([] { gmlake::torch_allocator::install(); });
}

/// Whether this thread's operators are announced to the pagers.
GMLAKE_EXPORT char const* gmlake_page_operators(int announced) {
  return gmlake::torch_c::attempt([&] {
    gmlake::torch_paging& paging = gmlake::torch_paging::get();
    if (announced != 0) gmlake::torch_operators::watcher().store(&paging);
    gmlake::torch_operators::watch(announced != 0);
    if (announced == 0) paging.settle();
  });
}

/// Operators on tensors that wrap others are told of by the mode of Python's dispatch that this thread is in.
GMLAKE_EXPORT char const* gmlake_page_wrapped() {
  return gmlake::torch_c::attempt([] { gmlake::torch_operators::watch_wrapped(); });
}

}  // extern "C"
