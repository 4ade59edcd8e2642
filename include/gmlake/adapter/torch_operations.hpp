#pragma once
/// What a program tells of its device work while it is recorded: which blocks an operation reads and writes, and that
/// it ends. Each thread has an operation of its own, whose accesses go to the recordings when it ends, all at once; so
/// operations of several threads stand one behind the other in a trace.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gmlake/adapter/torch_recording.hpp"

namespace gmlake {

class torch_operations {
 public:
  static constexpr std::int64_t none = -1;

  /// This thread's operation reads or writes the block that begins at `at`, or both. `on` records the block's device.
  /// Precondition: `on` lives until the thread's operation ends. Throws `std::bad_alloc`.
  void access(torch_recording& on, address at, bool reads, bool writes) {
    if (reads || writes) running().push_back({&on, at, reads, writes});
  }

  /// Ends this thread's operation, on every device whose blocks it accesses. Returns its number, by which a recording
  /// is told its time; `none`, and nothing is recorded, where it accesses nothing. Throws `std::bad_alloc`.
  [[nodiscard]] std::int64_t end() {
    std::vector<torch_access>& all = running();
    if (all.empty()) return none;
    std::int64_t const number = next_.fetch_add(1, std::memory_order_relaxed);
    try {
      for (std::size_t i = 0; i < all.size(); ++i) {
        auto const first = std::ranges::find(all, all[i].on, &torch_access::on);
        if (first == all.begin() + static_cast<std::ptrdiff_t>(i)) all[i].on->operation(number, all);
      }
    } catch (...) {
      all.clear();
      throw;
    }
    all.clear();
    return number;
  }

 private:
  [[nodiscard]] static std::vector<torch_access>& running() noexcept {
    static thread_local std::vector<torch_access> accesses;
    return accesses;
  }

  std::atomic<std::int64_t> next_{0};
};

}  // namespace gmlake
