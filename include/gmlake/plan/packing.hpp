#pragma once
/// A packing under way: buffers are placed one after another, at the offset that a rule names, the fixed ones before
/// all. Can be begun again for the same problem without allocating anew, which is what makes thousands of tries cheap.
///
/// Invariant: what is placed conflicts with nothing that is placed.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gmlake/plan/budget.hpp"
#include "gmlake/plan/buffer_order.hpp"
#include "gmlake/plan/lifespans.hpp"
#include "gmlake/plan/lifetime_sweep.hpp"
#include "gmlake/plan/placed_set.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// Where in its gaps a buffer is placed.
enum class fit_rule : std::uint8_t { lowest, best };

class packing {
 public:
  /// O(n log n). Refers to the problem, which outlives it.
  explicit packing(problem const& p) : problem_(&p), lives_(p), placed_(p, lives_), offsets_(p.buffers.size()) {
    for (std::size_t i = 0; i < p.buffers.size(); ++i) {
      if (p.buffers[i].fixed) fixed_.push_back(static_cast<std::uint32_t>(i));
    }
    restart();
  }
  packing(packing const&) = delete;
  packing& operator=(packing const&) = delete;

  /// Takes out all but the fixed buffers.
  void restart() {
    placed_.clear();
    height_ = 0;
    for (std::uint32_t const i : fixed_) place(i, *problem_->buffers[i].fixed);
  }

  void place(std::uint32_t i, bytes offset) {
    placed_.insert(i, offset);
    offsets_[i] = offset;
    height_ = std::max(height_, offset + problem_->buffers[i].size);
  }

  /// Places in that order until a buffer would end above `ceiling` or the budget is spent; gives how many it placed.
  std::size_t place_all(std::span<std::uint32_t const> in, budget& left, bytes ceiling = placed_set::unbounded,
                        fit_rule rule = fit_rule::lowest) {
    for (std::size_t k = 0; k < in.size(); ++k) {
      std::uint64_t const before = placed_.work();
      bytes const at = rule == fit_rule::lowest ? placed_.lowest(in[k]) : placed_.best_fit(in[k]);
      if (at + problem_->buffers[in[k]].size > ceiling) {
        left.take(placed_.work() - before);
        return k;
      }
      place(in[k], at);
      if (!left.take(placed_.work() - before)) return k + 1;
    }
    return in.size();
  }

  [[nodiscard]] problem const& of() const noexcept { return *problem_; }
  [[nodiscard]] lifespans const& lives() const noexcept { return lives_; }
  [[nodiscard]] placed_set& placed() noexcept { return placed_; }
  [[nodiscard]] bytes height() const noexcept { return height_; }
  [[nodiscard]] solution result() const { return {offsets_, height_}; }

  /// What is placed, with the rest swept in above it. O(rest · log rest).
  [[nodiscard]] solution result_with(std::span<std::uint32_t const> rest) const {
    solution s = result();
    lifetime_sweep::place(*problem_, rest, height_, s);
    return s;
  }

 private:
  problem const* problem_;
  lifespans lives_;
  placed_set placed_;
  std::vector<bytes> offsets_;
  std::vector<std::uint32_t> fixed_;
  bytes height_ = 0;
};

}  // namespace gmlake::plan
