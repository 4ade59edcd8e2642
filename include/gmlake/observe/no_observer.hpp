#pragma once
/// Sees nothing. Others derive from it and replace what they care for.

#include "gmlake/observe/observer.hpp"

namespace gmlake {

struct no_observer {
  void allocated(block_event const&) noexcept {}
  void deallocated(block_event const&) noexcept {}
  void created(address, bytes) noexcept {}
  void released(address, bytes) noexcept {}
  void stitched(stitch_event const&) noexcept {}
  void reused(stitch_event const&) noexcept {}
  void evicted(stitch_event const&) noexcept {}
  void failed(memory_account const&) noexcept {}
};
static_assert(Observer<no_observer>);

}  // namespace gmlake
