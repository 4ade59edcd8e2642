#pragma once
/// Exact packing: fits a problem into a capacity, or finds its least height, with proof. For hundreds of buffers, where
/// the last percent is worth seconds; the time is exponential in the worst case, so every search has a limit and may
/// give up.
///
/// What decides between milliseconds and hours is the static order of the search (exact_fit.hpp), and no order is good
/// for all problems. So several take turns, those of MiniMalloc first, then random ones, each for a number of nodes
/// that the sequence of Luby, Sinclair and Zuckerman ("Optimal speedup of Las Vegas algorithms", 1993) gives. What one
/// has refuted, the others remember. One thread; the same result for the same problem unless a limit cuts it short.

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/exact_fit.hpp"
#include "gmlake/plan/exact_model.hpp"
#include "gmlake/plan/lifespans.hpp"
#include "gmlake/plan/problem.hpp"
#include "gmlake/plan/validate.hpp"

namespace gmlake::plan {

struct exact_options {
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);        ///< overrun by some thousand nodes at most
  std::uint64_t node_limit = std::numeric_limits<std::uint64_t>::max();  ///< placements tried
  /// What an order gets at a time. Random ones on MiniMalloc's inputs: 8 to 32 thousand are best.
  std::uint64_t nodes_a_turn = 16384;
};

enum class exact_outcome : std::uint8_t {
  found,       ///< a solution
  infeasible,  ///< there is none: none within the capacity, or the fixed buffers collide
  gave_up,     ///< a limit came first
  invalid,     ///< the problem breaks a rule (validate.hpp)
  too_large,   ///< more than `exact_model::most_buffers`, or lengths of more than `most_units`
};

struct exact_result {
  exact_outcome outcome = exact_outcome::gave_up;
  solution best;        ///< where one was found
  bool proven = false;  ///< found: nothing is lower; infeasible: always
  bytes bound = 0;      ///< no solution is lower
  std::uint64_t nodes = 0;
};

class exact_search {
 public:
  /// O(n²). Refers to `p`, which outlives it.
  explicit exact_search(problem const& p, exact_options const& o = {}) : problem_(&p), options_(o) {
    if (validate(p)) {
      refused_ = exact_outcome::invalid;
    } else if (p.buffers.size() > exact_model::most_buffers) {
      refused_ = exact_outcome::too_large;
    } else {
      model_.emplace(p);
      bound_ = lower_bound(p) / model_->unit();
      can_stack_ = stacked(p) / model_->unit() < exact_model::most_units;
      if (bound_ >= exact_model::most_units) refused_ = exact_outcome::too_large;
    }
  }

  /// A solution of at most that height. Throws nothing but std::bad_alloc; uses 8 MiB and O(n²).
  [[nodiscard]] exact_result fit(bytes capacity) {
    if (refused_) return refusal();
    run r(*this);
    bytes const units = std::min(capacity / model_->unit(), exact_model::most_units - 1);
    if (units < bound_) return r.finish(exact_outcome::infeasible, bound_);
    for (std::uint64_t turn = 0;; ++turn) {
      fit_outcome const f = r.attempt(units, turn, options_.nodes_a_turn * luby(turn + 1));
      if (f == fit_outcome::fits) return r.finish(exact_outcome::found, bound_);
      if (f == fit_outcome::never_fits) {
        bool const all = can_stack_ || units == capacity / model_->unit();
        return r.finish(all ? exact_outcome::infeasible : exact_outcome::too_large, units + 1);
      }
      if (r.out_of_limits()) return r.finish(exact_outcome::gave_up, bound_);
    }
  }

