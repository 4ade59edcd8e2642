#pragma once
/// The packers in turn, from the cheapest on, until one reaches the lower bound, comes near to it where there are many
/// buffers, or the work is spent. What each may do is counted in work, so that the same problem gets the same plan on
/// every machine; the time is a safety net. Keeps the lowest solution, the earlier of equals. Never fails: the cheapest
/// packer always gets to its end.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/plan/best_fit_decreasing.hpp"
#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/exact.hpp"
#include "gmlake/plan/exact_model.hpp"
#include "gmlake/plan/grouped.hpp"
#include "gmlake/plan/large_first.hpp"
#include "gmlake/plan/lifetime_sweep.hpp"
#include "gmlake/plan/lowest_offset.hpp"
#include "gmlake/plan/packer.hpp"
#include "gmlake/plan/priority_search.hpp"
#include "gmlake/plan/stream_bound.hpp"

namespace gmlake::plan {

struct portfolio_options {
  /// Entries looked at in all, 1 to 4 ns each. 0: by the number of buffers: a second or two for a few and for 10^5, ten
  /// for 10^6.
  std::uint64_t work = 0;
  /// A safety net: past it the best so far is returned, which then depends on the machine; the first packing, and what
  /// the others share, is made all the same: some ten seconds for 10^6.
  double seconds = 60;
};

/// What a portfolio found, and how good it can be at best.
struct packed {
  gmlake::plan::solution solution;
  bytes bound = 0;          ///< no solution is lower
  std::string_view packer;  ///< which found it
};

class portfolio {
 public:
  explicit portfolio(portfolio_options const& options = {}) noexcept : options_(options) {}

  /// What is done for so many buffers where no work is given, but for what exact search gets besides.
  [[nodiscard]] static std::uint64_t usual_work(std::size_t buffers) noexcept {
    return least_work + work_per_buffer * buffers;
  }

  /// O(n log n) and the work.
  [[nodiscard]] packed pack(problem const& p) const {
    auto const began = budget::clock::now();
    packed found{lifetime_sweep::pack(p), std::max(lower_bound(p), stream_bound(p)), lifetime_sweep::name()};
    if (found.solution.height > found.bound) pack_thoroughly(p, began, found);
    return found;
  }

 private:
  static constexpr std::uint64_t least_work = 300'000'000;
  static constexpr std::uint64_t work_per_buffer = 1'500;
  /// Of the bound: what is so near to it is good enough once large_first has been tried.
  static constexpr bytes near_share = 500;
  static constexpr std::size_t few = 512;
  // Besides, where there are few enough for exact search.
  static constexpr std::uint64_t large_first_work = 250'000'000;
  static constexpr std::uint64_t exact_work = 100'000'000;

  [[nodiscard]] budget whole_budget(std::size_t buffers, budget::clock::time_point began) const {
    using std::chrono::duration;
    // Beyond a day the sum would not be representable some day.
    duration<double> const time(std::clamp(options_.seconds, 0.0, 86'400.0));
    auto const deadline = began + std::chrono::duration_cast<budget::clock::duration>(time);
    std::uint64_t const usual = usual_work(buffers) + (exact_can(buffers) ? large_first_work + exact_work : 0);
    return budget(options_.work != 0 ? options_.work : usual, deadline);
  }

  [[nodiscard]] static bool exact_can(std::size_t buffers) noexcept { return buffers <= exact_model::most_buffers; }

  void pack_thoroughly(problem const& p, budget::clock::time_point began, packed& found) const {
    budget left = whole_budget(p.buffers.size(), began);
    packing now(p);
    auto const step = [&](std::string_view name, auto&& improve) {
      if (left.spent() || found.solution.height <= found.bound) return;
      bytes const before = found.solution.height;
      improve(found.solution);
      if (found.solution.height < before) found.packer = name;
    };
    step(lowest_offset::name(), [&](solution& best) {
      solution sized = lowest_offset::sized(now, left, best.height - 1);
      if (!sized.offsets.empty() && sized.height < best.height) best = std::move(sized);
    });
    step(grouped::name(), [&](solution& best) { grouped{}.improve(now, left, best); });
    step(lowest_offset::name(), [&](solution& best) { lowest_offset::improve(now, left, found.bound, best); });
    step(best_fit_decreasing::name(), [&](solution& best) { best_fit_decreasing::improve(now, left, best); });
    step(large_first::name(), [&](solution& best) {
      budget some = left.part(large_first_work);
      std::uint64_t const had = some.left();
      large_first::improve(now, some, found.bound, best);
      left.take(had - some.left());
    });
    // For few buffers the last tenths cost next to nothing.
    if (p.buffers.size() > few && found.solution.height <= found.bound + found.bound / near_share) return;
    if (exact_can(p.buffers.size()) && !left.spent() && found.solution.height > found.bound) {
      search_exactly(now, left, found);
    }
    step(priority_search::name(), [&](solution& best) { priority_search{}.improve(now, left, found.bound, best); });
  }

  /// With two thirds of what is left. It may prove that what it finds is the lowest there is.
  static void search_exactly(packing const& now, budget& left, packed& found) {
    std::uint64_t const node = work_per_node(now.lives());
    exact_result r =
        exact_search(now.of(), {.time_limit = left.time_left(), .node_limit = left.left() / 3 * 2 / node}).minimise();
    left.take(r.nodes * node);
    found.bound = std::max(found.bound, std::min(r.bound, found.solution.height));
    if (r.outcome != exact_outcome::found || r.best.height >= found.solution.height) return;
    found.solution = std::move(r.best);
    found.packer = "exact_search";
  }

  portfolio_options options_;
};

}  // namespace gmlake::plan
