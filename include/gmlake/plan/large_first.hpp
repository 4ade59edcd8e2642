#pragma once
/// Exact search for the large buffers alone, and the small ones into the gaps that are left. In a training step a few
/// sizes make up nearly all of the memory, and are multiples of one another; the many small ones in between only keep
/// an exact search from its end. The large are not packed to the bound but to a little above it, which leaves the small
/// their place and the search its freedom.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/exact.hpp"
#include "gmlake/plan/lifetime_sweep.hpp"
#include "gmlake/plan/packer.hpp"
#include "gmlake/plan/packing.hpp"

namespace gmlake::plan {

struct large_first_options {
  std::uint64_t work = 200'000'000;  ///< entries looked at, or what a node of the search takes instead
};

class large_first {
 public:
  explicit large_first(large_first_options const& options = {}) noexcept : options_(options) {}
  [[nodiscard]] static std::string_view name() noexcept { return "large_first"; }

  /// As much as the work allows. Where the search comes to nothing: swept.
  [[nodiscard]] solution pack(problem const& p) const {
    packing now(p);
    budget left(options_.work);
    solution best = lifetime_sweep::pack(p);
    improve(now, left, lower_bound(p), best);
    return best;
  }

  /// Improves `best`, a valid solution, unless it is as near to the bound as this would come.
  static void improve(packing& now, budget& left, bytes bound, solution& best) {
    problem const& p = now.of();
    bytes const target = bound + bound / height_share;
    if (best.height <= target) return;
    bytes const small = largest_small(p, bound / small_share);
    problem large{.buffers = {}, .period = p.period, .stream_gap = p.stream_gap};
    std::vector<std::uint32_t> which;
    for (std::size_t i = 0; i < p.buffers.size(); ++i) {
      if (p.buffers[i].size <= small && !p.buffers[i].fixed) continue;
      large.buffers.push_back(p.buffers[i]);
      which.push_back(static_cast<std::uint32_t>(i));
    }
    if (which.size() > exact_model::most_buffers) return;
    std::uint64_t const node = work_per_node(lifespans(large));
    // An order that leads to a solution mostly leads straight there; another one is better tried soon.
    exact_result const found =
        exact_search(
            large, {.time_limit = left.time_left(), .node_limit = left.left() / node, .nodes_a_turn = 2 * which.size()})
            .fit(target);
    left.take(found.nodes * node);
    if (found.outcome != exact_outcome::found) return;
    now.restart();
    for (std::size_t k = 0; k < which.size(); ++k) {
      if (!p.buffers[which[k]].fixed) now.place(which[k], found.best.offsets[k]);
    }
    buffer_order rest = ordered(p, now.lives(), priority::size);
    std::erase_if(rest, [&](std::uint32_t i) { return p.buffers[i].size > small; });
    std::size_t const placed = now.place_all(rest, left);
    solution packed = now.result_with(std::span(rest).subspan(placed));
    if (packed.height < best.height) best = std::move(packed);
  }

 private:
  /// Of the bound: by so much the large may end above it.
  static constexpr bytes height_share = 1000;
  /// Of the bound: so much the small may take.
  static constexpr bytes small_share = 500;

  /// The largest size such that all up to it never take more than `most` at once; 0: none. O(n log² n).
  [[nodiscard]] static bytes largest_small(problem const& p, bytes most) {
    std::vector<bytes> sizes;
    sizes.reserve(p.buffers.size());
    for (buffer const& b : p.buffers) sizes.push_back(b.size);
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    auto const above = std::ranges::partition_point(sizes, [&](bytes size) {
      problem all{.buffers = {}, .period = p.period, .stream_gap = p.stream_gap};
      for (buffer const& b : p.buffers) {
        if (b.size <= size && !b.fixed) all.buffers.push_back(b);
      }
      return lower_bound(all) <= most;
    });
    return above == sizes.begin() ? 0 : *std::prev(above);
  }

  large_first_options options_;
};
static_assert(Packer<large_first>);

}  // namespace gmlake::plan