  /// The lowest solution there is; or the lowest found, when a limit comes before the proof. Tries the bound, the best
  /// so far less one unit, and the middle in turn. Otherwise as `fit`.
  [[nodiscard]] exact_result minimise() {
    if (refused_) return refusal();
    run r(*this);
    bytes low = bound_;  // nothing lower fits
    bytes high = low;
    for (std::uint64_t turn = 0; !r.best(); ++turn) {  // any solution at all
      fit_outcome const f = r.attempt(high, turn, nodes_a_dive);
      if (f == fit_outcome::never_fits) low = high + 1;
      if (f == fit_outcome::never_fits && high == exact_model::most_units - 1) {
        return r.finish(can_stack_ ? exact_outcome::infeasible : exact_outcome::too_large, low);
      }
      if (f != fit_outcome::fits && r.out_of_limits()) return r.finish(exact_outcome::gave_up, low);
      high = std::min(high + high / 8 + 1, exact_model::most_units - 1);
    }
    for (std::uint64_t turn = 0;; ++turn) {
      high = *r.best();
      if (low >= high) return r.finish(exact_outcome::found, low);
      if (r.out_of_limits()) return r.finish(exact_outcome::found, low);
      std::array const targets{low, low + (high - 1 - low) / 2, high - 1};
      bytes const target = targets[turn % targets.size()];
      std::uint64_t const round = turn / targets.size();
      if (r.attempt(target, round, options_.nodes_a_turn * luby(round + 1)) == fit_outcome::never_fits)
        low = target + 1;
    }
  }

 private:
  /// An end that suffices for all, one on the other, above those that are fixed; as much as can be said, if it
  /// overflows.
  [[nodiscard]] static bytes stacked(problem const& p) noexcept {
    constexpr bytes most = std::numeric_limits<bytes>::max();
    bytes end = 0, sum = 0;
    for (buffer const& b : p.buffers) {
      bytes const padded = b.fixed ? 0 : b.size > most - b.alignment ? most : b.size + b.alignment;
      sum = padded > most - sum ? most : sum + padded;
      if (b.fixed) end = std::max(end, b.size > most - *b.fixed ? most : *b.fixed + b.size);
    }
    return end > most - sum ? most : end + sum;
  }

  static constexpr std::uint64_t nodes_a_dive = 4096;  // where there is room, a solution is found without turning back

  /// What buffers are ordered by, greatest first.
  enum class criterion : std::uint8_t { none, area, length, load, sections };
  struct preorder {
    std::array<criterion, 3> by;
    bool random;  ///< all but the load times 0.5 to 1.5, by buffer and turn
  };
  static constexpr std::array preorders = {
      preorder{{criterion::length, criterion::area, criterion::load}, false},
      preorder{{criterion::load, criterion::area, criterion::length}, false},
      preorder{{criterion::load, criterion::length, criterion::area}, false},
      preorder{{criterion::area, criterion::length, criterion::none}, false},
      preorder{{criterion::sections, criterion::load, criterion::area}, false},
      preorder{{criterion::area, criterion::none, criterion::none}, true},
      preorder{{criterion::sections, criterion::none, criterion::none}, true},
      preorder{{criterion::load, criterion::length, criterion::none}, true},
      preorder{{criterion::load, criterion::area, criterion::none}, true},
  };

  /// 1, 1, 2, 1, 1, 2, 4, 1, ... from i = 1.
  [[nodiscard]] static constexpr std::uint64_t luby(std::uint64_t i) noexcept {
    while (!std::has_single_bit(i + 1)) i -= std::bit_floor(i) - 1;
    return (i + 1) / 2;
  }

  [[nodiscard]] exact_result refusal() const {
    exact_result r;
    r.outcome = *refused_;
    return r;
  }

  [[nodiscard]] double measure(std::size_t i, criterion by) const {
    buffer const& b = problem_->buffers[i];
    exact_model::item const& x = (*model_)[i];
    switch (by) {
      case criterion::none: return 0;
      case criterion::area: return static_cast<double>(x.size) * static_cast<double>(b.upper - b.lower);
      case criterion::length: return static_cast<double>(b.upper - b.lower);
      case criterion::sections:
        return static_cast<double>(x.sections[0].upper - x.sections[0].lower) +
               static_cast<double>(x.sections[1].upper - x.sections[1].lower);
      case criterion::load: break;
    }
    std::uint64_t most = 0;
    for (span const s : x.sections) {
      for (std::uint32_t k = s.lower; k < s.upper; ++k) most = std::max(most, model_->load(k));
    }
    return static_cast<double>(most);
  }

