#pragma once
/// A pool over a `swapping_pool` that keeps a program within a limit of device memory: on demand, and where the program
/// repeats its steps, by schedule.
///
///     pager memory(swapping_pool, {.limit = 60_GiB, .channel = measured});
///     memory.begin_step();
///     address x = *memory.allocate(n, s);
///     memory.access(x, s, false, true);             // before an operation that writes x is launched on s
///     launch(x, s);
///     std::uint64_t op = memory.end_operation();    // what the operation used may leave from now on
///     memory.took(op, nanoseconds);                 // later, when its events tell
///
/// An operation is what a thread announces between two calls of `end_operation`, and so is what it allocates: all of
/// that stays on the device until its end. What no operation uses may be away at any time: who touches a block
/// unannounced calls `stop` first, or pins it.
///
/// - **On demand**, always: a request or an arrival that finds no memory sends others away that nobody uses, in the
///   order of its policy, and waits for them.
/// - **By schedule**: steps are logged. The second one, and whatever comes twice, is planned for the limit, at the
///   least stall; the next step like it follows the plan. Where it does something else, the rest of it goes on demand,
///   or by another plan that has foreseen it. Nothing is ever wrong, only slower.
/// - **By recomputation**, in schedules: where the channel does not suffice, blocks whose contents can be made again
///   (`set_recompute`) leave without being copied. The access that wants one calls back before it returns.
///
/// Several jobs may use it, each a sequence of steps of its own: they share the limit. Where their steps do not all fit
/// into it at once, they take turns by plan: a step's first access waits until what the step claims is to be had.
///
/// Thread-safe; its lock is taken before the swapping pool's. It outlives no pool that it works for, and nobody else
/// moves that pool's blocks.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/swap/block_use.hpp"
#include "gmlake/swap/chunk_choice.hpp"
#include "gmlake/swap/farthest_use.hpp"
#include "gmlake/swap/observed_channel.hpp"
#include "gmlake/swap/pager_job.hpp"
#include "gmlake/swap/pager_options.hpp"
#include "gmlake/swap/remaker.hpp"
#include "gmlake/swap/resident_set.hpp"
#include "gmlake/swap/step_follower.hpp"
#include "gmlake/swap/step_planner.hpp"
#include "gmlake/swap/turns.hpp"

namespace gmlake::swap {

template <SwapPool P, VictimPolicy Victims = farthest_use>
class pager {
 public:
  /// Throws `std::bad_alloc`.
  explicit pager(P& pool, pager_options const& options = {})
      : options_(options),
        pages_(pool, options_, seen_),
        link_(options.channel),
        planner_(jobs_, options_, link_, seen_),
        follower_(pages_, jobs_, seen_),
        turns_(jobs_, options_, seen_),
        remaker_(pages_, jobs_, seen_) {
    jobs_.push_back(std::make_unique<pager_job>(0, 0, options_));
    if (options_.limit != no_limit) (void)set_limit(options_.limit);
  }
  pager(pager const&) = delete;
  pager& operator=(pager const&) = delete;
  /// Blocks stay where they are, with the swapping pool: `stop` first to have them on the device.
  ~pager() = default;

  /// n bytes for work queued on `on`, for which others leave if need be; held until this thread's operation ends. In a
  /// group, or if it is to be movable, it is swappable if the pool's options allow that; otherwise only if it is large
  /// enough for the pager's too, and as schedules see fit. Errors: the pool's; `invalid_argument` for a job that is
  /// none; `out_of_memory` where all that is not in use has left and there is still too little.
  [[nodiscard]] result<address> allocate(bytes n, stream on = {}, tag group = {}, job_id job = {},
                                         placement where = placement::anywhere) noexcept {
    std::unique_lock lock(mutex_);
    pager_job* const j = find(job);
    if (j == nullptr) return failure(errc::invalid_argument, "allocate: no such job");
    bool const asked = where == placement::movable || group != tag{};
    return insisting<address>(lock, *j, [&]() noexcept { return made(*j, n, on, group, asked); });
  }

  /// Takes a block back, wherever its memory is; errors and order as the swapping pool's.
  [[nodiscard]] result<void> deallocate(address at) noexcept { return deallocate_after(at, nullptr); }
  [[nodiscard]] result<void> deallocate(address at, stream after) noexcept { return deallocate_after(at, &after); }

