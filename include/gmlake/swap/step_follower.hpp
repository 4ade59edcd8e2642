#pragma once
/// Carries out the plan in force as a job's operations end: sends away and brings back, both in the plan's order, and
/// gives the plan up when the step does something else. It never sends anything away on demand.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/pool/pool_options.hpp"
#include "gmlake/swap/pager_job.hpp"
#include "gmlake/swap/pager_options.hpp"

namespace gmlake::swap {

/// `Pages` is a `resident_set`.
template <class Pages>
class step_follower {
 public:
  using jobs = std::vector<std::unique_ptr<pager_job>>;

  step_follower(Pages& pages, jobs const& all, pager_stats& seen) noexcept
      : pages_(&pages), jobs_(&all), seen_(&seen) {}

  /// The page's operation ends next: when it is used again.
  void note_use(pager_job const& j, page& p, bool own) noexcept {
    p.last_use = ticks_;
    if (!own) return;
    p.next_use = j.plan != nullptr ? tick_of(j, j.plan->next_use(p, j.log.operations())) : page::never;
  }

  /// The job's operation has ended, and is logged.
  void operation_ended(pager_job& j) noexcept {
    ++ticks_;
    if (j.plan == nullptr) return;
    std::uint32_t const i = j.log.operations() - 1;
    if (!j.log.complete() || i >= j.plan->operations() || j.plan->prefix(i) != j.log.prefix()) leave_plan(j, i);
    if (j.plan == nullptr) return;
    go_away(j, i);
    come_back(j, i);
  }

  /// A step has begun, for which `plan` is in force; null: none.
  void step_begun(pager_job& j, std::shared_ptr<step_plan const> plan) noexcept {
    j.by_plan = plan != nullptr;
    j.put_off = 0;  // it may have to wait for its turn first
    count_between(j);
    bool const same_steps = plan != nullptr && j.plan != nullptr && plan->fingerprint() == j.plan->fingerprint();
    j.alike = same_steps && j.trust > 0 ? j.alike + 1 : 0;
    // What is away from one step to the next is proven by such steps only as follow their like.
    if (j.alike <= plan_proof::steps_unmapped) unmap(j);
    j.proof = proof_of(j, plan.get());
    if (plan != nullptr && plan == j.plan) {
      std::size_t const ended = plan->moves().returns.size();
      j.next_return = j.next_return > ended ? j.next_return - ended : 0;
      j.next_out = 0;
    } else {
      take_up(j, std::move(plan));
    }
    note_waits(j);
  }
  /// It may go on: what comes back before its first operation begins to.
  void begin_returns(pager_job& j) noexcept {
    if (j.plan != nullptr) come_back(j, -1);
  }
  /// The next operation begins: what has died since the last one's end may be what a return has lacked. Once for each
  /// operation, and only if anything has, as looking for memory in vain takes the host long.
  void operation_begins(pager_job& j) noexcept {
    bytes const live = std::exchange(j.put_off, 0);
    if (live == 0 || j.plan == nullptr || pages_->live() >= live) return;
    come_back(j, std::int64_t{j.log.operations()} - 1);
    j.put_off = 0;
  }

  /// Of the job's next block of n bytes. Where no plan is in force that knows it: if it is the job's turn, that it will
  /// be gone when the turn is over, before others want its memory, and else nothing.
  [[nodiscard]] foresight of_birth(pager_job const& j, bytes n) const noexcept {
    std::uint32_t const number = j.log.births();
    if (j.plan == nullptr || !j.by_plan || !j.plan->knows(number, n)) {
      bool const passes = j.turn == turn::taken;
      return {.now = now(), .until = passes ? now() : foresight::never, .dies = passes};
    }
    presence const there = j.plan->presence_of(j.plan->variable_born(number), j.log.operations());
    foresight f = foreseen(j, (std::uint64_t{j.index} + 1) << 32 | number, there, 0);
    f.at_once = j.plan->takes_turns() && j.log.operations() <= j.plan->within(opening, 0);
    return f;
  }

 private:
  /// What waits for memory longer than that had better take other memory, though mappings have to be made anew.
  static constexpr time long_wait{10'000'000};
  /// A turn's first operations, of so much work, had better not wait for what the job before has queued: where the
  /// program reads a result of one, as language models do of their mask, the host could queue nothing more meanwhile.
  static constexpr time opening{2'000'000};

