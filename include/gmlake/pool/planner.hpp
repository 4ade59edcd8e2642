#pragma once
/// The plan in front of the lake. It watches requests until they repeat, has the step planned, holds the memory that
/// the plan needs, and serves what keeps to the plan from there; everything else is the engine's, as if there were no
/// plan.
///
///     learning ── a step repeats ──> planned ── its first request comes ──> following
///         ^                                                                      │ too much departs, or
///         └──────────────── the arena is empty <── leaving <─────────────────────┘ the engine is short of memory
///
/// While it follows, the arena is held. On leaving, what is idle of it goes back to the lake at once, and the rest as
/// it is freed, so that a plan never keeps memory from the program. Nothing here is trusted to be right: the follower
/// looks before it places.

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/observe/plan_stats.hpp"
#include "gmlake/observe/snapshot.hpp"
#include "gmlake/plan/adherence.hpp"
#include "gmlake/plan/laps.hpp"
#include "gmlake/plan/learner.hpp"
#include "gmlake/plan/lull.hpp"
#include "gmlake/plan/plan_job.hpp"
#include "gmlake/plan/plan_rules.hpp"
#include "gmlake/plan/recent_requests.hpp"
#include "gmlake/pool/known_plans.hpp"
#include "gmlake/pool/planner_of.hpp"

namespace gmlake {

template <PoolConfig Config>
class planner : public known_plans<Config> {
  using base = known_plans<Config>;
  using base::adopted_;
  using base::beginning;
  using base::claim;
  using base::drop;
  using base::find;
  using base::forget_tracks;
  using base::fresh_course;
  using base::gathered;
  using base::give_back_spent;
  using base::height_of;
  using base::height_with_next;
  using base::hold_again_for_all;
  using base::index_of;
  using base::let_go;
  using base::most_left_early;
  using base::moved_;
  using base::now_;
  using base::p_;
  using base::survey;
  using base::tracks_;
  using typename base::known;

 public:
  using parts = pool_parts<Config>;
  using track = plan::track;
  using verdict = typename follower<Config>::verdict;

  planner(parts& p, stitcher<Config>& s, grower<Config>& g, returner<Config>& r) noexcept : base(p, s, g, r) {}

  [[nodiscard]] plan_stats const& seen() const noexcept { return seen_; }

  // ---- requests

  /// A place on a plan for n bytes as placed; `address{}`: the engine's turn.
  [[nodiscard]] address serve(request const& r, stream_index user, bytes n) noexcept {
    if (!following_) return learn(r, user, n);
    first_ = std::exchange(at_mark_, false);
    if (begins_ || now_->served().at_end()) next_step(user);
    if (watching_) [[unlikely]]
      watch();
    if (!following_) [[unlikely]]
      return {};
    verdict why{};
    address const at = now_->served().serve(r, user, n, why);
    return at != address{} ? placed(at, user, n) : missed(r, user, n, why);
  }

  /// The engine has served a request: its number in the log, for `freed`. One that no plan can place has none: 0.
  [[nodiscard]] std::uint64_t note(stream_index user, bytes n) noexcept {
    return watching_ && std::exchange(asked_, false) ? learner_.allocated(n, user - 1) + 1 : 0;
  }
  void freed(std::uint64_t number, bytes n) noexcept {
    if (watching_ && number != 0) learner_.freed(number - 1, n);
  }

  /// Takes back a block of an arena's; false: it is none.
  [[nodiscard]] bool take_back(address at, stream const* after, stream_index after_lane) noexcept {
    typename course<Config>::freed gone;
    if (!courses<Config>::take_back(at, after, after_lane, gone)) return false;
    freed(gone.number, gone.size);
    if (p_->space.time().shared()) (void)p_->space.time().note_free(gone.on);
    return true;
  }
  /// A block of n bytes at `at` in a plan's memory, if nothing is there. The order of its uses is the caller's affair.
  [[nodiscard]] bool restore(address at, bytes n, request const& r, stream_index user) noexcept {
    if (!following_ || !now_->memory().holds(at, n) || !now_->served().restore(at, n, r, user)) return false;
    tell(at, user, n);
    return true;
  }

