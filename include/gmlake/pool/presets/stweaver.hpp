#pragma once
/// stweaver: a model of STWeaver, now STAlloc, to compare with (Huang et al.: "Reducing GPU Memory Fragmentation via
/// Spatio-Temporal Planning for Efficient Large-Scale Model Training", arXiv 2507.16274, and its authors' code).
///
/// A run is profiled beforehand (stweaver_plan.hpp): its beginning and one iteration are planned into one piece of
/// memory, which is there before the first request. The k-th request of a size in an iteration gets the place of the
/// k-th planned. One of a size, or so many of it, that the iteration didn't have is dynamic: it gets the smallest gap
/// of planned memory that is free now and that the plan leaves alone for as long as the request in the same place lived
/// in the profile. What neither serves falls back to PyTorch's native rules.
///
/// As in the authors' code, nothing in use is handed out again, and streams don't matter: several need to be kept in
/// order by their user. Simplified: which request is dynamic, and how long it lives, is told by its size and place in
/// the iteration, where the authors' hooks in the framework know its layer; so the profiled iteration's own dynamic
/// requests are planned too. Static requests are matched by size, so that one too many doesn't shift all that follow;
/// those up to 512 bytes have no pool of their own.

#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/backend/simulated.hpp"
#include "gmlake/plan/plan.hpp"
#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/pool/presets/pytorch_rules.hpp"
#include "gmlake/pool/presets/static_pool.hpp"
#include "gmlake/pool/presets/stweaver_schedule.hpp"

namespace gmlake {

struct stweaver_options {
  /// Physical memory that the pool may hold, in bytes.
  bytes limit = std::numeric_limits<bytes>::max();
  /// What `make_stweaver_plans` gives: what comes before the iteration, and the iteration. Empty: all falls back.
  std::vector<plan::plan> plans{};
  /// By how many marks of iterations the planned one begins, if there are marks; otherwise requests are counted.
  std::size_t first_mark = 2;
};

template <PhysicalBackend Backend>
class stweaver {
 public:
  explicit stweaver(Backend backend, stweaver_options o = {}) noexcept
      : memory_(std::move(backend), o.limit), first_mark_(o.first_mark) {
    if (o.plans.size() != 2) return;
    bytes const height = o.plans[1].height;
    try {
      before_ = stweaver_schedule(std::move(o.plans[0]));
      iteration_ = stweaver_schedule(std::move(o.plans[1]));
    } catch (std::bad_alloc const&) {
      return;
    }
    seen_.made = memory_.make_region(height) ? 1 : 0;
  }
  stweaver(stweaver const&) = delete;
  stweaver& operator=(stweaver const&) = delete;

  /// A block of n bytes, aligned to 512. Linear in the live blocks for a dynamic request. Errors: those of
  /// `pytorch_pool`.
  [[nodiscard]] result<address> allocate(bytes n, stream s) noexcept {
    if (n > pytorch_rules::largest_request) return failure(errc::invalid_argument, "allocate");
    bytes const size = pytorch_rules::block_size(n);
    std::lock_guard const lock(mutex_);
    if (seen_.made != 0) {
      if (address const at = from_region(size, n); at != address{}) return at;
    }
    return memory_.fall_back(n, s);
  }

  /// Takes a block back. Never calls the backend. Errors: `unknown_pointer`, `double_free`.
  [[nodiscard]] result<void> deallocate(address a) noexcept {
    std::lock_guard const lock(mutex_);
    return memory_.deallocate(a);
  }

  /// An iteration begins with the next request. Without that, the plan's own number of requests tells.
  void mark_step() noexcept {
    std::lock_guard const lock(mutex_);
    ++marks_;
    if (repeats_) iteration_.restart();
    else repeats_ = marks_ >= first_mark_;
  }

  [[nodiscard]] pool_stats stats() const noexcept {
    std::lock_guard const lock(mutex_);
    return memory_.stats();
  }
  [[nodiscard]] static_plan_stats plans_seen() const noexcept {
    std::lock_guard const lock(mutex_);
    return seen_;
  }

  /// For what the pool has no words for, such as reading a block; not to be called while another thread uses the pool.
  [[nodiscard]] Backend& backend() noexcept { return memory_.backend(); }

 private:
  [[nodiscard]] address from_region(bytes size, bytes requested) noexcept {
    if (!repeats_ && before_.at_end()) repeats_ = true;
    else if (repeats_ && marks_ == 0 && iteration_.at_end()) iteration_.restart();
    stweaver_schedule& now = repeats_ ? iteration_ : before_;
    plan::step_request const* meant = now.pass(size);
    if (meant != nullptr && meant->offset != plan::step_request::nowhere) {
      address const at = memory_.take(meant->offset, size, requested);
      ++(at != address{} ? seen_.placed : seen_.displaced);
      return at;
    }
    plan::step_request const* const place = now.in_place();
    if (meant == nullptr) meant = place;
    address const at = meant == nullptr || place == nullptr || meant->death == plan::step_request::stays
                           ? address{}
                           : squeezed(place->birth, meant->death - meant->birth, size, requested);
    ++(at != address{} ? seen_.squeezed : seen_.astray);
    return at;
  }

  /// The smallest gap that is free now and not planned for as long, counted in events from the plan's `now` on.
  [[nodiscard]] address squeezed(plan::instant now, plan::instant life, bytes size, bytes requested) noexcept {
    try {
      stweaver_schedule const& current = repeats_ ? iteration_ : before_;
      plan::instant const end = current.plan().period;
      kept_.clear();
      // The request planned here it stands in for.
      current.add_planned(now + 1, now + life, kept_);
      // What is left of its life falls into the iteration that comes.
      if (now + life > end) iteration_.add_planned(0, now + life - end, kept_);
      auto const offset = memory_.region().best_gap(size, kept_);
      return offset ? memory_.take(*offset, size, requested) : address{};
    } catch (std::bad_alloc const&) {
      return {};
    }
  }

  mutable std::mutex mutex_;  ///< over everything below
  static_pool<Backend> memory_;
  stweaver_schedule before_;
  stweaver_schedule iteration_;
  std::size_t first_mark_;
  std::size_t marks_ = 0;
  bool repeats_ = false;  ///< the iteration's plan is gone by
  static_plan_stats seen_;
  std::vector<static_region::stretch> kept_;  ///< for `squeezed` alone
};
static_assert(Pool<stweaver<simulated>>);

}  // namespace gmlake