  /// Work on `on` uses the block too. Errors: the pool's.
  [[nodiscard]] result<void> record_stream(address at, stream on) noexcept {
    std::scoped_lock const lock(mutex_);
    return pages_.pool().record_stream(at, on);
  }

  /// The operation that this thread launches next on `on` reads or writes the block that begins at `at`, which stays
  /// from now to its end; what is queued on `on` finds the contents. A step's first one waits for the job's turn, if
  /// it has to have one (`turns`). No effect on other addresses. Errors: the pool's; `invalid_argument` for a job that
  /// is none; `out_of_memory` where what running operations use leaves no room: then the block is where it was.
  [[nodiscard]] result<void> access(address at, stream on, bool reads, bool writes, job_id job = {}) noexcept {
    block_use const one{at, reads, writes};
    return access({&one, 1}, on, job);
  }
  /// All that it uses, one after the other. The first error ends it; what stands before stays as said.
  [[nodiscard]] result<void> access(std::span<block_use const> uses, stream on, job_id job = {}) noexcept {
    std::unique_lock lock(mutex_);
    pager_job* const of = find(job);
    if (of == nullptr) return failure(errc::invalid_argument, "access: no such job");
    pager_job& j = *of;
    if (j.turn == turn::due || j.turn == turn::awaited) {
      turns_.await(lock, j);
      follower_.begin_returns(j);
    }
    follower_.operation_begins(j);
    for (block_use const& use : uses) {
      result<void> done = insisting<void>(lock, j, [&]() noexcept { return accessed(lock, j, use, on); });
      if (!done) return done;
    }
    return {};
  }

  /// This thread's operation has been launched, whatever it has used and allocated. Its number, in the order in which
  /// the job's operations end; 0 for a job that is none. No effect within a recomputation, which is the operation's
  /// that wants it.
  std::uint64_t end_operation(job_id job = {}) noexcept {
    std::scoped_lock const lock(mutex_);
    pager_job* const of = find(job);
    if (of == nullptr) return 0;
    pager_job& j = *of;
    if (running* const r = j.mine()) {
      if (r->recomputing != nullptr) return j.next_number;
      for (held_page const& h : r->holds) finish_use(j, h);
      r->holds.clear();
    }
    j.log.end_operation(j.launching.ends());
    j.others = std::max(j.others, pages_.others());
    follower_.operation_ended(j);
    turns_.operation_ended(j);
    (void)pages_.look(false);
    j.launching.begins();
    return j.next_number++;
  }

  /// How long an operation of this step or the last ran, what it waited for and what was made again for it aside. From
  /// any thread. `guessed`: a part of that is not known; it counts until a time is told that was measured.
  void took(std::uint64_t number, std::uint64_t nanoseconds, job_id job = {}, bool guessed = false) noexcept {
    std::scoped_lock const lock(mutex_);
    pager_job* const of = find(job);
    if (of == nullptr) return;
    pager_job& j = *of;
    measured_time const t{time(static_cast<time::rep>(nanoseconds)), guessed};
    if (number >= j.step_number) {
      j.log.took(static_cast<std::uint32_t>(number - j.step_number), t);
    } else if (number >= j.before_number) {
      known_step* const k = j.known.find(j.fingerprint);
      if (k != nullptr) k->average(static_cast<std::uint32_t>(number - j.before_number), t, options_.smoothing);
    }
  }

  /// A step begins: the operations that end from now on are its own. Plans the last one if it is time to; no operation
  /// of the job runs meanwhile. From one thread of a job at a time.
  void begin_step(job_id job = {}) noexcept {
    std::unique_lock lock(mutex_);
    pager_job* const of = find(job);
    if (of == nullptr) return;
    pager_job& j = *of;
    choose_chunk(j);
    link_.note(pages_.pool().take_carried(), options_.smoothing);
    if (std::shared_ptr<planning> const plans = planner_.end_step(j, pages_.counting())) {
      lock.unlock();
      planner_.start(plans);
      lock.lock();
    }
    planner_.adopt();
    pages_.forgive();
    follower_.step_begun(j, stopped_ ? nullptr : planner_.next_plan(j));
    turns_.step_begun(j);
    if (j.turn == turn::none) follower_.begin_returns(j);
  }
  /// Whether the job's next access would wait for no other job's step. If it would, the job waits from now on, and
  /// those whose turn is later wait for it.
  [[nodiscard]] bool may_go(job_id job = {}) noexcept {
    std::scoped_lock const lock(mutex_);
    pager_job* const j = find(job);
    if (j == nullptr) return true;
    turns_.ask(*j);
    return turns_.may_go(*j);
  }

