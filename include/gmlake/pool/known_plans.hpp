#pragma once
/// The plans that are known now, and the memory that their places are in: claimed from the lake, held again when a plan
/// is followed, exchanged for more. One arena serves them all. It decides on none of them: `planner` does.

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/plan/recent_requests.hpp"
#include "gmlake/pool/courses.hpp"
#include "gmlake/pool/returner.hpp"

namespace gmlake {

template <PoolConfig Config>
class known_plans : public courses<Config> {
 public:
  using parts = pool_parts<Config>;
  using track = plan::track;

  known_plans(parts& p, stitcher<Config>& s, grower<Config>& g, returner<Config>& r) noexcept
      : courses<Config>(p, s, g), return_(&r) {}

 protected:
  using courses<Config>::p_;
  using courses<Config>::now_;
  using courses<Config>::fresh_course;

  struct known {
    std::unique_ptr<track> way;
    bool placed = false;          ///< its addresses are those of the course now
    int left_early = 0;           ///< times in a row
    track const* next = nullptr;  ///< what was followed after it the last time
    /// It was made while a step was under way, which has its memory in use: the requests logged when that is over.
    std::uint64_t not_before = 0;
  };
  static constexpr std::size_t most_tracks = 16;
  /// A plan that was given up too early so often is not followed until it has come often again.
  static constexpr int most_left_early = 3;
  /// See `give_back_spent`.
  static constexpr std::size_t most_looks = 256;
  /// So often on end a plan was made and its memory found in other use.
  static constexpr int most_moved = 3;

  /// n bytes of memory, and the plans' places in it; it `grows` if need be. Plans' offsets fit any space, but one in
  /// pieces should be planned for: unless that has come to nothing again and again. On failure nothing is held.
  [[nodiscard]] bool claim(stream_index user, bytes n, bool grows) noexcept {
    if (n == 0 || !fresh_course()) return false;
    result<bool> const there = now_->memory().claim(user, n, grows);
    if (!there || !*there) return false;
    bool const fits = grows || now_->memory().segments().front().size >= n || moved_ >= most_moved;
    if (fits && place_all(user)) return true;
    now_->memory().let_go(user, p_->space.time().stamp(user));
    return false;
  }

  /// The arena that the plans' places are in, or where that is in other use, another one, or nothing.
  [[nodiscard]] bool hold_again_for_all(stream_index user) noexcept {
    using holding = typename arena<Config>::holding;
    result<holding> const held = now_->memory().hold(user);
    if (!held) return false;
    if (*held == holding::all || (*held == holding::part && place_all(user))) return true;
    if (*held == holding::part) now_->memory().let_go(user, p_->space.time().stamp(user));
    // Where there are several plans, another one's step may find the memory free.
    else if (tracks_.size() > 1 && ++moved_ % most_moved != 0) return false;
    else if (claim(user, highest(), false)) return true;
    ++moved_;
    forget_tracks(user);
    now_->memory().forget();
    return false;
  }

  [[nodiscard]] bytes highest() const noexcept {
    bytes most = 0;
    // What comes once has its memory claimed as it comes.
    for (known const& k : tracks_) most = std::max(most, k.way->source().repeats ? height_of(k.way->source()) : 0);
    return most;
  }

  /// What a plan's space needs. No plan that is any good is higher than its requests one on another.
  [[nodiscard]] static bytes height_of(plan::plan const& p) noexcept {
    bytes high = 0;
    bytes sum = 0;
    for (plan::step_request const& r : p.requests) {
      if (r.offset == plan::step_request::nowhere) continue;
      high = std::max(high, r.offset + r.size);
      sum += r.size;
    }
    return std::min(high, sum);
  }

  /// What stays after it, one on another.
  [[nodiscard]] static bytes staying(plan::plan const& p) noexcept {
    bytes sum = 0;
    for (plan::step_request const& r : p.requests) sum += r.death == plan::step_request::stays ? r.size : 0;
    return sum;
  }

  /// The same for that plan and, of one that comes once, the one that comes after it.
  [[nodiscard]] bytes height_with_next(std::size_t which) const noexcept {
    plan::plan const& p = tracks_[which].way->source();
    bool const more = !p.repeats && which + 1 < tracks_.size();
    return std::max(height_of(p), more ? height_of(tracks_[which + 1].way->source()) : 0);
  }

  /// What comes before the steps is known in full: gives back what of its memory it will not need again, before the
  /// pool grows by n bytes. What the first step needs is kept, unless the pool has got as much already as that and all
  /// that stay take. A look is O(n log n) in the requests; there is none while no more is idle than at the last that
  /// came to nothing, but for `most_looks`. Whether there was any. Precondition: a plan that comes once is followed.
  [[nodiscard]] bool give_back_spent(stream_index user, bytes n) noexcept {
    track const* const now = now_->served().on();
    if (!now_->memory().held()) return false;
    std::size_t const next = index_of(now) + 1;
    if (now != spent_.on) {
      bytes const after = next < tracks_.size() ? height_of(tracks_[next].way->source()) : 0;
      spent_ = {.on = now, .kept = after, .needed = after + staying(now->source())};
    }
    if (p_->space.home().reserved() + n > spent_.needed && spent_.kept != 0) {
      spent_.kept = spent_.idle = 0;
      spent_.look_again = 0;
    }
    std::uint32_t const at = now_->served().cursor();
    if (at < spent_.look_again && now_->idle() <= spent_.idle) return false;
    bool const free = spent_.kept != 0 || next == tracks_.size() || unplace(tracks_[next]);
    bool const gave = free && now_->give_back_spent(user, spent_.kept);
    spent_.idle = now_->idle();
    spent_.look_again = at + (gave ? 0 : static_cast<std::uint32_t>(now->steps().size() / most_looks));
    return gave;
  }

