#pragma once
/// Serves requests from a track while the program keeps to it, and knows what of the arena is in use, kept to or not.
///
/// A request that is the track's next gets its place if everything that should have left it has left; in a program that
/// keeps to its plan that is two comparisons, and so is a free. What stays beyond its time becomes a stray, and is
/// looked out for until it goes. The follower never moves along the track by itself: it is told where the program is.
///
/// Invariants: of live blocks and strays in the arena no two overlap, provided that no two requests of the track that
/// live at once do. Memory changes hands after the work of whoever had it: in the track's order by its earlier uses,
/// off it by the strays' stamps, and from before all that by `since_`, which every stream comes after.

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/pool/arena.hpp"
#include "gmlake/pool/gaps.hpp"
#include "gmlake/pool/strays.hpp"

namespace gmlake {

template <PoolConfig Config>
class follower {
 public:
  using parts = pool_parts<Config>;
  using track = plan::track;

  /// What came of a request.
  enum class verdict : std::uint8_t {
    placed,
    unplanned,  ///< it is the track's next, which has no place for it
    displaced,  ///< it is the track's next, whose place is in use
    astray,     ///< it is not the track's next
  };

  follower(parts& p, arena<Config>& a) noexcept : p_(&p), arena_(&a) {}

  [[nodiscard]] track const* on() const noexcept { return track_; }
  [[nodiscard]] std::uint32_t cursor() const noexcept { return cursor_; }
  /// Blocks that live in the arena.
  [[nodiscard]] std::size_t live() const noexcept { return live_; }

  /// Goes by `t` from request `from` on; null: by none, so that nothing is placed. What lives stays, as strays.
  /// Precondition: lane `user` comes after all that was done with the arena's memory, strays' apart. Error:
  /// `out_of_host_memory`; then the track is the one before.
  [[nodiscard]] result<void> follow(track const* t, std::uint32_t from, stream_index user) noexcept {
    std::vector<std::uint32_t> occupants;
    std::vector<bytes> requested;
    std::vector<std::uint64_t> numbers;
    std::vector<tick> left_at;
    try {
      occupants.resize(t != nullptr ? t->spots() : 0);
      requested.resize(occupants.size());
      numbers.resize(occupants.size());
      left_at.resize(t != nullptr ? t->ends().size() : 0);
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "plan");
    }
    for (std::uint32_t spot = 0; live_ > 0 && spot < occupants_.size(); ++spot) {
      if (occupants_[spot] != 0 && stray_out(spot) == nullptr) return failure(errc::out_of_host_memory, "plan");
    }
    occupants_ = std::move(occupants);
    requested_ = std::move(requested);
    numbers_ = std::move(numbers);
    left_at_ = std::move(left_at);
    track_ = t;
    steps_ = t != nullptr ? t->steps() : std::span<track::step const>{};
    ends_ = t != nullptr ? t->ends() : std::span<track::end const>{};
    cursor_ = from;
    end_ = 0;
    while (end_ < ends_.size() && from < steps_.size() && ends_[end_].when <= steps_[from].birth) ++end_;
    blocked_ = false;
    // What has gone back may be none of this track's.
    wary_ = arena_->parted() && std::ranges::any_of(steps_, [this](track::step const& s) {
              return s.at != address{} && !arena_->holds(s.at, s.size);
            });
    if (t != nullptr) come_after(user);
    return {};
  }

  /// The request on lane `user` for n bytes as placed. Sets `why` unless it is placed. Precondition: a track; its
  /// requests are not used up.
  [[nodiscard]] address serve(request const& r, stream_index user, bytes n, verdict& why) noexcept {
    track::step const& s = steps_[cursor_];
    if (s.size != n || s.stream + 1 != user) [[unlikely]] {
      why = verdict::astray;
      return {};
    }
    return place(r, user, why);
  }
  [[nodiscard]] bool at_end() const noexcept { return cursor_ == steps_.size(); }

  /// The program is about to make request `at` of the track.
  void move_to(std::uint32_t at) noexcept {
    if (at < cursor_) begin_again();
    cursor_ = at;
  }
  /// The step is over: what should have been freed by its end and was not is astray.
  void begin_again() noexcept {
    pass_ends(std::numeric_limits<plan::instant>::max());
    cursor_ = 0;
    end_ = 0;
    tend();
  }