  /// Nobody writes the block from now on, as frozen weights: once it has left, it leaves again without being copied.
  /// Ended by an access that writes, and by false. Error: `unknown_pointer`.
  [[nodiscard]] result<void> set_read_only(address at, bool read_only) noexcept {
    std::scoped_lock const lock(mutex_);
    page* const p = pages_.find(at);
    if (p != nullptr && p->fixed) return {};  // it never leaves
    if (result<void> done = pages_.pool().set_read_only(at, read_only); !done) return done;
    if (p != nullptr) p->read_only = read_only;
    return {};
  }

  /// The block's contents can be made again as they are now, by `how`, so that a schedule may discard them; within the
  /// access that wants them, or `pin`, `swap_in` or `stop`. `takes`: of the device, beside the operation. Ended by an
  /// access that writes, and by an empty `how`. No effect on blocks that never leave. Errors: `invalid_argument` (it
  /// takes no time; it is empty, and the contents are discarded); `out_of_host_memory`.
  [[nodiscard]] result<void> set_recompute(address at, recompute_callback how, time takes) noexcept {
    std::unique_lock lock(mutex_);
    page* const p = remaker_.find(lock, at);
    if (p == nullptr || p->fixed) return {};
    if (how ? takes <= time::zero() : p->discarded) return failure(errc::invalid_argument, "set_recompute");
    try {
      p->recompute = how ? std::make_unique<recomputation>(recomputation{std::move(how), takes}) : nullptr;
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "set_recompute");
    }
    return {};
  }

  /// Brings a block in and keeps it there, at the memory that it has then, until it is unpinned as often. Errors as for
  /// `access`, and the pool's.
  [[nodiscard]] result<void> pin(address at, stream on) noexcept {
    std::unique_lock lock(mutex_);
    page* const p = remaker_.find(lock, at);
    if (p == nullptr) return failure(errc::unknown_pointer, "pin");
    pages_.hold(*p);
    result<void> done = pages_.bring(*p, on);
    if (done && p->discarded) done = remaker_.make_apart(lock, *p, on);
    if (done && !p->fixed) done = pages_.pool().pin(at, on);
    if (done) ++p->pins;
    pages_.let_go(*p);
    return done;
  }
  [[nodiscard]] result<void> unpin(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    page* const p = pages_.find(at);
    if (p == nullptr) return failure(errc::unknown_pointer, "unpin");
    if (!p->fixed) {
      if (result<void> done = pages_.pool().unpin(at); !done) return done;
    } else if (p->pins == 0) {
      return failure(errc::invalid_argument, "unpin");
    }
    pages_.hold(*p);
    --p->pins;
    pages_.let_go(*p);
    return {};
  }

  /// As the swapping pool's, whose groups they are. What operations use stays; for what comes back others leave.
  [[nodiscard]] pause_outcome pause(tag group, bool keeping = true) noexcept {
    std::scoped_lock const lock(mutex_);
    pause_outcome const out = pages_.pool().pause(group, keeping, [this](address at) noexcept {
      page const* const p = pages_.find(at);
      return p != nullptr && p->users > 0;
    });
    pages_.look_at_all();
    return out;
  }
  [[nodiscard]] pause_outcome resume(tag group) noexcept {
    std::scoped_lock const lock(mutex_);
    return pages_.resume(group);
  }

  /// Device memory that the pool may hold from now on; plans for another limit are made anew as their steps come. What
  /// no operation uses leaves as far as need be, and its memory goes back to the device. Whether that was enough.
  bool set_limit(bytes limit) noexcept {
    std::scoped_lock const lock(mutex_);
    if (limit != options_.limit) {
      pages_.pool().device().set_movable_chunk(0);
      chunk_chosen_ = false;
    }
    options_.limit = limit;
    pages_.pool().device().set_limit(limit);
    return pages_.keep_within(limit);
  }

