#pragma once
/// Checks a problem by itself, and a solution against its problem. Knows nothing of how solutions are found, and shares
/// no code with what finds them.
///
/// One sweep over time paints each buffer over the bytes that it takes; what it paints over is the last that lived on
/// those bytes, and must have ended, and long enough ago where its stream is another. To look at the last one is
/// enough: whoever lived there before it has kept the gap to it, or is of its stream. A repeated step is swept twice,
/// so that its end meets its beginning.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

enum class rule : std::uint8_t {
  size,       ///< sizes are positive, and their sum is representable
  lifetime,   ///< upper lies after lower; in a repeated step lower lies in it, and upper at most a period later
  alignment,  ///< alignments are powers of two; offsets are multiples of theirs
  fixed,      ///< offsets that were given are kept
  count,      ///< every buffer has an offset, and there are no more
  height,     ///< the height is the highest end of a buffer
  share,      ///< no two buffers share a byte while both live
  gap,        ///< nor before the stream gap is over, where their streams differ
};

[[nodiscard]] constexpr char const* to_string(rule r) noexcept {
  switch (r) {
    case rule::size: return "a size is zero, or too large with the others";
    case rule::lifetime: return "a lifetime is empty, or longer than the period";
    case rule::alignment: return "an alignment is no power of two, or not kept";
    case rule::fixed: return "a fixed offset is not kept";
    case rule::count: return "there are not as many offsets as buffers";
    case rule::height: return "the height is not the highest end";
    case rule::share: return "two buffers share a byte while both live";
    case rule::gap: return "two streams share a byte within their gap";
  }
  return "unknown rule";
}

/// The rule that is broken, and by whom: one buffer, or two. `nobody` where it isn't one buffer's fault.
struct fault {
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

  rule broken = rule::size;
  std::size_t first = nobody;
  std::size_t second = nobody;
};

/// Checks what holds for a problem whatever its solution; null where all does. Fixed buffers are not checked against
/// each other: a problem whose fixed ones collide has no solution. O(n).
[[nodiscard]] inline std::optional<fault> validate(problem const& p) {
  bytes sum = 0;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    buffer const& b = p.buffers[i];
    bytes const room = std::numeric_limits<bytes>::max() - sum;
    if (b.size == 0 || b.size > room) return fault{rule::size, i};
    sum += b.size;
    if (b.upper <= b.lower) return fault{rule::lifetime, i};
    if (p.period != 0 && (b.lower >= p.period || b.upper - b.lower > p.period)) return fault{rule::lifetime, i};
    if (!std::has_single_bit(b.alignment)) return fault{rule::alignment, i};
    if (b.fixed && !is_aligned(*b.fixed, b.alignment)) return fault{rule::alignment, i};
    if (b.fixed && *b.fixed > std::numeric_limits<bytes>::max() - b.size) return fault{rule::fixed, i};
  }
  return std::nullopt;
}

namespace validate_parts {

/// Who has lived on each byte last.
class painted {
 public:
  explicit painted(problem const& p) : problem_(&p) {}

  /// Paints buffer i of the given round (0 or 1) over [begin, end). Buffers come by lower, the same in both rounds.
  /// Amortised O(log n).
  [[nodiscard]] std::optional<fault> paint(std::size_t i, unsigned round, bytes begin, bytes end) {
    auto at = last_.upper_bound(begin);
    if (at != last_.begin() && std::prev(at)->second.end > begin) --at;
    while (at != last_.end() && at->first < end) {
      stroke const old = at->second;
      bytes const old_begin = at->first;
      if (auto broken = check(old, i, round)) return broken;
      at = last_.erase(at);
      if (old_begin < begin) last_.emplace(old_begin, stroke{begin, old.who, old.round});
      if (old.end > end) at = last_.emplace(end, old).first;
    }
    last_.emplace(begin, stroke{end, i, round});
    return std::nullopt;
  }

 private:
  struct stroke {
    bytes end;
    std::size_t who;
    unsigned round;
  };

  [[nodiscard]] std::optional<fault> check(stroke const& old, std::size_t i, unsigned round) const {
    buffer const& was = problem_->buffers[old.who];
    buffer const& is = problem_->buffers[i];
    // What a round left for the next begins no earlier in it than `is`, which else would have met its repetition.
    instant const apart = old.round == round ? is.lower - was.lower : problem_->period - (was.lower - is.lower);
    instant const lived = was.upper - was.lower;
    if (apart < lived) return fault{rule::share, old.who, i};
    if (was.stream != is.stream && apart - lived < problem_->stream_gap) return fault{rule::gap, old.who, i};
    return std::nullopt;
  }

  problem const* problem_;
  std::map<bytes, stroke> last_;  ///< by first byte; apart from each other
};

}  // namespace validate_parts

/// Null where `s` solves `p`; else a rule that is broken. O(n log n).
[[nodiscard]] inline std::optional<fault> validate(problem const& p, solution const& s) {
  if (auto broken = validate(p)) return broken;
  if (s.offsets.size() != p.buffers.size()) return fault{rule::count};
  bytes highest = 0;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    buffer const& b = p.buffers[i];
    bytes const offset = s.offsets[i];
    if (!is_aligned(offset, b.alignment)) return fault{rule::alignment, i};
    if (b.fixed && offset != *b.fixed) return fault{rule::fixed, i};
    if (offset > std::numeric_limits<bytes>::max() - b.size) return fault{rule::height, i};
    highest = std::max(highest, offset + b.size);
  }
  if (s.height != highest) return fault{rule::height};

  std::vector<std::size_t> by_lower(p.buffers.size());
  std::iota(by_lower.begin(), by_lower.end(), std::size_t{0});
  std::ranges::sort(by_lower, {}, [&](std::size_t i) { return std::pair(p.buffers[i].lower, i); });
  validate_parts::painted last(p);
  for (unsigned round = 0; round < (p.period == 0 ? 1u : 2u); ++round) {
    for (std::size_t const i : by_lower) {
      if (auto broken = last.paint(i, round, s.offsets[i], s.offsets[i] + p.buffers[i].size)) return broken;
    }
  }
  return std::nullopt;
}

}  // namespace gmlake::plan
