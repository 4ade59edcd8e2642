#pragma once
/// smartpool: a model of SmartPool, without its swapping, to compare with (Zhang et al.: "Efficient Memory Management
/// for GPU-based Deep Learning Systems", arXiv 1903.06631, and `SmartMemPool` in its authors' fork of Apache SINGA).
///
/// Requests are served by PyTorch's native rules while they and their frees are recorded. When an iteration comes twice
/// alike, its buffers get offsets, best fit by decreasing size, in one piece of memory, which is created after the
/// cached memory has been released. From then on the k-th request of an iteration gets the k-th place if its size is
/// the one planned and the place is free, and falls back otherwise. There is one plan for good.
///
///     | crossing | the same again | buffers that are freed within their iteration |     crossing: freed in the next
///     0           height           2 height
///
/// As the authors do, crossing buffers lie apart and have a second place, and streams don't matter: several need to be
/// kept in order by their user. Simplified, each in its favour: iterations are found by this library's finder, or where
/// they are marked, which also sets the place back to the first; only requests are counted for the place, not frees;
/// requests have to repeat, not their frees. Added: a place that another block still uses is never handed out.

#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/backend/simulated.hpp"
#include "gmlake/plan/best_fit_decreasing.hpp"
#include "gmlake/plan/period_finder.hpp"
#include "gmlake/plan/step_log.hpp"
#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/pool/presets/pytorch_rules.hpp"
#include "gmlake/pool/presets/static_pool.hpp"

namespace gmlake {

struct smartpool_options {
  /// Physical memory that the pool may hold, in bytes.
  bytes limit = std::numeric_limits<bytes>::max();
};

template <PhysicalBackend Backend>
class smartpool {
 public:
  explicit smartpool(Backend backend, smartpool_options const& o = {}) noexcept
      : memory_(std::move(backend), o.limit) {}
  smartpool(smartpool const&) = delete;
  smartpool& operator=(smartpool const&) = delete;

  /// A block of n bytes, aligned to 512. Errors: those of `pytorch_pool`.
  [[nodiscard]] result<address> allocate(bytes n, stream s) noexcept {
    if (n > pytorch_rules::largest_request) return failure(errc::invalid_argument, "allocate");
    bytes const size = pytorch_rules::block_size(n);
    std::lock_guard const lock(mutex_);
    if (places_.empty()) learn();
    if (!places_.empty()) {
      if (address const at = planned(size, n); at != address{}) return at;
      return memory_.fall_back(n, s);
    }
    auto at = memory_.fall_back(n, s);
    if (at) record(*at, size);
    return at;
  }

  /// Takes a block back. Never calls the backend. Errors: `unknown_pointer`, `double_free`.
  [[nodiscard]] result<void> deallocate(address a) noexcept {
    std::lock_guard const lock(mutex_);
    result<void> const done = memory_.deallocate(a);
    if (!done || !places_.empty()) return done;
    if (auto const known = numbers_.find(a); known != numbers_.end()) {
      log_.freed(known->second.number, known->second.size);
      numbers_.erase(known);
    }
    return done;
  }

  /// An iteration begins with the next request. Found without that too.
  void mark_step() noexcept {
    std::lock_guard const lock(mutex_);
    marked_ = true;
    finder_.mark_step();
    next_ = 0;
  }

  [[nodiscard]] pool_stats stats() const noexcept {
    std::lock_guard const lock(mutex_);
    return memory_.stats();
  }
  [[nodiscard]] static_plan_stats plans_seen() const noexcept {
    std::lock_guard const lock(mutex_);
    return seen_;
  }
  /// By the host's clock, within the request that it was for.
  [[nodiscard]] std::chrono::nanoseconds planning_time() const noexcept {
    std::lock_guard const lock(mutex_);
    return planning_;
  }

  /// For what the pool has no words for, such as reading a block; not to be called while another thread uses the pool.
  [[nodiscard]] Backend& backend() noexcept { return memory_.backend(); }