  /// Moves by hand, as the swapping pool's; those that operations use or that are pinned stay, and others leave for
  /// what comes back. Errors: the pool's; `invalid_argument` for what is in use.
  [[nodiscard]] result<void> swap_out(address at, stream last) noexcept {
    std::scoped_lock const lock(mutex_);
    page* const p = pages_.find(at);
    if (p != nullptr && p->users > 0) return failure(errc::invalid_argument, "swap_out: in use");
    result<void> done = pages_.pool().swap_out(at, last);
    if (p != nullptr) pages_.look_at(*p);
    return done;
  }
  [[nodiscard]] result<void> swap_in(address at, stream on) noexcept {
    std::unique_lock lock(mutex_);
    page* const p = remaker_.find(lock, at);
    if (p == nullptr || p->fixed) return pages_.pool().swap_in(at, on);
    pages_.hold(*p);
    result<void> done = by_hand(*p, pages_.pool().swap_in(at, on));
    if (done) done = pages_.bring(*p, on);
    if (done && p->discarded) done = remaker_.make_apart(lock, *p, on);
    pages_.let_go(*p);
    return done;
  }
  [[nodiscard]] result<void> prefetch(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    page* const p = pages_.find(at);
    if (p == nullptr || p->fixed) return pages_.pool().prefetch(at);
    pages_.hold(*p);
    result<void> done = by_hand(*p, pages_.pool().prefetch(at));
    pages_.let_go(*p);
    return done;
  }

  /// Brings every block back and waits until they are there: from now on all may be used unannounced, and nothing
  /// leaves until `go_on`. Groups that are paused stay so. Where the limit leaves no room for all, `stayed` tells how
  /// much is away still; those come when they are accessed, or at another `stop` after some have been freed or the
  /// limit raised.
  [[nodiscard]] pause_outcome stop() noexcept {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    pages_.set_paging(false);
    for (auto& j : jobs_) {
      follower_.step_begun(*j, nullptr);
      turns_.end(*j);
    }
    pause_outcome out;
    auto const paused = [&](page const& p) {
      result<bool> const is = pages_.pool().is_paused(p.begin);
      return is && *is;
    };
    pages_.each([&](page& p) {
      if (p.fixed || paused(p)) return;
      if (result<void> done = pages_.pool().swap_in(p.begin, p.last); !done && out.why.call[0] == '\0') {
        out.why = done.error();
      }
    });
    if (result<void> done = pages_.pool().settle(); !done && out.why.call[0] == '\0') out.why = done.error();
    pages_.look_at_all();
    if (result<void> done = remaker_.make_all(lock); !done && out.why.call[0] == '\0') out.why = done.error();
    pages_.each([&](page& p) {
      if (!paused(p)) (p.where == page::place::here && !p.discarded ? out.moved : out.stayed) += p.size;
    });
    return out;
  }
  /// Ends that.
  void go_on() noexcept {
    std::scoped_lock const lock(mutex_);
    stopped_ = false;
    pages_.set_paging(true);
  }

  /// Another job, with operations and steps of its own; where memory is out, blocks of jobs of lower priority leave
  /// first. The first has priority 0; while it takes no steps, what it has made is whose uses it first. Throws
  /// `std::bad_alloc`.
  [[nodiscard]] job_id add_job(std::uint32_t priority = 0) {
    std::scoped_lock const lock(mutex_);
    for (auto& j : jobs_) {
      if (j->open) continue;
      auto const index = j->index;
      j = std::make_unique<pager_job>(index, priority, options_);
      j->life = ++lives_;
      return job_id{index};
    }
    auto const index = static_cast<std::uint32_t>(jobs_.size());
    jobs_.push_back(std::make_unique<pager_job>(index, priority, options_));
    jobs_.back()->life = ++lives_;
    return job_id{index};
  }
  /// It is over, its threads run no operation; blocks that it leaves are the first job's, for whoever frees them. No
  /// effect on the first, and on what is none.
  void end_job(job_id job) noexcept {
    std::scoped_lock const lock(mutex_);
    pager_job* const of = find(job);
    if (job == job_id{} || of == nullptr) return;
    pager_job& j = *of;
    j.open = false;
    turns_.end(j);
    planner_.job_gone();
    pages_.each([&](page& p) {
      if (p.job != j.index) return;
      pages_.rekey(p, [&](page& q) {
        q.job = 0;
        q.priority = jobs_.front()->priority;
        q.next_use = page::never;
        j.log.forget(q);
      });
    });
  }

  [[nodiscard]] pager_stats stats() const noexcept {
    std::scoped_lock const lock(mutex_);
    return seen_;
  }
  /// What a job's schedule in force is expected to come to; nothing while there is none.
  [[nodiscard]] std::optional<forecast> expected(job_id job = {}) const noexcept {
    std::scoped_lock const lock(mutex_);
    pager_job* const j = find(job);
    return j != nullptr && j->plan != nullptr ? std::optional(planner_.expected(*j)) : std::nullopt;
  }
  /// The channel as copies have turned out to take; before any were timed, as calibrated.
  [[nodiscard]] channel link() const noexcept {
    std::scoped_lock const lock(mutex_);
    return link_.now();
  }
  [[nodiscard]] P& pool() noexcept { return pages_.pool(); }

