#pragma once
/// The packers in turn, from the cheapest on, until one reaches the lower bound or the work is spent. What each may do
/// is counted in work, so that the same problem gets the same plan on every machine; the time is a safety net. Keeps
/// the lowest solution, the earlier of equals. Never fails: the cheapest packer always gets to its end.

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
  static constexpr std::uint64_t exact_work = 400'000'000;  // besides, where exact search is tried

  [[nodiscard]] budget whole_budget(std::size_t buffers, budget::clock::time_point began) const {
    using std::chrono::duration;
    // Beyond a day the sum would not be representable some day.
    duration<double> const time(std::clamp(options_.seconds, 0.0, 86'400.0));
    auto const deadline = began + std::chrono::duration_cast<budget::clock::duration>(time);
    std::uint64_t const usual = least_work + work_per_buffer * buffers + (exact_can(buffers) ? exact_work : 0);
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

  /// A node of exact search against an entry, as measured: linear in the buffers, and quadratic in how many others one
  /// of them meets at the average. O(n log n).
  [[nodiscard]] static std::uint64_t work_per_node(lifespans const& lives) {
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

  portfolio_options options_;
};

}  // namespace gmlake::plan