  /// The engine would have to ask the device for memory: a place in the arena, or more of it in the lake. `address{}`
  /// and `gave`: the engine should look again.
  [[nodiscard]] address before_growing(request const& r, stream_index user, bytes n, bool& gave) noexcept {
    if (!following_) return {};
    // What the plan knows of, and has no place for, takes others' only where that spares growth.
    bool const placeless = std::exchange(placeless_, false);
    plan::instant const life = placeless ? life_of_last() : 0;
    address const at = life != plan::step_request::stays ? now_->served().squeeze(r, user, n, life) : address{};
    if (at != address{}) {
      ++seen_.squeezed;
      tell(at, user, n);
    } else if (!placeless || idles(n)) {
      note_shortage();
      gave = leave(user);
    } else if (n > p_->options.small_limit && !now_->served().on()->source().repeats) {
      gave = give_back_spent(user, n);
    }
    return at;
  }

  /// Gives the lake all that is idle, and goes back to learning. Whether there was any.
  bool leave(stream_index user) noexcept {
    if (!following_) return false;
    ++seen_.left;
    following_ = false;
    // None is followed where host memory ran out on the way from one to the next.
    if (track const* const left = now_->served().on(); left != nullptr && left_too_early()) {
      known& k = tracks_[index_of(left)];
      if (++k.left_early == most_left_early) learner_.refuse(plan::fingerprint(plan::first_lap(k.way->source())));
    }
    if (!std::exchange(watching_, true)) learner_.restart(p_->space.home().reserved(), at_mark_ || first_);
    recent_.clear();
    lull_ = {};
    bytes const before = now_->memory().taken();
    now_->leave(user);
    return now_->memory().taken() < before;
  }

  /// A step begins with the next request. Once told, the planner looks for no other signs.
  void mark_step() noexcept {
    learner_.mark_step();
    at_mark_ = true;
    if (!following_) begins_ = true;
    else if (!now_->served().on()->source().repeats) return;
    else if (std::uint32_t const next = now_->served().cursor();
             !plan::between_laps(now_->served().on()->source(), next)) {
      begins_ = next != 0 || kept_.missed();  // else it begins here anyway
    }
  }

  /// False: requests are neither learnt from nor planned, as from a program that is about to do something else.
  /// Precondition for that: none is followed. True: it begins to learn anew.
  void set_learning(bool on) noexcept {
    if (on && !learns_) begin_anew();
    learns_ = on;
  }

  /// See the learner's.
  void expect_updates() noexcept { learner_.expect_updates(); }
  void note_update() noexcept { learner_.note_update(); }

  // ---- plans from elsewhere

  /// Plans made elsewhere, the prologue first if there is one. To be called before the first request. Errors:
  /// `invalid_argument` where that has been, or a plan breaks a rule: then none is taken; `out_of_host_memory`.
  [[nodiscard]] result<void> adopt(std::vector<plan::plan> plans) noexcept {
    if (learner_.count() != 0 || !tracks_.empty()) return failure(errc::invalid_argument, "adopt: too late");
    try {
      std::vector<known> adopted;
      for (plan::plan& p : plans) {
        bool const fits = !p.requests.empty() && (p.repeats || adopted.empty()) && plan::find_fault(p) == nullptr;
        if (!fits) return failure(errc::invalid_argument, "adopt: plan");
        adopted.push_back({std::make_unique<track>(std::move(p), std::span<plan::segment const>{}), false, 0});
      }
      if (!fresh_course()) return failure(errc::out_of_host_memory, "adopt");
      tracks_ = std::move(adopted);
      adopted_ = true;
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "adopt");
    }
    if (tracks_.empty() || tracks_.front().way->source().repeats) return {};
    if (!go_by(0, 0, nobody)) {
      tracks_.clear();
      return failure(errc::out_of_host_memory, "adopt");
    }
    following_ = true;
    return {};
  }
  /// The plans known now, what came before the steps first, which is not placed. Throws `std::bad_alloc`.
  [[nodiscard]] std::vector<plan::plan> plans() const {
    std::vector<plan::plan> all;
    bool const whole = !tracks_.empty() && tracks_.front().way->source().repeats;
    if (whole && !learner_.prologue().requests.empty()) all.push_back(learner_.prologue());
    for (known const& k : tracks_) all.push_back(k.way->source());
    return all;
  }
  /// The same with all of them placed. As expensive as planning; touches no pool. Throws `std::bad_alloc`.
  [[nodiscard]] static std::vector<plan::plan> placed_all(std::vector<plan::plan> all) {
    for (plan::plan& p : all) {
      if (!p.repeats && p.height == 0) p = plan::packed_plan(std::move(p));
    }
    return all;
  }

