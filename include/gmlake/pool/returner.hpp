#pragma once
/// Gives freed blocks' memory back to the lake: at once, or once the uses that other streams recorded are over.

#include <utility>

#include "gmlake/core/slab.hpp"
#include "gmlake/pool/stitcher.hpp"

namespace gmlake {

template <PoolConfig Config>
class returner {
 public:
  using parts = pool_parts<Config>;

  returner(parts& p, stitcher<Config>& s) noexcept : p_(&p), stitch_(&s) {}

  /// Work on lane `on` uses the block too. Error: `out_of_host_memory`.
  [[nodiscard]] result<void> record(block& b, stream_index on) noexcept {
    if (on == b.on) return {};
    for (use const* u = b.recorded; u != nullptr; u = u->next) {
      if (u->on == on) return {};
    }
    if (!uses_.reserve(1)) return failure(errc::out_of_host_memory, "record_stream");
    use& u = uses_.acquire();
    u.on = on;
    u.next = b.recorded;
    b.recorded = &u;
    return {};
  }

  /// A block in no map any more, freed on lane `on`.
  void take_back(block& b, stream_index on) noexcept {
    tick const stamp = p_->space.time().stamp(on);
    if (b.recorded == nullptr) [[likely]] {
      if (b.view != nullptr) stitch_->end(b, on, stamp);
      else p_->space.give_back(b, on, stamp);
      return;
    }
    for (use* u = b.recorded; u != nullptr; u = u->next) u->stamp = p_->space.time().stamp(u->on);
    p_->space.park(b, on, stamp);
  }

  /// After fences have been reached: what waited for them is free.
  void learn_passed() noexcept {
    p_->space.unpark(finish_parked());
    p_->space.settle();
  }

  /// All free memory on the user's shelves, at the price of a wait on the device; whether there was any. A stream that
  /// is being captured can't wait, and does without.
  [[nodiscard]] result<bool> gather(stream_index user) noexcept {
    if (!p_->space.time().shared()) return false;
    result<bool> any = p_->space.gather(user, finish_parked());
    if (!any && any.error().code == errc::not_supported) return false;
    return any;
  }

 private:
  void finish(block& b, stream_index on, tick stamp) noexcept {
    for (use* u = std::exchange(b.recorded, nullptr); u != nullptr;) {
      use& gone = *u;
      u = u->next;
      uses_.release(gone);
    }
    if (b.view != nullptr) stitch_->end(b, on, stamp);
    else p_->space.give_back(b, on, stamp);
  }
  [[nodiscard]] auto finish_parked() noexcept {
    return [this](block& b, stream_index on, tick stamp) noexcept { finish(b, on, stamp); };
  }

  parts* p_;
  stitcher<Config>* stitch_;
  slab<use> uses_;
};

}  // namespace gmlake