  [[nodiscard]] std::uint64_t now() const noexcept { return ticks_ + 1; }
  /// `from`: the operation from which those of `there` count.
  [[nodiscard]] foresight foreseen(pager_job const& j, std::uint64_t as, presence const& there,
                                   std::uint32_t from) const noexcept {
    auto const tick = [&](std::uint32_t operation) noexcept {
      return operation != page::none ? tick_of(j, from + operation) + 1 : foresight::never;
    };
    // What dies before an operation is freed when the one before that has ended, behind what comes back then. It is
    // born again in the next step of its kind.
    std::uint64_t const until = tick(there.until);
    std::uint64_t again = tick(there.again);
    if (there.dies && again != foresight::never) again += ticks_between(j);
    return {.as = as,
            .now = now(),
            .soon = tick_of(j, j.log.operations() + j.plan->within(long_wait, j.log.operations())) + 1,
            .until = there.dies ? until + 1 : until,
            .dies = there.dies,
            .again = again,
            .waits = j.waits};
  }

  /// The step has done what its plan did not foresee.
  [[gnu::cold]] void leave_plan(pager_job& j, std::uint32_t i) noexcept {
    ++seen_->departures;
    j.by_plan = false;
    if (known_step* const k = j.known.planned(j.plan.get())) k->proof = {};
    unmap(j);
    take_up(j, j.log.complete() ? j.known.like(i, j.log.prefix(), j.plan.get()) : nullptr);
    note_waits(j);
  }
  static void note_waits(pager_job& j) noexcept {
    known_step const* const k = j.known.planned(j.plan.get());
    j.waits = k != nullptr && k->waits;
    j.others_of_own = j.known.between(k);
  }

  /// Nothing that is away stays mapped.
  void unmap(pager_job& j) noexcept {
    if (std::exchange(j.left_mapped, false)) pages_->unmap_absent(j.index);
    j.proof = {};
  }
  /// What has been proven of the plan by now. Nothing where memory is short.
  [[nodiscard]] static plan_proof proof_of(pager_job& j, step_plan const* plan) noexcept {
    known_step const* const k = j.known.planned(plan);
    try {
      return k != nullptr ? k->proof : plan_proof();
    } catch (std::bad_alloc const&) {
      return {};
    }
  }

  /// From here on, in a step that may have begun already.
  void take_up(pager_job& j, std::shared_ptr<step_plan const> plan) noexcept {
    if (plan == nullptr && j.plan == nullptr) return;
    j.plan = std::move(plan);
    j.returns.begin(j.plan != nullptr ? j.plan->moves().returns.size() : 0);
    j.next_out = j.next_return = 0;
    pages_->each([&](page& p) {
      if (p.job != j.index) return;
      pages_->rekey(p, [&](page& q) {
        std::uint32_t const now = j.log.operations();
        std::uint32_t next = page::none;
        if (j.plan != nullptr) next = now == 0 ? j.plan->first_use(q) : j.plan->next_use(q, now - 1);
        q.next_use = tick_of(j, next);
      });
    });
  }

  /// When a job comes to an operation of its running step or the next, as far as can be told.
  [[nodiscard]] std::uint64_t tick_of(pager_job const& j, std::uint32_t operation) const noexcept {
    if (operation == page::none) return page::never;
    std::uint64_t const away = operation > j.log.operations() ? operation - j.log.operations() : 0;
    if (!j.plan->takes_turns()) return ticks_ + away * j.beside;
    return ticks_ + away + operation / j.plan->operations() * j.between;
  }
  /// What more comes between two steps of the plan's kind than if all the job's were of that.
  [[nodiscard]] static std::uint64_t ticks_between(pager_job const& j) noexcept {
    auto const [steps, operations] = j.others_of_own;
    return j.plan->takes_turns() ? operations + steps * j.between : operations * j.beside;
  }
  /// What other jobs do meanwhile: where they take turns, those without a plan what their last step did.
  void count_between(pager_job& j) const noexcept {
    j.between = 0;
    j.beside = 1;
    for (auto const& o : *jobs_) {
      if (o.get() == &j || !o->open) continue;
      if (o->plan != nullptr) {
        j.between += o->plan->operations();
        ++j.beside;
      } else if (known_step const* const last = o->known.find(o->fingerprint)) {
        j.between += last->times.size();
      }
    }
  }