 private:
  /// Looks for a gap cost a pass over the track; steps looked at, in one step of the program.
  static constexpr std::size_t most_looked_at = std::size_t{1} << 18;
  /// A little more than the lower bound, so that a good packing fits.
  [[nodiscard]] static constexpr bytes slack_of(bytes bound) noexcept { return bound / 256; }

  // ---- following

  /// The plan is left because the pool is short of memory: one that is left for that again and again, and never comes
  /// to be trusted, leaves too little for what it has no place for.
  void note_shortage() noexcept {
    if (kept_.steps() >= plan::adherence::trusted_after) shortages_ = 0;
    track const* const left = now_->served().on();
    if (left == nullptr || ++shortages_ < most_left_early) return;
    shortages_ = 0;
    known& k = tracks_[index_of(left)];
    k.left_early = most_left_early;
    learner_.refuse(plan::fingerprint(plan::first_lap(k.way->source())));
  }

  void next_step(stream_index user) noexcept {
    begins_ = false;
    follower<Config>& f = now_->served();
    bool const again = f.on()->source().repeats;
    f.begin_again();
    end_step();
    if (again) {
      std::size_t const likely = find(tracks_[index_of(f.on())].next);
      if (likely < tracks_.size() && tracks_[likely].way.get() != f.on() && tracks_[likely].placed) {
        (void)change_to(likely, 0, user);
      }
      return;
    }
    std::size_t next = 0;
    while (next < tracks_.size() && !tracks_[next].way->source().repeats) ++next;
    if (next == tracks_.size() || !(tracks_[next].placed || let_go(user)) || !change_to(next, 0, user)) {
      (void)leave(user);
    }
  }
  void end_step() noexcept {
    track const* const now = now_->served().on();
    bool const kept = kept_.end_step(now->source(), seen_.placed);
    looked_at_ = 0;
    remembered_at_ = track::none;
    if (std::size_t const before = find(std::exchange(previous_, now)); before < tracks_.size()) {
      tracks_[before].next = now;
    }
    if (kept && !left_too_early()) tracks_[index_of(now)].left_early = 0;
    if (watching_ && kept && trusted()) watching_ = false;
  }

  [[nodiscard, gnu::cold]] address missed(request const& r, stream_index user, bytes n, verdict why) noexcept {
    placeless_ = false;
    if (kept_.departs()) {
      make_anew(user);
      return {};
    }
    if (why == verdict::unplanned) return unplanned(r, user, n);
    if (why == verdict::displaced) {
      ++seen_.displaced;
      kept_.miss();
    } else if (find_again(user, n)) {
      verdict again{};
      address const at = now_->served().serve(r, user, n, again);
      if (at != address{}) return placed(at, user, n);
      if (again == verdict::unplanned) return unplanned(r, user, n);
      kept_.miss();
    } else {
      ++seen_.astray;
      kept_.miss();
    }
    std::size_t const all = now_->served().on()->steps().size();
    // Without marks it may be any step's beginning, or none's.
    if (kept_.lost(all, learner_.marked() ? now_->served().cursor() : all)) {
      (void)leave(user);
      return {};
    }
    return squeezed(r, user, n, why == verdict::displaced ? life_of_last() : usual_life(user, n));
  }

  /// A plan from elsewhere comes to the first request that has a place: now it gets its memory, from the device if need
  /// be.
  [[nodiscard]] address unplanned(request const& r, stream_index user, bytes n) noexcept {
    follower<Config>& f = now_->served();
    plan::step_request const& wanted = f.on()->source().requests[f.cursor() - 1];
    placeless_ = true;
    kept_.lack_place();
    if (now_->memory().held() || wanted.offset == plan::step_request::nowhere ||
        wanted.death == plan::step_request::stays)
      return {};
    std::uint32_t const at = f.cursor() - 1;
    std::size_t const which = index_of(f.on());
    placeless_ = false;
    // With what the steps after a prologue need: some of its blocks live on into the first of them.
    if (!claim(user, height_with_next(which), true) || !go_by(which, at, user)) {
      (void)leave(user);
      return {};
    }
    verdict why{};
    address const there = f.serve(r, user, n, why);
    return there != address{} ? placed(there, user, n) : there;
  }
  /// Of the track's last request before the cursor.
  [[nodiscard]] plan::instant life_of_last() const noexcept {
    follower<Config> const& f = now_->served();
    plan::step_request const& q = f.on()->source().requests[f.cursor() - 1];
    return q.death == plan::step_request::stays ? q.death : q.death - q.birth;
  }

