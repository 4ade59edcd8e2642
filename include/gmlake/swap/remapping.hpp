#pragma once
/// Who is told before a block's memory goes and after other memory has come under it: whoever has registered its
/// addresses with what looks at the memory beneath (NCCL, RDMA, IPC, a captured graph).

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake::swap {

enum class remapping : std::uint8_t {
  going,  ///< the memory is still there, and nothing queued uses it any more: time to deregister
  come,   ///< other memory is there, before any contents: time to register
};

/// Called with a block's address and size, on whichever thread moves it, under the pool's lock: it must not call the
/// pool, nor throw. An error keeps the block where it is.
using remap_callback = std::function<result<void>(address, bytes, remapping)>;

enum class watcher : std::uint64_t {};

class watchers {
 public:
  /// Error: `out_of_host_memory`.
  [[nodiscard]] result<watcher> add(remap_callback callback) noexcept {
    try {
      all_.push_back({watcher{++last_}, std::move(callback)});
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "watch");
    }
    return all_.back().id;
  }
  /// Whether there was such a one.
  [[nodiscard]] bool remove(watcher id) noexcept {
    return std::erase_if(all_, [id](entry const& e) { return e.id == id; }) > 0;
  }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  void clear() noexcept { all_.clear(); }

  /// All of them, in the order of their entry. Error: the first; those told before are told the opposite then, and
  /// their errors are not heard.
  [[nodiscard]] result<void> tell(address at, bytes n, remapping what) noexcept {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      result<void> heard = all_[i].callback(at, n, what);
      if (heard) continue;
      remapping const opposite = what == remapping::going ? remapping::come : remapping::going;
      while (i > 0) (void)all_[--i].callback(at, n, opposite).has_value();
      return heard;
    }
    return {};
  }

 private:
  struct entry {
    watcher id{};
    remap_callback callback;
  };

  std::vector<entry> all_;
  std::uint64_t last_ = 0;
};

}  // namespace gmlake::swap