 private:
  /// A plan that was followed through so many steps on end is believed as to what stays.
  static constexpr std::uint32_t trusted_after = 2;

  /// Whether the job's next block is better off without a mapping of its own. Where several jobs' steps run at the same
  /// time, any block may have to leave.
  [[nodiscard]] bool stays(pager_job const& j, foresight const& f) const noexcept {
    if (f.as == 0 || j.trust < trusted_after || (jobs_open() != 1 && !j.plan->takes_turns())) return false;
    std::uint32_t const number = j.log.births();
    return j.plan->stays(number) && (!options_.leave_mapped || j.plan->shares_mapping(number));
  }

  /// Before the first schedule under a limit is made, for steps like the job's last one, if anything had to leave in
  /// it.
  void choose_chunk(pager_job const& j) noexcept {
    bool const plans = options_.schedules && options_.limit != no_limit && options_.larger_chunks >= 0 && !stopped_;
    if (!plans || chunk_chosen_ || j.evicted == 0 || j.log.step() < 2 || !j.log.complete()) return;
    chunk_chosen_ = true;
    try {
      block_counting const present = pages_.counting();
      if (bytes const chunk = chunk_for(j.log, present, options_.larger_chunks); chunk != present.chunk)
        pages_.change_chunk(chunk);
    } catch (std::bad_alloc const&) {
    }
  }

  /// What came of bringing a held page; where it found no memory, others leave for it.
  [[nodiscard]] result<void> by_hand(page& p, result<void> done) noexcept {
    pages_.look_at(p);
    return done || done.error().code != errc::out_of_memory ? done : pages_.begin_bringing(p);
  }