  /// Whether the plan keeps memory idle that would spare the pool growth for a request of n bytes that it has no place
  /// for. It believes of a block that it lives on where that was freed late once, and of the step that it is the one
  /// under way: growth for its sake would have memory twice for what comes once. Small blocks are never helped, and
  /// what comes before the steps is known in full, with what stays. O(n) in the arena's blocks.
  [[nodiscard]] bool idles(bytes n) const noexcept {
    if (n <= p_->options.small_limit || !now_->served().on()->source().repeats) return false;
    bytes const idle = now_->idle();
    return idle > 0 && p_->space.total() + idle >= n;
  }

  /// Looks for the last few requests in the plans: close by, where a step of another begins, and once there are enough
  /// that none foresaw, anywhere. Requests repeat within a step, so what is far is not to be believed too soon.
  [[nodiscard]] bool find_again(stream_index user, bytes n) noexcept {
    remember(user, n);
    follower<Config>& f = now_->served();
    if (begins_another(user)) return true;
    std::uint32_t at = recent_.realigned(*f.on(), f.cursor(), off_);
    if (at == track::none && off_ >= track::run) at = recent_.beginning_of(*f.on());
    if (at == track::none && off_ >= track::run) at = recent_.find_in(*f.on(), f.cursor());
    if (at == track::none) return false;
    if (at < f.cursor()) {
      f.begin_again();
      end_step();
    }
    f.move_to(at);
    return true;
  }
  [[nodiscard]] bool begins_another(stream_index user) noexcept {
    follower<Config>& f = now_->served();
    if (f.cursor() == 0 && off_ == 1) {
      std::size_t const i = beginning(recent_);
      return i < tracks_.size() && change_to(i, 0, user);
    }
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      if (tracks_[i].way.get() == f.on() || !tracks_[i].placed) continue;
      std::uint32_t const at = recent_.beginning_of(*tracks_[i].way);
      if (at == track::none) continue;
      bool const in_it = f.cursor() <= plan::recent_requests::most;  // the same step, of another shape than thought
      f.begin_again();
      if (!in_it) end_step();
      return change_to(i, at, user);
    }
    return false;
  }
  void remember(stream_index user, bytes n) noexcept {
    follower<Config> const& f = now_->served();
    if (f.cursor() != remembered_at_) {
      recent_.follow(*f.on(), f.cursor());  // those before this one were the plan's
      remembered_at_ = f.cursor();
      off_ = 0;
    }
    recent_.push(n, user - 1);
    ++off_;
  }

  /// A request off the plan that is known to be short-lived goes where the plan needs nothing for as long. Not a small
  /// one, which would take more time than it saves memory, and splits what the plan needs if it stays.
  [[nodiscard]] address squeezed(request const& r, stream_index user, bytes n, plan::instant life) noexcept {
    follower<Config>& f = now_->served();
    auto const steps = f.on()->steps();
    if (n <= p_->options.small_limit || life == plan::step_request::stays) return {};
    if (looked_at_ + steps.size() > most_looked_at) return {};
    looked_at_ += steps.size();
    address const at = f.squeeze(r, user, n, life);
    if (at == address{}) return {};
    ++seen_.squeezed;
    tell(at, user, n);
    return at;
  }
  /// Of the next request of that size and stream in the plan; `stays` where there is none.
  [[nodiscard]] plan::instant usual_life(stream_index user, bytes n) const noexcept {
    follower<Config> const& f = now_->served();
    auto const& all = f.on()->source().requests;
    for (std::size_t i = 0; i < all.size(); ++i) {
      plan::step_request const& q = all[(i + f.cursor()) % all.size()];
      if (q.size == n && q.stream + 1 == user && q.death != plan::step_request::stays) return q.death - q.birth;
    }
    return plan::step_request::stays;
  }

  /// Precondition: `user` comes after all that was done in the arena. On failure nothing has changed.
  [[nodiscard]] bool go_by(std::size_t which, std::uint32_t from, stream_index user) noexcept {
    if (!now_->served().follow(tracks_[which].way.get(), from, user)) return false;
    remembered_at_ = track::none;
    kept_.change();
    return true;
  }
  /// From the track now to another one, whose requests know nothing of what this one's did.
  [[nodiscard]] bool change_to(std::size_t which, std::uint32_t from, stream_index user) noexcept {
    return now_->come_after_all(user) && go_by(which, from, user);
  }
  /// The program goes on regularly, but otherwise than planned.
  void make_anew(stream_index user) noexcept {
    track const* const old = now_->served().on();
    kept_.trust();  // it is not left for being a part of something larger
    (void)leave(user);
    if (now_->served().follow(nullptr, 0, user)) {
      std::erase_if(tracks_, [old](known const& k) { return k.way.get() == old; });
    }
    kept_.change();
  }

  // ---- learning

  /// Whether the plan may be followed without a look at what else repeats: its steps are marked, or have made up most
  /// of all there was, or have come often.
  [[nodiscard]] bool trusted() const noexcept {
    std::uint64_t const covered = static_cast<std::uint64_t>(kept_.steps() + 2) * now_->served().on()->steps().size();
    return learner_.marked() || kept_.steps() >= plan::adherence::trusted_after || 3 * covered >= 2 * learner_.count();
  }
  /// A plan that is left now was of no use: not one step kept to it, or it was a loop's within a larger step, as far as
  /// is known.
  [[nodiscard]] bool left_too_early() const noexcept {
    if (learner_.marked() || !watching_) return kept_.steps() == 0;
    return kept_.steps() < plan::adherence::trusted_after;
  }
  /// Steps may be parts of larger ones, which only their log can tell.
  void watch() noexcept {
    asked_ = true;
    try {
      (void)learner_.next();
    } catch (std::bad_alloc const&) {
    }
  }
  [[nodiscard]] address placed(address at, stream_index user, bytes n) noexcept {
    ++seen_.placed;
    if (watching_) [[unlikely]]
      tell(at, user, n);
    return at;
  }
  void tell(address at, stream_index user, bytes n) noexcept {
    if (std::uint64_t const number = note(user, n); number != 0) now_->served().number(at, number);
  }

  [[nodiscard]] address learn(request const& r, stream_index user, bytes n) noexcept {
    if (p_->options.pinned || !learns_ || !watches()) return {};
    recent_.push(n, user - 1);
    std::optional<plan::plan> step;
    asked_ = true;
    try {
      step = learner_.next();
    } catch (std::bad_alloc const&) {
    }
    take_up_job(user);
    if (step) consider(std::move(*step), user);
    address const at = begin(r, user, n);
    begins_ = false;
    return at;
  }

  /// Whether there may be something to learn from the request to come.
  [[nodiscard]] bool watches() noexcept {
    bool const lull = lull_.lasts(p_->space.home().reserved() - p_->space.total());
    if (!lull || begins_) [[unlikely]] {
      if (!std::exchange(watching_, true)) begin_anew();
    } else {
      watching_ = false;
    }
    return watching_;
  }
  void begin_anew() noexcept {
    learner_.restart(p_->space.home().reserved(), begins_);
    recent_.clear();
  }

  /// Has the step planned that has just come to its end, unless it is known.
  void consider(plan::plan step, stream_index user) noexcept {
    if (job_ != nullptr || !this->leave_behind(user)) return;
    if (now_ == nullptr) tracks_.clear();  // they were the course's that was left behind
    std::uint64_t const shape = plan::contents(step.requests);
    // What was adopted and never came to be followed is of no use beside plans of the program's own.
    if (!tracks_.empty() && !tracks_.front().placed) forget_tracks(user);
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      if (plan::contents(tracks_[i].way->source().requests) != shape) continue;
      if (tracks_[i].left_early < most_left_early) return;
      // It has come often enough since, so what it asks for is right: what it knew of lifetimes need not have been.
      if (!drop(i, user)) return;
      break;
    }
    try {
      bytes const bound = lower_bound(plan::problem_of(step.requests, step.period, 0).of);
      if (bound == 0 || !survey(user, align_up(bound + slack_of(bound), block_alignment))) return;
      auto const there = now_->memory().segments();
      std::vector<plan::segment> const segments(there.begin(), there.end());
      job_ = std::make_shared<plan::plan_job>(std::move(step), segments);
      job_for_ = now_->memory().claims();
      job_since_ = learner_.count();
      p_->planning.start(job_);
      take_up_job(user);
    } catch (std::bad_alloc const&) {
      job_.reset();
    }
  }

  void take_up_job(stream_index user) noexcept {
    if (job_ == nullptr || !job_->done()) return;
    std::unique_ptr<track> made = job_->take();
    job_.reset();
    // Meanwhile its addresses may have become others'.
    if (made == nullptr || now_ == nullptr || now_->memory().claims() != job_for_) return;
    bool const late = learner_.count() > job_since_;
    std::uint64_t const not_before = late ? job_since_ + made->source().requests.size() : 0;
    try {
      tracks_.push_back({.way = std::move(made), .placed = true, .not_before = not_before});
    } catch (std::bad_alloc const&) {
      return;
    }
    ++seen_.made;
    if (tracks_.size() > base::most_tracks) drop(0, user);
  }

  /// The request, on a plan whose step begins here.
  [[nodiscard]] address begin(request const& r, stream_index user, bytes n) noexcept {
    if (tracks_.empty() || (now_ != nullptr && now_->leaving() && !now_->over())) return {};
    std::size_t const marked = begins_ ? beginning(recent_) : tracks_.size();
    for (std::size_t i = tracks_.size(); i-- > 0;) {
      std::uint32_t const at = i == marked ? 0 : recent_.beginning_of(*tracks_[i].way);
      if (at == track::none || tracks_[i].left_early >= most_left_early) continue;
      if (at != 0 && learner_.count() < tracks_[i].not_before) continue;
      if (!gathered(user)) return {};
      if (!tracks_[i].placed) {
        if (!claim(user, height_of(tracks_[i].way->source()), true)) {
          forget_tracks(user);
          return {};
        }
      } else if (!hold_again_for_all(user)) {
        return {};
      }
      now_->hold_again();
      if (!go_by(i, at, user)) {
        now_->memory().let_go(user, p_->space.time().stamp(user));
        return {};
      }
      following_ = true;
      previous_ = nullptr;
      kept_.begin(seen_.placed);
      moved_ = 0;
      looked_at_ = 0;
      watching_ = true;  // for a step at least: it may be another than it seems
      ++seen_.followed;
      verdict why{};
      address const there = now_->served().serve(r, user, n, why);
      return there != address{} ? placed(there, user, n) : there;
    }
    return {};
  }

  bool following_ = false;
  int shortages_ = 0;  ///< times that plans were left for want of memory, since one was trusted
  bool learns_ = true;
  bool begins_ = false;              ///< a step does, with the next request: it was marked
  bool at_mark_ = false;             ///< nothing was asked for since a mark while a plan was followed
  bool first_ = false;               ///< then, the last request was the first since
  track const* previous_ = nullptr;  ///< followed in the step before
  bool placeless_ = false;           ///< the last request that was not placed is the track's, which has no place for it
  std::shared_ptr<plan::plan_job> job_;
  std::uint64_t job_for_ = 0;    ///< the arena that it plans for, as its `claims`
  std::uint64_t job_since_ = 0;  ///< requests logged when it began, at a step's end
  plan::learner learner_;
  bool asked_ = false;    ///< the learner, about a request that has not been served yet
  bool watching_ = true;  ///< requests are logged: always but in a lull, and while a plan is followed that is trusted
  plan::lull lull_;
  plan::recent_requests recent_;
  std::uint32_t remembered_at_ = track::none;
  std::uint32_t off_ = 0;  ///< requests on end that were not the plan's next, since `remembered_at_`
  plan::adherence kept_;
  std::size_t looked_at_ = 0;  ///< see `most_looked_at`
  plan_stats seen_;
};

}  // namespace gmlake