  /// It has no places any more: memory is claimed for it when it is followed. False for want of host memory.
  /// Precondition: it is not followed.
  [[nodiscard]] static bool unplace(known& k) noexcept {
    if (!k.placed) return true;
    try {
      k.way = std::make_unique<track>(k.way->source(), std::span<plan::segment const>{});
    } catch (std::bad_alloc const&) {
      return false;
    }
    k.placed = false;
    return true;
  }

  /// Precondition: nothing lives in the arena.
  [[nodiscard]] bool place_all(stream_index user) noexcept {
    try {
      // One from elsewhere that needs more gets its memory when it is followed.
      auto const fits = [this](known const& k) {
        return !adopted_ || height_of(k.way->source()) <= now_->memory().size();
      };
      std::vector<std::unique_ptr<track>> placed;
      for (known const& k : tracks_) {
        placed.push_back(std::make_unique<track>(
            k.way->source(), fits(k) ? now_->memory().segments() : std::span<plan::segment const>{}));
      }
      (void)now_->served().follow(nullptr, 0, user);  // nothing lives in a fresh course
      for (std::size_t i = 0; i < tracks_.size(); ++i) {
        tracks_[i].placed = fits(tracks_[i]);
        tracks_[i].way = std::move(placed[i]);
      }
    } catch (std::bad_alloc const&) {
      return false;
    }
    return true;
  }

  /// Gives the arena back while it is followed, for one that is claimed when the first request comes that needs it.
  /// Whether it was idle.
  [[nodiscard]] bool let_go(stream_index user) noexcept {
    std::optional<tick> const stamp = now_->come_after_all(user);
    if (!stamp || now_->served().live() > 0) return false;
    now_->memory().let_go(user, *stamp);
    now_->memory().forget();
    for (known& k : tracks_) k.placed = false;
    return true;
  }

  /// Makes sure that the arena, if it can be held, has room for n bytes, or all the room there was. The plans before
  /// move to another one, unless it has no piece for them.
  [[nodiscard]] bool survey(stream_index user, bytes n) noexcept {
    // A little less than wanted is all the room there was; much less was a bad moment.
    if (now_ != nullptr && now_->memory().wanted() >= n && now_->memory().size() >= n - n / 16) return true;
    if (!gathered(user) || !fresh_course()) return false;
    result<bool> const there = now_->memory().claim(user, n, false);
    bool const fits = there && *there && now_->memory().segments().front().size >= highest();
    if (!fits || !place_all(user)) forget_tracks(user);
    if (!there || !*there) return false;
    now_->memory().let_go(user, p_->space.time().stamp(user));
    return true;
  }

  /// Precondition: nothing lives on any.
  void forget_tracks(stream_index user) noexcept {
    if (now_ != nullptr) (void)now_->served().follow(nullptr, 0, user);
    tracks_.clear();
    adopted_ = false;
  }

  [[nodiscard]] bool gathered(stream_index user) noexcept { return return_->gather(user).has_value(); }

  /// False for want of host memory.
  bool drop(std::size_t i, stream_index user) noexcept {
    if (now_ != nullptr && now_->served().on() == tracks_[i].way.get() && !now_->served().follow(nullptr, 0, user)) {
      return false;
    }
    tracks_.erase(tracks_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }

  /// Precondition: `t` is known.
  [[nodiscard]] std::size_t index_of(track const* t) const noexcept {
    std::size_t i = 0;
    while (tracks_[i].way.get() != t) ++i;
    return i;
  }

  /// Where `t` is; all the tracks' number if it is known no more.
  [[nodiscard]] std::size_t find(track const* t) const noexcept {
    std::size_t i = 0;
    while (i < tracks_.size() && tracks_[i].way.get() != t) ++i;
    return i;
  }

  /// The youngest track that can be followed and begins with the last request; all their number if there is none.
  [[nodiscard]] std::size_t beginning(plan::recent_requests const& last) const noexcept {
    for (std::size_t i = tracks_.size(); i-- > 0;) {
      known const& k = tracks_[i];
      if (k.placed && k.left_early < most_left_early && k.way->source().repeats && last.is(*k.way, 0)) return i;
    }
    return tracks_.size();
  }

  std::vector<known> tracks_;
  bool adopted_ = false;  ///< the plans come from elsewhere, and memory is claimed for each as it is followed
  int moved_ = 0;         ///< see `most_moved`

 private:
  returner<Config>* return_;

  /// The last look at what a plan that comes once has no more use for.
  struct look {
    track const* on = nullptr;
    bytes kept = 0;                ///< for the plan after it
    bytes needed = 0;              ///< by that one, with what stays
    bytes idle = 0;                ///< when it was over
    std::uint32_t look_again = 0;  ///< at that request
  };
  look spent_;
};

}  // namespace gmlake