  [[nodiscard]] std::size_t jobs_open() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(jobs_, [](auto const& j) { return j->open; }));
  }
  /// Null: it was never begun, or is over.
  [[nodiscard]] pager_job* find(job_id job) const noexcept {
    auto const index = static_cast<std::uint32_t>(job);
    return index < jobs_.size() && jobs_[index]->open ? jobs_[index].get() : nullptr;
  }

  /// What a program that takes no steps itself has made, as models before training, is the job's that uses it first.
  void adopt(pager_job& j, page& p) noexcept {
    jobs_.front()->log.forget(p);
    pages_.rekey(p, [&](page& q) {
      q.job = j.index;
      q.priority = j.priority;
    });
  }

  /// Tries again where memory is out and other jobs' steps come to their end, as often as there are others.
  template <class T, std::invocable Attempt>
  [[nodiscard]] result<T> insisting(std::unique_lock<std::mutex>& lock, pager_job const& j, Attempt attempt) noexcept {
    result<T> done = attempt();
    for (std::size_t others = jobs_open(); others > 1 && !done; --others) {
      if (done.error().code != errc::out_of_memory || !turns_.await_others(lock, j)) break;
      done = attempt();
    }
    return done;
  }

  [[nodiscard]] result<address> made(pager_job& j, bytes n, stream on, tag group, bool asked) noexcept {
    running* const r = j.mine();
    if (r == nullptr || !r->room_to_hold()) return failure(errc::out_of_host_memory, "pager");
    follower_.operation_begins(j);
    bytes const evicted = seen_.evicted;
    bool const of_step = r->recomputing == nullptr;
    foresight const foreseen = stopped_ || !of_step ? foresight{} : follower_.of_birth(j, n);
    may_leave const leaves = asked ? may_leave::always : stays(j, foreseen) ? may_leave::never : may_leave::if_large;
    auto const got = j.launching.aside([&]() noexcept { return pages_.allocate(n, on, group, leaves, foreseen); });
    j.evicted += seen_.evicted - evicted;
    if (!got) return failure(got.error());
    if (page* const p = got->of) {
      p->job = j.index;
      p->priority = j.priority;
      p->named = stopped_;
      p->recomputes = !of_step;
      pages_.hold(*p);
      if (stopped_ && of_step) pages_.let_go(*p);  // operations are not told of
      else r->holds.push_back({p});
      if (of_step) j.log.born(*p);
    }
    return got->at;
  }

  [[nodiscard]] result<void> accessed(std::unique_lock<std::mutex>& lock, pager_job& j, block_use const& use,
                                      stream on) noexcept {
    page* const p = remaker_.find(lock, use.at);
    if (p == nullptr) return {};
    running* const r = j.mine();
    if (r == nullptr || !r->room_to_hold()) return failure(errc::out_of_host_memory, "pager");
    if (remaker_.is_own(*p)) {
      return p == r->recomputing ? result<void>{} : failure(errc::invalid_argument, "access: it is being made again");
    }
    p->named = true;
    if (p->job == 0 && j.index != 0 && jobs_.front()->log.step() == 0) adopt(j, *p);
    pages_.hold(*p);
    if (result<void> done = prepare(j, *p, on, use.writes); !done) {
      pages_.let_go(*p);
      return done;
    }
    time const recompute = p->recompute != nullptr ? p->recompute->takes : time::zero();
    if (r->recomputing != nullptr) r->holds.push_back({p});  // in a step without recomputation it isn't there
    else r->holds.push_back({p, use.reads, use.writes, recompute});
    if (p->discarded) {
      if (result<void> done = remaker_.make(lock, j, *p, on); !done) {
        stop_holding(j, *p);
        return done;
      }
    }
    if (use.writes) p->recompute.reset();
    return {};
  }

  /// A held page is made ready for an operation on `on`.
  [[nodiscard]] result<void> prepare(pager_job& j, page& p, stream on, bool writes) noexcept {
    if (on != p.home && on != p.recorded) {
      if (result<void> noted = pages_.pool().record_stream(p.begin, on); !noted) return noted;
      p.recorded = on;
    }
    if (p.where != page::place::here) {
      bytes const evicted = seen_.evicted;
      result<void> done = j.launching.aside([&]() noexcept { return pages_.bring(p, on); });
      j.evicted += seen_.evicted - evicted;
      if (!done) return done;
    }
    p.last = on;
    if (!writes || !p.read_only) return {};
    p.read_only = false;
    return pages_.pool().set_read_only(p.begin, false);
  }

  void finish_use(pager_job& j, held_page const& h) noexcept {
    page& p = *h.of;
    bool const own = p.job == j.index;
    if (own && (h.reads || h.writes) && !p.recomputes) j.log.accessed(p, h.reads, h.writes, h.recompute);
    follower_.note_use(j, p, own);
    pages_.let_go(p);
  }

  [[nodiscard]] result<void> deallocate_after(address where, stream const* after) noexcept {
    std::unique_lock lock(mutex_);
    page* const p = remaker_.find(lock, where);
    if (p != nullptr && remaker_.is_own(*p)) {
      return failure(errc::invalid_argument, "deallocate: it is being made again");
    }
    P& pool = pages_.pool();
    if (result<void> done = after != nullptr ? pool.deallocate(where, *after) : pool.deallocate(where); !done) {
      return done;
    }
    if (p == nullptr) return {};
    if (p->users > 0) release_holds(*p);
    if (!p->recomputes) jobs_[p->job]->log.freed(*p);
    pages_.forget(*p);
    return {};
  }
  /// Freed within an operation that uses it.
  void release_holds(page& p) noexcept {
    for (auto& j : jobs_) {
      for (running& r : j->threads) {
        std::erase_if(r.holds, [&](held_page const& h) {
          bool const noted = p.job == j->index && (h.reads || h.writes) && !p.recomputes;
          if (h.of == &p && noted) j->log.accessed(p, h.reads, h.writes, h.recompute);
          return h.of == &p;
        });
      }
    }
  }

  /// This thread's operation does not use the block after all.
  void stop_holding(pager_job& j, page& p) noexcept {
    auto& holds = j.mine()->holds;
    auto const last = std::ranges::find(holds.rbegin(), holds.rend(), &p, &held_page::of);
    holds.erase(std::next(last).base());
    pages_.let_go(p);
  }

  using pages_type = resident_set<P, Victims>;

  mutable std::mutex mutex_;
  pager_options options_;
  pager_stats seen_;
  pages_type pages_;
  observed_channel link_;
  step_planner::jobs jobs_;
  step_planner planner_;
  step_follower<pages_type> follower_;
  turns turns_;
  remaker<pages_type> remaker_;
  std::uint64_t lives_ = 0;    ///< jobs added
  bool chunk_chosen_ = false;  ///< for the limit
  bool stopped_ = false;
};

}  // namespace gmlake::swap