  [[nodiscard]] page* page_of(pager_job const& j, std::uint32_t variable) const noexcept {
    identity const& who = j.plan->who(variable);
    if (who.is != identity::kind::elder) return j.log.find(who);
    page* const p = pages_->find(who.begin);
    return p != nullptr && p->serial == who.serial ? p : nullptr;
  }

  /// Sends away what is to leave once operation i has ended, in the schedule's order.
  void go_away(pager_job& j, std::uint32_t i) noexcept {
    for (auto const& outs = j.plan->moves().outs; j.next_out < outs.size(); ++j.next_out) {
      planned_out const& o = outs[j.next_out];
      if (o.after > i) return;
      page* const p = page_of(j, o.variable);
      if (p == nullptr || !p->named || p->fixed || p->users > 0 || p->pins > 0 || o.before <= i + 1) continue;
      vacating const way = j.by_plan && j.proof.holds(j.next_out) ? vacating::leave : vacating::unmap;
      if (p->where == page::place::coming && way == vacating::unmap) {
        (void)pages_->look(true);
        if (p->where == page::place::coming) return;  // the host is ahead of its arrival
      }
      if (p->where == page::place::out || !pages_->send(*p, true, way, o.discards)) continue;
      j.left_mapped = j.left_mapped || way == vacating::leave;
      pages_->foresee(*p, foreseen(j, p->as, {i, o.from}, 0));
      ++seen_->planned_out;
    }
  }

  /// Of the returns from the next on whose time has come when operation i has ended and that one operation waits for,
  /// puts those first whose memory is there first: the copies in follow one another, and each waits for its own. Where
  /// the others begin. `ahead`: they are the next step's.
  std::size_t order_returns(pager_job& j, std::int64_t i, bool ahead) noexcept {
    auto const& all = j.plan->moves().returns;
    std::size_t const first = ahead ? j.next_return - all.size() : j.next_return;
    std::uint32_t const due = all[j.returns[first]].due;
    std::int64_t const shift = ahead ? j.plan->operations() : 0;
    std::size_t last = first;
    while (last < all.size() && all[j.returns[last]].due == due && all[j.returns[last]].from + shift <= i + 1) ++last;
    j.returns.sort(first, last, [&](std::uint32_t r) noexcept {
      page const* const p = page_of(j, all[r].variable);
      return p != nullptr ? pages_->awaited(*p) : 0;
    });
    return last + (ahead ? all.size() : 0);
  }

  /// Begins the returns whose time has come when operation i has ended, in their order, as far as there is memory.
  /// Those of the next step's beginning wait for it where other jobs' steps may come between.
  void come_back(pager_job& j, std::int64_t i) noexcept {
    auto const& all = j.plan->moves().returns;
    for (std::size_t ordered = j.next_return;; ++j.next_return) {
      bool const ahead = j.next_return >= all.size();
      if (j.next_return >= 2 * all.size()) return;
      if (j.next_return >= ordered) ordered = order_returns(j, i, ahead);
      planned_return const& r = all[j.returns[ahead ? j.next_return - all.size() : j.next_return]];
      if (ahead && r.from >= 0 && j.plan->takes_turns()) return;
      if (r.from + (ahead ? j.plan->operations() : 0) > i + 1) return;
      page* const p = page_of(j, r.variable);
      if (p == nullptr || p->users > 0) continue;
      if (j.plan->host_bound() && pages_->awaits_copy(*p)) return;
      auto const begins = static_cast<std::uint32_t>(std::max(r.from, std::int64_t{0}));
      presence const there = j.plan->presence_of(r.variable, begins);
      if (pages_->begin_return(*p, foreseen(j, p->as, there, ahead ? j.plan->operations() : 0))) continue;
      j.put_off = pages_->live();
      return;
    }
  }

  Pages* pages_;
  jobs const* jobs_;
  pager_stats* seen_;
  std::uint64_t ticks_ = 0;  ///< operations ended, of all jobs
};

}  // namespace gmlake::swap
