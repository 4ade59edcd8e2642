#pragma once
/// The kinds of steps that a job takes, by fingerprint: how long their operations run on average, what came after them
/// the last time, and their plans.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/launch_times.hpp"
#include "gmlake/swap/measured_time.hpp"
#include "gmlake/swap/plan_proof.hpp"
#include "gmlake/swap/plan_trial.hpp"
#include "gmlake/swap/step_plan.hpp"

namespace gmlake::swap {

struct known_step {
  std::uint64_t fingerprint = 0;
  std::uint64_t seen = 0;                       ///< how often
  std::uint64_t last_seen = 0;                  ///< in which of the job's steps
  std::uint64_t followed_by = 0;                ///< the fingerprint of what came next, the last time
  std::vector<measured_time> times;             ///< by operation
  launch_times launches = {};                   ///< of steps that a plan was in force for
  std::shared_ptr<step_program const> program;  ///< as of when it was planned last; its operations take no time
  std::shared_ptr<step_plan const> plan;
  forecast expected = {};           ///< of that, by the times that are known by now
  plan_proof proof = {};            ///< of that
  bool waits = false;               ///< for what is mapped, by that (`foresight::waits`)
  bool waiting_tried = false;       ///< by that
  bool not_waiting_tried = false;   ///< again, once waiting has settled
  bool host_bound = false;          ///< is to be planned so (`step_plan::host_bound`)
  bool host_bound_tried = false;    ///< for the limit
  plan_trial trial = {};            ///< of all that
  bool renewed = false;             ///< the one being made is for the same limit and jobs
  std::uint64_t planned_among = 0;  ///< the pager's jobs then
  bytes planned_for = 0;            ///< the limit
  time planned_with{};              ///< the sum of the times that the plan was made with
  channel planned_over = {};        ///< and the channel
  bytes overdraft = 0;              ///< by how much less than the limit allows it has to be planned for
  std::uint64_t plan_again_at = 0;  ///< not before it has been seen so often, should the plan do badly
  std::uint32_t plans = 0;          ///< how many were made

  /// How its steps go, to be gone back to.
  [[nodiscard]] plan_trial::way way() const noexcept { return {plan, waits, expected}; }

  void average(std::uint32_t operation, measured_time t, double weight) noexcept {
    if (operation < times.size()) times[operation].average(t, weight);
  }

  /// Of all that are known.
  [[nodiscard]] time sum() const noexcept {
    time all{};
    for (measured_time const& t : times) all += std::max(t.is, time::zero());
    return all;
  }

  /// The times, where unknown the others' mean, or `otherwise`; none is zero. Throws `std::bad_alloc`.
  [[nodiscard]] std::vector<time> filled_times(time otherwise) const {
    auto const known = std::ranges::count_if(times, &measured_time::known);
    time const mean = known > 0 ? sum() / known : otherwise;
    std::vector<time> all;
    all.reserve(times.size());
    for (measured_time const& t : times) all.push_back(std::max(t.known() ? t.is : mean, time(1)));
    return all;
  }
};

class known_steps {
 public:
  explicit known_steps(std::size_t most) noexcept : most_(most > 0 ? most : 1) {}

  [[nodiscard]] known_step* find(std::uint64_t fingerprint) noexcept {
    auto const found = std::ranges::find(all_, fingerprint, &known_step::fingerprint);
    return found != all_.end() ? &*found : nullptr;
  }

  /// The kind whose plan it is; null: it has another by now, or is not known any more.
  [[nodiscard]] known_step* planned(step_plan const* plan) noexcept {
    known_step* const k = plan != nullptr ? find(plan->fingerprint()) : nullptr;
    return k != nullptr && k->plan.get() == plan ? k : nullptr;
  }

  /// The kind, which may be new; then the one seen longest ago goes if there are too many. Null for want of memory.
  [[nodiscard]] known_step* enter(std::uint64_t fingerprint, std::uint32_t operations) noexcept {
    if (known_step* const old = find(fingerprint)) return old;
    try {
      std::vector<measured_time> times(operations);
      if (all_.size() >= most_) all_.erase(std::ranges::min_element(all_, {}, &known_step::last_seen));
      all_.push_back({.fingerprint = fingerprint,
                      .followed_by = fingerprint,
                      .times = std::move(times),
                      .program = {},
                      .plan = {},
                      .proof = {}});
    } catch (std::bad_alloc const&) {
      return nullptr;
    }
    return &all_.back();
  }

  /// What comes between a step of the kind and the next one, if steps come as they did the last time: nothing where
  /// they don't come back to it. Null: of no kind.
  struct other_steps {
    std::uint64_t steps = 0, operations = 0;
  };
  [[nodiscard]] other_steps between(known_step const* kind) noexcept {
    other_steps all;
    known_step const* next = kind;
    for (std::size_t k = 0; next != nullptr && k < all_.size(); ++k) {
      next = find(next->followed_by);
      if (next == kind) return all;
      if (next != nullptr) ++all.steps, all.operations += next->times.size();
    }
    return {};
  }

  /// Another plan than `but` that foresees what has been done up to the end of operation i; null where there is none.
  [[nodiscard]] std::shared_ptr<step_plan const> like(std::uint32_t i, std::uint64_t prefix,
                                                      step_plan const* but) const noexcept {
    for (known_step const& k : all_) {
      if (k.plan != nullptr && k.plan.get() != but && i < k.plan->operations() && k.plan->prefix(i) == prefix)
        return k.plan;
    }
    return nullptr;
  }

  /// Of those that have been planned; null where none has.
  [[nodiscard]] known_step* last_seen() noexcept {
    known_step* last = nullptr;
    for (known_step& k : all_) {
      if (k.program != nullptr && (last == nullptr || k.last_seen > last->last_seen)) last = &k;
    }
    return last;
  }
  /// Of those that have plans; null where none has.
  [[nodiscard]] known_step const* most_seen() const noexcept {
    known_step const* most = nullptr;
    for (known_step const& k : all_) {
      if (k.plan != nullptr && (most == nullptr || k.seen > most->seen)) most = &k;
    }
    return most;
  }

 private:
  std::size_t most_;
  std::vector<known_step> all_;
};

}  // namespace gmlake::swap
