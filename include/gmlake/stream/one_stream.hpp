#pragma once
/// All work runs in host order, as on one stream: nothing is ever pending, and no fence costs anything.

#include "gmlake/stream/stream_policy.hpp"

namespace gmlake {

class one_stream {
 public:
  struct fence {};

  [[nodiscard]] bool concurrent() const noexcept { return false; }
  [[nodiscard]] result<fence> record(stream) noexcept { return fence{}; }
  [[nodiscard]] result<bool> reached(fence&) noexcept { return true; }
  [[nodiscard]] result<void> wait(stream, fence&) noexcept { return {}; }
  [[nodiscard]] result<void> synchronize(fence&) noexcept { return {}; }
  [[nodiscard]] result<void> synchronize_device() noexcept { return {}; }
  void release(fence&) noexcept {}
};
static_assert(StreamPolicy<one_stream>);

}  // namespace gmlake
