#pragma once
/// An arena and who follows a plan in it, from the day it is claimed until its last block is freed. While it is held a
/// track may be followed; once it is left, what is idle goes back to the lake at once and the rest as it is freed, so
/// that a plan that was given up keeps no memory from the program.

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/pool/follower.hpp"

namespace gmlake {

template <PoolConfig Config>
class course {
 public:
  using freed = typename follower<Config>::freed;

  course(pool_parts<Config>& p, stitcher<Config>& s, grower<Config>& g) noexcept
      : p_(&p), memory_(p, s, g), served_(p, memory_) {}

  [[nodiscard]] arena<Config>& memory() noexcept { return memory_; }
  [[nodiscard]] arena<Config> const& memory() const noexcept { return memory_; }
  [[nodiscard]] follower<Config>& served() noexcept { return served_; }
  [[nodiscard]] follower<Config> const& served() const noexcept { return served_; }
  [[nodiscard]] bool leaving() const noexcept { return leaving_; }
  /// Nothing of it is live or held.
  [[nodiscard]] bool over() const noexcept { return memory_.taken() == 0 && served_.live() == 0; }

  /// Bytes that are taken and that no live block is in. O(n) in the blocks.
  [[nodiscard]] bytes idle() const noexcept {
    bytes live = 0;
    served_.each_live([&live](address, bytes n, bytes, stream_index) { live += n; });
    return memory_.taken() - live;
  }

  /// From now on memory only goes back. Blocks stay where they are.
  void leave(stream_index user) noexcept {
    leaving_ = idle_ = true;
    settle(user);
  }
  /// It may be held again. Precondition: it is over.
  void hold_again() noexcept { leaving_ = false; }

  /// Takes back the block at `at`, if it is one of the arena's.
  [[nodiscard]] bool take_back(address at, stream const* after, stream_index after_lane, freed& gone) noexcept {
    if (served_.live() == 0 || !served_.take_back(at, after, after_lane, gone)) return false;
    if (leaving_) [[unlikely]] {
      if (gone.at_once && memory_.give_back(gone.at, gone.size, gone.on, gone.stamp)) served_.forget_freed(gone.at);
      else idle_ = true;
      if (served_.live() == 0) finish(gone.on);
      check_over();
    }
    return true;
  }

  /// On leaving: `user` waits for what streams still do in the arena, so that all that is idle can go back. A stream
  /// that can't be made to wait now leaves it for another time. O(n log n) in the blocks; constant where none of it is
  /// idle.
  void settle(stream_index user) noexcept {
    if (!leaving_ || !idle_ || memory_.taken() == 0) return;
    std::optional<tick> const stamp = come_after_all(user);
    if (!stamp) return;
    idle_ = !give_back_idle(user, *stamp);
    if (served_.live() == 0) memory_.let_go(user, *stamp);
    check_over();
  }

  /// Of memory that stays held: gives back what lies from offset `keep` on, and neither lives nor is to come on the
  /// track. Whether there was any. O(n log n) in the track.
  [[nodiscard]] bool give_back_spent(stream_index user, bytes keep) noexcept {
    std::optional<tick> const stamp = come_after_all(user);
    if (!stamp) return false;
    bool gave = false;
    try {
      std::vector<address_run> const needed = served_.used_or_to_come();
      for (plan::segment const& s : memory_.segments()) {
        address const low = s.at + std::min(keep > s.offset ? keep - s.offset : 0, s.size);
        each_gap(needed, s.at, s.at + s.size, [&](address begin, address end) {
          begin = std::max(begin, low);
          if (begin < end && memory_.part_early(begin, end - begin, user, *stamp)) gave = true;
        });
      }
    } catch (std::bad_alloc const&) {
    }
    if (gave) served_.look_closely();
    return gave;
  }

  /// Makes `user` come after all that was done in the arena, but by blocks that live, and nothing that was freed is in
  /// use any more. The stamp that its memory can go back under; none: `user` can't be made to wait now.
  [[nodiscard]] std::optional<tick> come_after_all(stream_index user) noexcept {
    auto& time = p_->space.time();
    bool const quiet = time.quiet();
    if (!quiet && !served_.wait_for_all(user)) return {};
    served_.tend(user);
    return quiet ? tick{0} : time.stamp(user);
  }

  /// Walks every invariant: null, or the one that is broken, or that there is no memory to look.
  [[nodiscard]] char const* find_fault() const noexcept {
    if (char const* fault = memory_.find_fault()) return fault;
    if (!leaving_ && served_.on() != nullptr && memory_.taken() != 0 && !memory_.held()) {
      return "an arena is held while it is followed";
    }
    if (leaving_ && !idle_ && idle() != 0) return "an arena that is left keeps only what is live";
    try {
      return served_.find_fault();
    } catch (std::bad_alloc const&) {
      return "no host memory to look at an arena";
    }
  }

 private:
  /// False for want of host memory: then some of it stays.
  [[nodiscard]] bool give_back_idle(stream_index user, tick stamp) noexcept {
    bool all = true;
    try {
      std::vector<address_run> const used = served_.used();
      for (plan::segment const& s : memory_.segments()) {
        each_gap(used, s.at, s.at + s.size, [&](address begin, address end) {
          if (!memory_.give_back(begin, end - begin, user, stamp)) all = false;
        });
      }
    } catch (std::bad_alloc const&) {
      return false;
    }
    return all;
  }

  /// Once it is over, the lake has what was freed, and its stamps.
  void check_over() noexcept {
    if (over()) served_.forget_strays();
  }

  /// With its last block the rest goes back: what could not be given back before, which others than `user` used too.
  void finish(stream_index user) noexcept {
    if (memory_.taken() == 0) return;
    if (std::optional<tick> const stamp = come_after_all(user)) memory_.let_go(user, *stamp);
  }

  pool_parts<Config>* p_;
  arena<Config> memory_;
  follower<Config> served_;
  bool leaving_ = false;
  bool idle_ = false;  ///< leaving: some of what is taken may be in no use
};

}  // namespace gmlake
