#pragma once
/// The cheap packer: buffers are placed in the order of their births into the smallest free gap, as an allocator at
/// work would, in O(n log n) whatever lives at once. Within a gap the short-lived go to the upper end and the
/// long-lived to the lower, so that each sort keeps the company of its like; both that and plain best fit are tried.
///
/// What a sweep through time can't see coming is walled off for all of it: fixed buffers, and those that wrap. Where
/// streams matter, all lifetimes are lengthened by the gap, or each stream gets a range of offsets of its own,
/// whichever is lower. Thorough packers (lowest_offset.hpp) do better at all of these, at a cost that grows with what
/// lives.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/plan/free_gaps.hpp"
#include "gmlake/plan/packer.hpp"

namespace gmlake::plan {

class lifetime_sweep {
 public:
  [[nodiscard]] static std::string_view name() noexcept { return "lifetime_sweep"; }

  /// O(n log n).
  [[nodiscard]] static solution pack(problem const& p) {
    solution s{std::vector<bytes>(p.buffers.size()), 0};
    std::vector<std::uint32_t> rest;
    for (std::size_t i = 0; i < p.buffers.size(); ++i) {
      buffer const& b = p.buffers[i];
      if (b.fixed) {
        s.offsets[i] = *b.fixed;
        s.height = std::max(s.height, *b.fixed + b.size);
      } else {
        rest.push_back(static_cast<std::uint32_t>(i));
      }
    }
    place(p, rest, 0, s);
    return s;
  }

  /// Gives the buffers in `of` offsets from `base` on, which all others that have offsets end beneath, or are fixed.
  /// O(n log n).
  static void place(problem const& p, std::span<std::uint32_t const> of, bytes base, solution& s) {
    if (of.empty()) return;
    solution lowest;
    auto const keep_lower = [&](solution&& tried) {
      if (lowest.offsets.empty() || tried.height < lowest.height) lowest = std::move(tried);
    };
    bool const one_stream = p.stream_gap == 0 || std::ranges::all_of(p.buffers, [&](buffer const& b) {
                              return b.stream == p.buffers.front().stream;
                            });
    for (bool const by_lifetime : {false, true}) {
      keep_lower(swept(p, of, base, one_stream ? 0 : p.stream_gap, by_lifetime, s));
    }
    if (!one_stream) {
      solution apart = s;
      bytes above = base;
      for (auto const& one : by_stream(p, of)) {
        apart = swept(p, one, above, 0, false, apart);
        above = apart.height;
      }
      keep_lower(std::move(apart));
    }
    s = std::move(lowest);
  }

 private:
  struct event {
    instant at;
    std::uint32_t index;
    bool birth;
  };

  [[nodiscard]] static std::vector<std::vector<std::uint32_t>> by_stream(problem const& p,
                                                                         std::span<std::uint32_t const> of) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> streams;
    for (std::uint32_t const i : of) streams[p.buffers[i].stream].push_back(i);
    std::vector<std::vector<std::uint32_t>> all;
    all.reserve(streams.size());
    for (auto& [stream, indices] : streams) all.push_back(std::move(indices));
    return all;
  }

  [[nodiscard]] static solution swept(problem const& p, std::span<std::uint32_t const> of, bytes base, instant gap,
                                      bool by_lifetime, solution s) {
    free_gaps free(base);
    for (buffer const& b : p.buffers) {
      if (b.fixed && *b.fixed + b.size > base) {
        bytes const from = std::max(*b.fixed, base);
        free.wall(from, *b.fixed + b.size - from);
      }
    }
    std::vector<event> events;
    events.reserve(2 * of.size());
    instant lived = 0;
    for (std::uint32_t const i : of) {
      buffer const& b = p.buffers[i];
      instant const upper = b.upper > problem::never - gap ? problem::never : b.upper + gap;
      if (upper == problem::never || (p.period != 0 && upper > p.period)) {
        s.offsets[i] = free.take(b.size, b.alignment, false);  // before the sweep begins, and not given back
        continue;
      }
      events.push_back({b.lower, i, true});
      events.push_back({upper, i, false});
      lived += upper - b.lower;
    }
    std::ranges::sort(events, [](event const& a, event const& b) {
      if (a.at != b.at) return a.at < b.at;
      return a.birth != b.birth ? b.birth : a.index < b.index;
    });
    instant const mean = events.empty() ? 0 : lived / (events.size() / 2);
    for (event const& e : events) {
      buffer const& b = p.buffers[e.index];
      if (e.birth) {
        s.offsets[e.index] = free.take(b.size, b.alignment, by_lifetime && b.upper - b.lower < mean);
      } else {
        free.give_back(s.offsets[e.index], b.size);
      }
    }
    for (std::uint32_t const i : of) s.height = std::max(s.height, s.offsets[i] + p.buffers[i].size);
    return s;
  }
};
static_assert(Packer<lifetime_sweep>);

}  // namespace gmlake::plan