 private:
  /// A shorter repetition, in requests and frees, is no iteration (`Detection`).
  static constexpr plan::instant shortest_iteration = 100;
  /// Unmarked, two iterations make up this share of all that came before: loops within one don't.
  static constexpr std::uint64_t least_share = 4;

  struct place {
    bytes size = 0;
    bytes offset = 0;
    bool crossing = false;
  };
  struct logged {
    std::uint64_t number;
    bytes size;
  };

  // ---- following

  [[nodiscard]] address planned(bytes size, bytes requested) noexcept {
    if (next_ == places_.size()) {
      if (marked_) return ++seen_.astray, address{};
      next_ = 0;
    }
    place const& p = places_[next_++];
    if (p.size != size) return ++seen_.astray, address{};
    address at = memory_.take(p.offset, size, requested);
    if (at == address{} && p.crossing) at = memory_.take(p.offset + crossing_height_, size, requested);
    ++(at != address{} ? seen_.placed : seen_.displaced);
    return at;
  }

  // ---- learning

  void record(address at, bytes size) noexcept {
    try {
      numbers_.insert_or_assign(at, logged{log_.allocated(size, 0), size});
    } catch (std::bad_alloc const&) {
      refused_ = true;
    }
  }

  void learn() noexcept {
    if (refused_) return;
    auto const found = finder_.next(log_);
    if (!found || !came_twice(*found)) return;
    auto const begin = std::chrono::steady_clock::now();
    std::uint64_t const length = found->last - found->first;
    try {
      // Of the earlier of the two it is known what of it was freed in the next.
      make_plan(log_.step(found->first - length, found->first), log_.period(found->first - length, found->first));
      numbers_ = {};
      log_ = plan::step_log{};
      finder_.clear();
    } catch (std::bad_alloc const&) {
      places_.clear();
    }
    planning_ += std::chrono::steady_clock::now() - begin;
    if (!places_.empty() && !memory_.make_region(height_)) places_.clear();
    refused_ = places_.empty();  // there is no second try
    seen_.made = refused_ ? 0 : 1;
    next_ = 0;
  }

  [[nodiscard]] bool came_twice(plan::found_step const& s) const noexcept {
    std::uint64_t const length = s.last - s.first;
    if (s.first - log_.first() < length) return false;
    if (log_.fingerprint(s.first - length, s.first) != s.fingerprint) return false;
    if (log_.period(s.first, s.last) <= shortest_iteration) return false;
    return marked_ || 2 * length >= (log_.end() - log_.first()) / least_share;
  }

  void make_plan(std::vector<plan::step_request> const& step, plan::instant period) {
    plan::problem crossing, within;
    for (plan::step_request const& r : step) {
      bool const crosses = r.death == plan::step_request::stays || r.death > period;
      (crosses ? crossing : within)
          .buffers.push_back({.lower = r.birth, .upper = crosses ? period : r.death, .size = r.size, .fixed = {}});
    }
    plan::solution const apart = plan::best_fit_decreasing{}.pack(crossing);
    plan::solution const main = plan::best_fit_decreasing{}.pack(within);
    crossing_height_ = apart.height;
    height_ = 2 * apart.height + main.height;
    std::size_t crossed = 0, stayed = 0;
    for (plan::step_request const& r : step) {
      bool const crosses = r.death == plan::step_request::stays || r.death > period;
      bytes const offset = crosses ? apart.offsets[crossed++] : 2 * apart.height + main.offsets[stayed++];
      places_.push_back({r.size, offset, crosses});
    }
  }

  mutable std::mutex mutex_;  ///< over everything below
  static_pool<Backend> memory_;
  plan::step_log log_;
  plan::period_finder finder_;
  std::unordered_map<address, logged> numbers_;  ///< of live blocks, while learning
  std::vector<place> places_;                    ///< in the order of requests; empty: there is no plan
  std::size_t next_ = 0;
  bytes crossing_height_ = 0;
  bytes height_ = 0;
  bool marked_ = false;
  bool refused_ = false;  ///< there will be no plan
  static_plan_stats seen_;
  std::chrono::nanoseconds planning_{0};
};
static_assert(Pool<smartpool<simulated>>);

}  // namespace gmlake