  /// Takes back the block at `at`; what it occupied goes to `gone`. False: it is none of the arena's.
  struct freed {
    address at{};
    bytes size = 0;
    stream_index on = 0;
    tick stamp = 0;
    std::uint64_t number = 0;  ///< as `number` said
    bool at_once = true;       ///< false: other uses keep it
  };
  [[nodiscard]] bool take_back(address at, stream const* after, stream_index after_lane, freed& gone) noexcept {
    if (end_ < ends_.size()) [[likely]] {
      track::step const& s = steps_[ends_[end_].request];
      if (s.at == at && occupants_[s.spot] == ends_[end_].request + 1) [[likely]] {
        leave(s.spot, s, after, after_lane, gone);
        if (p_->space.time().shared()) left_at_[end_] = p_->space.time().latest(lane_of(s.stream));
        ++end_;
        return true;
      }
    }
    if (!arena_->covers(at)) return false;
    if (std::uint32_t const spot = occupied(at); spot != track::none) {
      leave(spot, steps_[occupants_[spot] - 1], after, after_lane, gone);
      return true;
    }
    stray* const s = strays_.find(at);
    if (s == nullptr || !s->live) return false;
    leave(*s, after, after_lane, gone);
    return true;
  }

  /// Another stream uses the block at `at`. Empty: it is none of the arena's.
  [[nodiscard]] std::optional<result<void>> record(address at, stream_index on) noexcept {
    if (!arena_->covers(at)) return {};
    std::uint32_t const spot = occupied(at);
    stray* s = spot == track::none ? strays_.find(at) : nullptr;
    if (spot == track::none && (s == nullptr || !s->live)) return {};
    if (on == (s != nullptr ? s->on : steps_[occupants_[spot] - 1].stream + 1)) return result<void>{};
    if (s == nullptr) s = stray_out(spot);
    if (s == nullptr || !strays_.reserve_use()) return result<void>(failure(errc::out_of_host_memory, "record_stream"));
    strays_.record(*s, on);
    return result<void>{};
  }

  /// Remembers a number for the live block at `at`, until it is freed.
  void number(address at, std::uint64_t n) noexcept {
    if (std::uint32_t const spot = occupied(at); spot != track::none) numbers_[spot] = n;
    else if (stray* const s = strays_.find(at)) s->number = n;
  }

  /// A place for n bytes on no plan, that is free now and not planned within `events` from now; none: `address{}`.
  /// O(n log n) in the track.
  [[nodiscard]] address squeeze(request const& r, stream_index user, bytes n, plan::instant events) noexcept {
    address best{};
    try {
      best = smallest_gap(n, events);
    } catch (std::bad_alloc const&) {
    }
    // What lies in a gap may be anyone's.
    if (best == address{} || !strays_.reserve_one() || !wait_for_all(user)) return {};
    return enter_stray(best, n, r, user);
  }

  /// A block of n bytes at `at`, on no plan, if nothing is there. In which order its memory is used is the caller's
  /// affair. Linear in the arena's blocks.
  [[nodiscard]] bool restore(address at, bytes n, request const& r, stream_index user) noexcept {
    if (!arena_->contains(at, at + n) || !strays_.reserve_one()) return false;
    for (std::uint32_t const o : occupants_) {
      if (o != 0 && address_run{steps_[o - 1].at, steps_[o - 1].at + steps_[o - 1].size}.overlaps(at, at + n))
        return false;
    }
    return comes_after(user) && clear(at, n, user) && enter_stray(at, n, r, user) != address{};
  }

  /// Ends what other streams still used when it was freed, where that is over. With `waiter`, that stream is made to
  /// wait where it is not.
  void tend(std::optional<stream_index> waiter = {}) noexcept {
    strays_.for_each([&](stray& s) noexcept {
      if (!s.live && over(s, waiter)) strays_.erase(s);
    });
  }