  [[nodiscard]] std::vector<std::uint32_t> order(std::uint64_t turn) const {
    preorder const& kind = preorders[turn % preorders.size()];
    std::vector<std::array<double, 3>> keys(model_->size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::uint64_t const drawn = exact_memory::mix(exact_memory::mix(turn + 1) + i);
      double const factor = kind.random ? 0.5 + static_cast<double>(drawn >> 11) / static_cast<double>(1ull << 53) : 1;
      for (std::size_t k = 0; k < keys[i].size(); ++k) {
        keys[i][k] = -measure(i, kind.by[k]) * (kind.by[k] == criterion::load ? 1 : factor);
      }
    }
    std::vector<std::uint32_t> o(model_->size());
    std::iota(o.begin(), o.end(), 0u);
    std::ranges::sort(o, {}, [&](std::uint32_t i) {
      buffer const& b = problem_->buffers[i];
      return std::tuple(keys[i], b.lower, b.upper, b.size, i);
    });
    return o;
  }

  /// One search: its clock, its nodes, the best so far.
  class run {
   public:
    explicit run(exact_search const& s) : search_(&s), started_(std::chrono::steady_clock::now()) {
      // A node is linear in the buffers at least.
      nodes_a_look_ = std::clamp<std::uint64_t>((std::uint64_t{1} << 20) / (s.model_->size() + 1), 64, 4096);
    }

    /// The best height in units.
    [[nodiscard]] std::optional<bytes> best() const {
      if (!found_) return std::nullopt;
      return result_.best.height / search_->model_->unit();
    }

    [[nodiscard]] bool out_of_limits() const {
      return result_.nodes >= search_->options_.node_limit ||
             std::chrono::steady_clock::now() - started_ >= search_->options_.time_limit;
    }

    /// Keeps what it finds.
    [[nodiscard]] fit_outcome attempt(bytes units, std::uint64_t turn, std::uint64_t nodes) {
      problem const& p = *search_->problem_;
      exact_model const& m = *search_->model_;
      exact_fit f(p, m, memory_, search_->order(turn), static_cast<std::uint32_t>(units));
      fit_outcome outcome = fit_outcome::undecided;
      while (outcome == fit_outcome::undecided && f.nodes() < nodes && !out_of_limits()) {
        std::uint64_t const before = f.nodes();
        std::uint64_t const left = std::min(nodes - before, search_->options_.node_limit - result_.nodes);
        outcome = f.run(std::min(nodes_a_look_, left));
        result_.nodes += f.nodes() - before;
      }
      if (outcome != fit_outcome::fits) return outcome;
      solution& best = result_.best;
      best = {};
      found_ = true;
      for (std::uint32_t const offset : f.offsets()) best.offsets.push_back(offset * m.unit());
      for (std::size_t i = 0; i < p.buffers.size(); ++i) {
        best.height = std::max(best.height, best.offsets[i] + p.buffers[i].size);
      }
      return outcome;
    }

    /// `bound` in units.
    [[nodiscard]] exact_result finish(exact_outcome outcome, bytes bound) {
      result_.outcome = outcome;
      result_.bound = bound * search_->model_->unit();
      result_.proven = outcome == exact_outcome::infeasible ||
                       (outcome == exact_outcome::found && result_.best.height <= result_.bound);
      return std::move(result_);
    }

   private:
    exact_search const* search_;
    std::chrono::steady_clock::time_point started_;
    std::uint64_t nodes_a_look_;
    exact_memory memory_;
    exact_result result_;
    bool found_ = false;  ///< result_.best is a solution
  };

  problem const* problem_;
  exact_options options_;
  std::optional<exact_model> model_;
  bytes bound_ = 0;        ///< in units
  bool can_stack_ = true;  ///< there is a solution within the lengths known here, unless fixed buffers collide
  std::optional<exact_outcome> refused_;
};

/// A node of exact search against an entry, as measured: linear in the buffers, and quadratic in how many others one
/// of them meets at the average. O(n log n).
[[nodiscard]] inline std::uint64_t work_per_node(lifespans const& lives) {
  std::vector<std::uint32_t> births;
  for (std::size_t i = 0; i < lives.size(); ++i) births.push_back(lives.own(i)[0].lower);
  std::ranges::sort(births);
  auto const before = [&](std::uint32_t rank) {
    return static_cast<std::uint64_t>(std::ranges::lower_bound(births, rank) - births.begin());
  };
  std::uint64_t met = 0;  // each pair once, at the later birth
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (span const s : lives.own(i)) met += before(s.upper) - before(s.lower);
  }
  std::uint64_t const mean = 2 * met / std::max<std::size_t>(lives.size(), 1);
  return 12 * lives.size() + mean * mean / 20 + 1;
}

}  // namespace gmlake::plan
