#pragma once
/// Lowest offset first, over several orders: each buffer in turn goes to the lowest offset that is free for its whole
/// life, and the order that ends lowest wins. By size first, which is the best on most training steps (TensorFlow
/// Lite's greedy by size: Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference",
/// arXiv 2001.03288). Stops at the height that it is told is enough.

#include <span>
#include <string_view>

#include "gmlake/plan/buffer_order.hpp"
#include "gmlake/plan/packer.hpp"
#include "gmlake/plan/packing.hpp"

namespace gmlake::plan {

struct lowest_offset_options {
  /// Entries looked at before no further order is tried. Where the first order isn't done by then, what is left of it
  /// (the smallest) is swept in above.
  std::uint64_t work = budget::unlimited;
  bytes enough = 0;  ///< a height that needs no further order, for instance the lower bound
};

class lowest_offset {
 public:
  explicit lowest_offset(lowest_offset_options const& options = {}) noexcept : options_(options) {}
  [[nodiscard]] static std::string_view name() noexcept { return "lowest_offset"; }

  /// O(orders · n · what lives during a buffer's life), or as much as the work allows.
  [[nodiscard]] solution pack(problem const& p) const {
    packing now(p);
    budget left(options_.work);
    solution lowest = sized(now, left, placed_set::unbounded);
    improve(now, left, options_.enough, lowest);
    return lowest;
  }

  /// The first order alone, which gives up at the ceiling: then without offsets.
  [[nodiscard]] static solution sized(packing& now, budget& left, bytes ceiling) {
    now.restart();
    buffer_order const in = ordered(now.of(), now.lives(), priority::size);
    std::size_t const placed = now.place_all(in, left, ceiling);
    if (placed != in.size() && !left.spent()) return {};
    return now.result_with(std::span(in).subspan(placed));
  }

  /// The other orders, under the ceiling of what is known.
  static void improve(packing& now, budget& left, bytes enough, solution& lowest) {
    for (priority const by : priorities) {
      if (left.spent() || lowest.height <= enough) return;
      if (by == priority::size) continue;
      now.restart();
      buffer_order const in = ordered(now.of(), now.lives(), by);
      if (now.place_all(in, left, lowest.height - 1) == in.size()) lowest = now.result();
    }
  }

 private:
  lowest_offset_options options_;
};
static_assert(Packer<lowest_offset>);

}  // namespace gmlake::plan