  /// The memory of the block at `at`, which was freed, is no more the arena's: who has it now has its stamp.
  void forget_freed(address at) noexcept {
    if (stray* const s = strays_.find(at); s != nullptr && !s->live) strays_.erase(*s);
  }
  /// Precondition: none lives, and the arena's memory is not held.
  void forget_strays() noexcept { strays_.clear(); }

  /// Makes `user` wait for all streams' work so far. False: it can't be made to now.
  [[nodiscard]] bool wait_for_all(stream_index user) noexcept {
    auto& time = p_->space.time();
    if (user == nobody) return false;
    if (!time.shared()) return true;
    for (stream_index i = nobody + 1; i < time.lanes(); ++i) {
      if (i != user && !time.wait(user, i, time.latest(i))) return false;
    }
    return true;
  }

  /// Calls `f(address, size, requested, lane)` for every live block, in no order.
  template <class F>
  void each_live(F&& f) const {
    for (std::uint32_t const o : occupants_) {
      if (o == 0) continue;
      track::step const& s = steps_[o - 1];
      f(s.at, s.size, requested_[s.spot], s.stream + 1);
    }
    strays_.for_each([&](stray const& s) {
      if (s.live) f(s.at, s.size, s.requested, s.on);
    });
  }
  /// Calls `f(size, requested, lane)` for the live block at `at`; whether there is one.
  template <class F>
  bool look_at(address at, F&& f) const {
    if (std::uint32_t const spot = occupied(at); spot != track::none) {
      track::step const& s = steps_[occupants_[spot] - 1];
      f(s.size, requested_[spot], s.stream + 1);
      return true;
    }
    stray const* const s = strays_.find(at);
    if (s == nullptr || !s->live) return false;
    f(s->size, s->requested, s->on);
    return true;
  }
  /// Everything that is in use, live or not, in order. Throws `std::bad_alloc`.
  [[nodiscard]] std::vector<address_run> used() const {
    std::vector<address_run> all;
    each_used([&all](address at, bytes n) { all.push_back({at, at + n}); });
    std::ranges::sort(all, {}, &address_run::begin);
    return all;
  }
  /// The same, with the places of all that is still to come in this step.
  [[nodiscard]] std::vector<address_run> used_or_to_come() const {
    std::vector<address_run> all;
    each_used([&all](address at, bytes n) { all.push_back({at, at + n}); });
    for (track::step const& s : steps_.subspan(cursor_)) {
      if (s.at != address{}) all.push_back({s.at, s.at + s.size});
    }
    std::ranges::sort(all, {}, &address_run::begin);
    return all;
  }
  /// From now on the arena may lack memory that the track has places in.
  void look_closely() noexcept { wary_ = true; }
  /// Walks every invariant: null, or the one that is broken. Throws `std::bad_alloc`.
  [[nodiscard]] char const* find_fault() const {
    std::size_t live = 0;
    bool held = true;
    each_live([&](address at, bytes n, bytes, stream_index) {
      ++live;
      held = held && arena_->holds(at, n);
    });
    if (live != live_) return "an arena's live blocks are counted";
    if (!held) return "an arena's live blocks lie in what is taken";
    std::vector<address_run> const all = used();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!arena_->contains(all[i].begin, all[i].end)) return "an arena's blocks lie in its segments";
      if (i > 0 && all[i - 1].end > all[i].begin) return "an arena's blocks don't overlap";
    }
    return nullptr;
  }

 private:
  [[nodiscard]] address place(request const& r, stream_index user, verdict& why) noexcept {
    track::step const& s = steps_[cursor_];
    std::uint32_t const request = cursor_;
    pass_ends(s.birth);
    ++cursor_;
    if (s.at == address{}) {
      why = verdict::unplanned;
      return {};
    }
    if ((wary_ && !there(s)) || occupants_[s.spot] != 0 || !ordered(request, user) ||
        (!strays_.empty() && !clear(s.at, s.size, user))) [[unlikely]] {
      why = verdict::displaced;
      return {};
    }
    occupants_[s.spot] = request + 1;
    requested_[s.spot] = r.size;
    ++live_;
    p_->observer.allocated({s.at, r.size, s.size, r.on, nullptr});
    return s.at;
  }

  /// Blocks whose time is over by `now` and that live are astray. What can't be noted as such blocks everything: its
  /// neighbours' requests would not see it.
  void pass_ends(plan::instant now) noexcept {
    for (; end_ < ends_.size() && ends_[end_].when <= now; ++end_) {
      track::step const& s = steps_[ends_[end_].request];
      if (occupants_[s.spot] == ends_[end_].request + 1 && stray_out(s.spot) == nullptr) block();
      if (p_->space.time().shared()) left_at_[end_] = p_->space.time().latest(lane_of(s.stream));
    }
  }

  void block() noexcept { blocked_ = wary_ = true; }
  /// Whether a request's place may be used, as far as the arena is concerned.
  [[nodiscard]] bool there(track::step const& s) const noexcept { return !blocked_ && arena_->holds(s.at, s.size); }

  /// The spot of the live block at `at`, which is not astray; or none.
  [[nodiscard]] std::uint32_t occupied(address at) const noexcept {
    std::uint32_t const spot = track_ != nullptr ? track_->spot_at(at) : track::none;
    return spot != track::none && occupants_[spot] != 0 ? spot : track::none;
  }

  /// Null for want of host memory: then nothing has changed.
  stray* stray_out(std::uint32_t spot) noexcept {
    if (!strays_.reserve_one()) return nullptr;
    track::step const& s = steps_[occupants_[spot] - 1];
    occupants_[spot] = 0;
    stray& out = strays_.insert(s.at, s.size, requested_[spot], s.stream + 1);
    out.number = std::exchange(numbers_[spot], 0);
    return &out;
  }

  address enter_stray(address at, bytes n, request const& r, stream_index user) noexcept {
    (void)strays_.insert(at, n, r.size, user);
    ++live_;
    p_->observer.allocated({at, r.size, n, r.on, nullptr});
    return at;
  }

  /// Ends the strays in [at, at + n), with `user` waiting for them. False: one lives, or can't be waited for now.
  [[nodiscard]] bool clear(address at, bytes n, stream_index user) noexcept {
    while (stray* const s = strays_.overlapping(at, n)) {
      if (s->live || !over(*s, user)) return false;
      // What sticks out of the place may be another stream's next, which has not waited.
      if ((s->at < at || s->end() > at + n) && !over(*s, {})) come_after(user);
      strays_.erase(*s);
    }
    return true;
  }

  /// Whether a freed stray's memory may be used again: by all, or by `waiter`, who is made to wait for that.
  [[nodiscard]] bool over(stray const& s, std::optional<stream_index> waiter) noexcept {
    auto const done = [&](stream_index on, tick stamp) noexcept {
      auto& time = p_->space.time();
      return time.passed(on, stamp) || (waiter && time.wait(*waiter, on, stamp).has_value());
    };
    bool all = done(s.on, s.stamp);
    for (use const* u = s.recorded; all && u != nullptr; u = u->next) all = done(u->on, u->stamp);
    return all;
  }

  /// From now on every stream comes after all that `user` comes after; `nobody`: there has been nothing. Precondition:
  /// `user` came after `since_`.
  void come_after(stream_index user) noexcept {
    since_on_ = user;
    since_ = user != nobody ? p_->space.time().stamp(user) : 0;
    shared_ = p_->space.time().shared();
  }
  /// Makes `user` wait for `since_`. False: it can't be made to now.
  [[nodiscard]] bool comes_after(stream_index user) noexcept {
    auto& time = p_->space.time();
    if (!time.shared()) [[likely]]
      return true;
    if (!shared_) {
      // While there was one stream, nothing was noted.
      since_on_ = nobody + 1;
      since_ = time.latest(since_on_);
      shared_ = true;
    }
    return time.wait(user, since_on_, since_).has_value();
  }
  /// A plan's stream in the timeline; `nobody`, who has done nothing, where the program hasn't used so many.
  [[nodiscard]] stream_index lane_of(std::uint32_t planned) const noexcept {
    stream_index const lanes = p_->space.time().lanes();
    return planned < lanes && planned + 1 < lanes ? planned + 1 : nobody;
  }

  /// Makes `user` wait for what other streams last did with the memory of a request.
  [[nodiscard]] bool ordered(std::uint32_t request, stream_index user) noexcept {
    if (!comes_after(user)) return false;
    auto& time = p_->space.time();
    if (!time.shared()) [[likely]]
      return true;
    for (track::earlier_use const& u : track_->before(request)) {
      if (!time.wait(user, lane_of(u.stream), left_at_[u.end])) return false;
    }
    return true;
  }

  void leave(std::uint32_t spot, track::step const& s, stream const* after, stream_index after_lane,
             freed& gone) noexcept {
    stream_index const on = after != nullptr ? after_lane : s.stream + 1;
    p_->observer.deallocated({s.at, requested_[spot], s.size, p_->space.time().name(on), nullptr});
    occupants_[spot] = 0;
    --live_;
    gone = {s.at, s.size, on, p_->space.time().stamp(on), std::exchange(numbers_[spot], 0), true};
    // The track's ends stand for its own streams only.
    if (on != s.stream + 1) keep(gone);
  }
  void leave(stray& s, stream const* after, stream_index after_lane, freed& gone) noexcept {
    auto& time = p_->space.time();
    if (after != nullptr) s.on = after_lane;
    p_->observer.deallocated({s.at, s.requested, s.size, time.name(s.on), nullptr});
    --live_;
    s.live = false;
    s.stamp = time.stamp(s.on);
    for (use* u = s.recorded; u != nullptr; u = u->next) u->stamp = time.stamp(u->on);
    gone = {s.at, s.size, s.on, s.stamp, s.number, s.recorded == nullptr};
    if (!time.shared() && s.recorded == nullptr) strays_.erase(s);
  }
  /// What can't be noted blocks everything, until all streams' work is waited for.
  void keep(freed const& f) noexcept {
    if (!strays_.reserve_one()) {
      block();
      return;
    }
    stray& s = strays_.insert(f.at, f.size, 0, f.on);
    s.live = false;
    s.stamp = f.stamp;
  }

  template <class F>
  void each_used(F&& f) const {
    for (std::uint32_t const o : occupants_) {
      if (o != 0) f(steps_[o - 1].at, steps_[o - 1].size);
    }
    strays_.for_each([&](stray const& s) { f(s.at, s.size); });
  }

  /// The smallest sufficient gap between what is there and what is planned within `events`.
  [[nodiscard]] address smallest_gap(bytes n, plan::instant events) const {
    std::vector<address_run> taken = used();
    plan::instant const period = std::max<plan::instant>(track_->source().period, 1);
    plan::instant const now = cursor_ < steps_.size() ? steps_[cursor_].birth : 0;
    for (track::step const& s : steps_) {
      if (s.at == address{}) continue;
      if ((s.birth + period - now) % period < events) taken.push_back({s.at, s.at + s.size});
    }
    std::ranges::sort(taken, {}, &address_run::begin);
    address best{};
    bytes best_size = std::numeric_limits<bytes>::max();
    for (plan::segment const& s : arena_->segments()) {
      each_gap(taken, s.at, s.at + s.size, [&](address begin, address end) {
        if (end - begin < n || end - begin >= best_size || (arena_->parted() && !arena_->holds(begin, n))) return;
        best = begin;
        best_size = end - begin;
      });
    }
    return best;
  }

  parts* p_;
  arena<Config>* arena_;
  track const* track_ = nullptr;
  std::span<track::step const> steps_;
  std::span<track::end const> ends_;
  std::uint32_t cursor_ = 0;
  std::uint32_t end_ = 0;                 ///< the next that is due
  std::vector<std::uint32_t> occupants_;  ///< by spot: the live request + 1
  std::vector<bytes> requested_;          ///< by spot
  std::vector<std::uint64_t> numbers_;    ///< by spot: see `number`
  std::vector<tick> left_at_;             ///< by end: its stream's frees when it came
  strays strays_;
  std::size_t live_ = 0;
  stream_index since_on_ = nobody;  ///< every stream comes after `since_` on this one
  tick since_ = 0;
  bool shared_ = false;   ///< whether several streams were there when `since_` was set
  bool wary_ = false;     ///< blocked, or the arena may lack memory that the track has places in
  bool blocked_ = false;  ///< host memory ran out: the arena's state is not known well enough to place anything
};

}  // namespace gmlake
