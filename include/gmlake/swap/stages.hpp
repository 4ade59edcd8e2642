#pragma once
/// Pieces of pinned memory used in turn on the way from a file to the device: one is filled while the last one's copy
/// runs. A piece is filled again only once its copy is over.

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "gmlake/stream/stream_policy.hpp"

namespace gmlake::swap {

template <StreamPolicy Streams>
class stages {
 public:
  static constexpr std::size_t count = 2;

  /// The piece whose turn it is; the host waits for its last copy. Errors: the policy's.
  [[nodiscard]] result<std::size_t> next(Streams& streams) noexcept {
    std::size_t const i = turn_;
    stage& s = all_[i];
    if (s.behind) {
      if (result<void> done = streams.synchronize(*s.behind); !done) return failure(done.error());
      release(s, streams);
    } else if (s.unsure) {
      if (result<void> done = streams.synchronize_device(); !done) return failure(done.error());
    }
    s.unsure = true;
    turn_ = (i + 1) % count;
    return i;
  }

  /// The piece's copy has been queued on `on`. Error: the policy's; then the piece is used again only when the device
  /// is known to be done with everything.
  [[nodiscard]] result<void> fence_off(std::size_t i, Streams& streams, stream on) noexcept {
    result<fence> f = streams.record(on);
    if (!f) return failure(f.error());
    all_[i].behind.emplace(std::move(*f));
    return {};
  }

  /// Precondition: all copies are over.
  void forget(Streams& streams) noexcept {
    for (stage& s : all_) release(s, streams);
  }

 private:
  using fence = typename Streams::fence;
  struct stage {
    std::optional<fence> behind;
    bool unsure = false;  ///< a copy of it may be under way that no fence tells of
  };

  static void release(stage& s, Streams& streams) noexcept {
    if (s.behind) streams.release(*s.behind);
    s.behind.reset();
    s.unsure = false;
  }

  std::array<stage, count> all_;
  std::size_t turn_ = 0;
};

}  // namespace gmlake::swap
