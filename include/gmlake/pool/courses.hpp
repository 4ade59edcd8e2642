#pragma once
/// The arenas that plans are followed in: the one now, and those that were left while some of their blocks live on. Who
/// owns which block, and what they look like from outside. It decides on no plan.

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/observe/snapshot.hpp"
#include "gmlake/pool/course.hpp"

namespace gmlake {

template <PoolConfig Config>
class courses {
 public:
  using parts = pool_parts<Config>;

  courses(parts& p, stitcher<Config>& s, grower<Config>& g) noexcept : p_(&p), stitch_(&s), grow_(&g) {}

  /// Another stream uses the block at `at`. Empty: it is none of theirs.
  [[nodiscard]] std::optional<result<void>> record(address at, stream_index on) noexcept {
    std::optional<result<void>> done;
    each_course([&](course<Config>& c) {
      if (!done && c.served().live() > 0) done = c.served().record(at, on);
    });
    return done;
  }

  /// On leaving: `user` waits for what else keeps memory of an arena, which goes back. Whether there was any.
  bool settle_rest(stream_index user) noexcept {
    bytes given = 0;
    each_course([&](course<Config>& c) {
      bytes const before = c.memory().taken();
      c.settle(user);
      given += before - c.memory().taken();
    });
    std::erase_if(left_behind_, [](auto const& c) { return c->over(); });
    return given > 0;
  }

  /// Whether a block may have been at `at` once: it is a plan's, and nothing lives there. Linear in plans' blocks.
  [[nodiscard]] bool was_placed(address at) const noexcept {
    bool placed = false;
    each_course([&](course<Config> const& c) {
      if (!is_aligned(at, block_alignment) || !c.memory().holds(at, block_alignment)) return;
      placed = true;
      c.served().each_live([&](address begin, bytes n, bytes, stream_index) {
        if (begin <= at && at < begin + n) placed = false;
      });
    });
    return placed;
  }

  /// Walks every invariant: null, or the one that is broken, or that there is no memory to look.
  [[nodiscard]] char const* find_fault() const noexcept {
    char const* fault = nullptr;
    each_course([&](course<Config> const& c) {
      if (fault == nullptr) fault = c.find_fault();
    });
    return fault;
  }
  /// Adds what plans hold and serve.
  void add_to(pool_snapshot& shot) const {
    each_course([&](course<Config> const& c) {
      if (c.memory().taken() == 0) return;
      for (plan::segment const& s : c.memory().segments()) shot.planned.push_back({s.at, s.size, c.memory().held()});
      c.served().each_live([&](address at, bytes size, bytes requested, stream_index on) {
        shot.planned_live.push_back({at, size, requested, p_->space.time().name(on)});
      });
    });
    std::ranges::sort(shot.planned, {}, &planned_run::begin);
    std::ranges::sort(shot.planned_live, {}, &planned_block::begin);
  }
  /// Calls `f(block const&, stream)` for every live block of an arena, made up for the purpose: what is beneath can be
  /// read off it as off a block of the lake's.
  template <class F>
  void each_live(F&& f) const {
    each_course([&](course<Config> const& c) {
      c.served().each_live([&](address at, bytes size, bytes requested, stream_index on) {
        f(c.memory().as_block(at, size, requested, on), p_->space.time().name(on));
      });
    });
  }
  /// The same for the one at `at`. Whether there is one.
  template <class F>
  bool look_at(address at, F&& f) const {
    bool found = false;
    each_course([&](course<Config> const& c) {
      found =
          found || (c.memory().covers(at) && c.served().look_at(at, [&](bytes size, bytes requested, stream_index on) {
            f(c.memory().as_block(at, size, requested, on), p_->space.time().name(on));
          }));
    });
    return found;
  }

 protected:
  using freed_block = typename course<Config>::freed;

  /// Takes back a block; false: it is none of theirs.
  [[nodiscard]] bool take_back(address at, stream const* after, stream_index after_lane, freed_block& gone) noexcept {
    if (now_ != nullptr && now_->take_back(at, after, after_lane, gone)) [[likely]]
      return true;
    for (auto c = left_behind_.begin(); c != left_behind_.end(); ++c) {
      if (!(*c)->take_back(at, after, after_lane, gone)) continue;
      if ((*c)->over()) left_behind_.erase(c);
      return true;
    }
    return false;
  }

  /// The course now is a new one, or one that is over. False for want of host memory.
  [[nodiscard]] bool fresh_course() noexcept {
    try {
      if (now_ == nullptr) now_ = std::make_unique<course<Config>>(*p_, *stitch_, *grow_);
    } catch (std::bad_alloc const&) {
      return false;
    }
    now_->hold_again();
    return true;
  }
  /// A course that was left and goes on for the sake of some blocks makes room for another. Whether there is room;
  /// `now_` is null then, or can be held again.
  [[nodiscard]] bool leave_behind(stream_index user) noexcept {
    if (now_ == nullptr || !now_->leaving()) return true;
    now_->settle(user);
    if (now_->over()) return now_->hold_again(), true;
    (void)settle_rest(user);
    if (left_behind_.size() >= most_left_behind || !now_->served().follow(nullptr, 0, user)) return false;
    try {
      left_behind_.push_back(nullptr);
    } catch (std::bad_alloc const&) {
      return false;
    }
    left_behind_.back() = std::move(now_);
    return true;
  }

  parts* p_;
  std::unique_ptr<course<Config>> now_;  ///< made when there is a plan to follow

 private:
  /// Courses that were left and still have live blocks: while there are so many, no further plan is taken up.
  static constexpr std::size_t most_left_behind = 8;

  template <class F>
  void each_course(F&& f) {
    if (now_ != nullptr) f(*now_);
    for (auto const& c : left_behind_) f(*c);
  }
  template <class F>
  void each_course(F&& f) const {
    if (now_ != nullptr) f(std::as_const(*now_));
    for (auto const& c : left_behind_) f(std::as_const(*c));
  }

  stitcher<Config>* stitch_;
  grower<Config>* grow_;
  std::vector<std::unique_ptr<course<Config>>> left_behind_;  ///< some of their blocks live on
};

}  // namespace gmlake
