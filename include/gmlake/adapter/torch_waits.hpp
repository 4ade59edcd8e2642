#pragma once
/// Tells whoever times an operator what of that time is no work of its own: a request within it may make its stream
/// wait for others' work on memory that it is given.

#include "gmlake/core/types.hpp"

namespace gmlake {

/// Called by the thread that makes a stream wait, which may hold pools' locks: it must not call them.
class torch_wait_watcher {
 public:
  virtual ~torch_wait_watcher() = default;
  /// What is queued on `on` next will wait.
  virtual void waits(stream on) noexcept = 0;
  /// It is queued.
  virtual void waited(stream on) noexcept = 0;

  /// This thread's; null: nobody.
  [[nodiscard]] static torch_wait_watcher*& of_thread() noexcept {
    static thread_local torch_wait_watcher* one = nullptr;
    return one;
  }
};

}  // namespace gmlake
