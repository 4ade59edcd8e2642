#pragma once
/// Best fit by decreasing size: each buffer, the largest first, goes into the smallest gap between those that live at
/// some time with it (SmartPool: Zhang et al., "Efficient Memory Management for GPU-based Deep Learning Systems",
/// arXiv 1903.06631, section 4). Never looks ahead and never moves what is placed.

#include <span>
#include <string_view>

#include "gmlake/plan/buffer_order.hpp"
#include "gmlake/plan/packer.hpp"
#include "gmlake/plan/packing.hpp"

namespace gmlake::plan {

struct best_fit_decreasing_options {
  /// Entries looked at before the rest (the smallest) is swept in above.
  std::uint64_t work = budget::unlimited;
};

class best_fit_decreasing {
 public:
  explicit best_fit_decreasing(best_fit_decreasing_options const& options = {}) noexcept : options_(options) {}
  [[nodiscard]] static std::string_view name() noexcept { return "best_fit_decreasing"; }

  /// O(n · what lives during a buffer's life), or as much as the work allows.
  [[nodiscard]] solution pack(problem const& p) const {
    packing now(p);
    budget left(options_.work);
    buffer_order const in = ordered(p, now.lives(), priority::size);
    std::size_t const placed = now.place_all(in, left, placed_set::unbounded, fit_rule::best);
    return now.result_with(std::span(in).subspan(placed));
  }

  /// Puts a lower packing into `lowest` if it finds one within the budget.
  static void improve(packing& now, budget& left, solution& lowest) {
    now.restart();
    buffer_order const in = ordered(now.of(), now.lives(), priority::size);
    if (now.place_all(in, left, lowest.height - 1, fit_rule::best) == in.size()) lowest = now.result();
  }

 private:
  best_fit_decreasing_options options_;
};
static_assert(Packer<best_fit_decreasing>);

}  // namespace gmlake::plan
