#pragma once
/// Groups of buffers alike in time and size, in layers, after STWeaver (Huang et al., arXiv 2507.16274, section 5;
/// STAlloc in its later version). A group has one phase of birth, one phase of death, one size (and one stream, where
/// streams matter); it becomes rows of buffers with disjoint lives, and each row goes as one to the lowest offset that
/// is free for all of it. Groups that span phases come first, then those within one, the larger before the smaller;
/// what fits into time gaps of larger groups goes there instead.
///
///     row      [==]   [=====][==]    [===]      one size, one offset
///
/// Departs from the paper: phases come from time, not from the framework, and there is no fusion of groups.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "gmlake/plan/packer.hpp"
#include "gmlake/plan/packing.hpp"

namespace gmlake::plan {

struct grouped_options {
  std::vector<instant> boundaries{};  ///< rising: where phases begin but the first
  unsigned parts = 0;  ///< equal parts of time as phases; 0: two, split at the peak. Where no boundaries are given
  /// Entries looked at before the rest is swept in above.
  std::uint64_t work = budget::unlimited;
};

/// The instant at which the most bytes live, the first such; 0 where there are no buffers. O(n log n).
[[nodiscard]] inline instant peak_instant(problem const& p) {
  std::vector<std::pair<instant, std::ptrdiff_t>> changes;
  changes.reserve(2 * p.buffers.size());
  for (buffer const& b : p.buffers) {
    bool const wraps = p.period != 0 && b.upper > p.period;
    auto const size = static_cast<std::ptrdiff_t>(b.size);
    changes.insert(changes.end(), {{b.lower, size}, {wraps ? b.upper - p.period : b.upper, -size}});
    if (wraps) changes.emplace_back(0, size);
  }
  std::ranges::sort(changes);  // at one instant deaths, being negative, first
  instant at = 0;
  std::ptrdiff_t most = 0;
  std::ptrdiff_t live = 0;
  for (auto const& [when, change] : changes) {
    live += change;
    if (live > most) most = live, at = when;
  }
  return at;
}

class grouped {
 public:
  explicit grouped(grouped_options options = {}) : options_(std::move(options)) {}
  [[nodiscard]] static std::string_view name() noexcept { return "grouped"; }

  /// O(n · what lives during a buffer's life), or as much as the work allows.
  [[nodiscard]] solution pack(problem const& p) const {
    packing now(p);
    budget left(options_.work);
    return now.result_with(place_groups(now, left, placed_set::unbounded));
  }

  /// Puts a lower packing into `lowest` if it finds one within the budget.
  void improve(packing& now, budget& left, solution& lowest) const {
    now.restart();
    if (place_groups(now, left, lowest.height - 1).empty() && now.height() < lowest.height) lowest = now.result();
  }

 private:
  /// By what comes first: more phases spanned, then larger. The rest only tells groups apart.
  struct group {
    std::size_t spans;
    bytes size;
    std::size_t birth;
    bytes alignment;
    std::uint32_t stream;

    [[nodiscard]] bool operator<(group const& o) const noexcept {
      if (spans != o.spans) return spans > o.spans;
      if (size != o.size) return size > o.size;
      return std::tie(birth, alignment, stream) < std::tie(o.birth, o.alignment, o.stream);
    }
  };

  /// Gives those that it did not place, since the budget was spent or the height beyond the ceiling.
  [[nodiscard]] buffer_order place_groups(packing& now, budget& left, bytes ceiling) const {
    problem const& p = now.of();
    std::vector<instant> const phases = boundaries(p);
    std::map<group, buffer_order> groups;
    for (std::size_t i = 0; i < p.buffers.size(); ++i) {
      buffer const& b = p.buffers[i];
      if (!b.fixed) groups[group_of(p, now.lives(), phases, b)].push_back(static_cast<std::uint32_t>(i));
    }
    buffer_order unplaced;
    for (auto& [key, members] : groups) {
      if (left.spent() || now.height() > ceiling) {
        unplaced.insert(unplaced.end(), members.begin(), members.end());
        continue;
      }
      std::uint64_t const before = now.placed().work();
      std::ranges::sort(members, {}, [&](std::uint32_t i) { return std::pair{p.buffers[i].lower, i}; });
      for (buffer_order const& row : rows(p, into_gaps(p, members, now))) {
        bytes const at = now.placed().lowest_for_row(row);
        for (std::uint32_t const i : row) now.place(i, at);
      }
      left.take(now.placed().work() - before);
    }
    return unplaced;
  }

  [[nodiscard]] std::vector<instant> boundaries(problem const& p) const {
    if (!options_.boundaries.empty()) return options_.boundaries;
    if (options_.parts == 0) return {peak_instant(p)};
    instant end = p.period;
    for (buffer const& b : p.buffers) end = std::max(end, b.upper);
    std::vector<instant> equal;
    for (unsigned k = 1; k < options_.parts; ++k) equal.push_back(end / options_.parts * k);
    return equal;
  }

  [[nodiscard]] static group group_of(problem const& p, lifespans const& lives, std::vector<instant> const& phases,
                                      buffer const& b) {
    auto const phase = [&](instant t) {
      return static_cast<std::size_t>(std::ranges::upper_bound(phases, t) - phases.begin());
    };
    bool const wraps = p.period != 0 && b.upper > p.period;
    std::size_t const birth = phase(b.lower);
    std::size_t const death = wraps ? phases.size() + 1 + phase(b.upper - 1 - p.period) : phase(b.upper - 1);
    return {death - birth, b.size, birth, b.alignment, lives.streams_matter() ? b.stream : 0};
  }

  /// Places those that fit below what is there already, and gives the others. By birth.
  [[nodiscard]] static buffer_order into_gaps(problem const& p, buffer_order const& members, packing& now) {
    bytes const top = now.height();
    buffer_order others;
    for (std::uint32_t const i : members) {
      bytes const at = now.placed().lowest(i);
      if (at + p.buffers[i].size <= top) {
        now.place(i, at);
      } else {
        others.push_back(i);
      }
    }
    return others;
  }

  /// As few rows as there are members alive at once: each joins the row that has been free for the shortest time. One
  /// that wraps has a row of its own. Takes members by birth. O(n log n).
  [[nodiscard]] static std::vector<buffer_order> rows(problem const& p, buffer_order const& members) {
    std::vector<buffer_order> all;
    std::multimap<instant, std::size_t> free_since;
    for (std::uint32_t const i : members) {
      buffer const& b = p.buffers[i];
      auto row = free_since.upper_bound(b.lower);
      bool const wraps = p.period != 0 && b.upper > p.period;
      if (wraps || row == free_since.begin()) {
        all.push_back({i});
        if (!wraps) free_since.emplace(b.upper, all.size() - 1);
        continue;
      }
      --row;
      std::size_t const joined = row->second;
      free_since.erase(row);
      all[joined].push_back(i);
      free_since.emplace(b.upper, joined);
    }
    return all;
  }

  grouped_options options_;
};
static_assert(Packer<grouped>);

}  // namespace gmlake::plan
