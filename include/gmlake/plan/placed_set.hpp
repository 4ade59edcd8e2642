#pragma once
/// The buffers that have offsets already, and the free gaps they leave for another one's lifetime.
///
/// Time is cut into buckets; each keeps the placed buffers that live in it, by offset. Most buffers live within a
/// bucket or two, whose lists are walked from below and left at the first gap that will do; those of a long life gather
/// what they meet and sort it. Buckets are so wide that a buffer is in three of them at the average, which bounds the
/// memory. Counts every entry looked at (`work`), so that budgets need no clock. Never moves what is placed.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/lifespans.hpp"

namespace gmlake::plan {

class placed_set {
 public:
  static constexpr bytes unbounded = std::numeric_limits<bytes>::max();

  /// O(n). Refers to both, which outlive it.
  placed_set(problem const& p, lifespans const& l) : problem_(&p), lives_(&l) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < l.size(); ++i) all += l.length(i);
    std::uint64_t const mean = l.size() == 0 ? 1 : all / l.size();
    shift_ = static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(mean / 2, narrowest_bucket) - 1));
    buckets_.resize((l.end() >> shift_) + std::size_t{1});
  }

  /// Takes all out, keeping memory and the count of work.
  void clear() noexcept {
    for (auto& b : buckets_) b.clear();
  }

  /// O(buckets it lives in · entries of each), of which the latter is a move of memory.
  void insert(std::size_t i, bytes offset) {
    buffer const& b = problem_->buffers[i];
    for (span const s : lives_->own(i)) {
      if (s.empty()) continue;
      entry const e{offset, offset + b.size, s, b.stream};
      for (std::size_t k = bucket(s.lower); k <= bucket(s.upper - 1); ++k) {
        auto& in = buckets_[k];
        in.insert(std::ranges::upper_bound(in, offset, {}, &entry::offset), e);
        work_ += 1 + in.size() / entries_moved_as_one_read;
      }
    }
  }

  /// Calls `visit(begin, end)` for the gaps where buffer i may lie, from below, until it returns true: whole gaps
  /// between conflicting buffers, whatever their size; the last ends at `unbounded`.
  /// O(entries of the buckets that i lives in), and a sort of those it conflicts with where these are many.
  template <class Visit>
  void gaps(std::size_t i, Visit&& visit) {
    lifespans::spans const& wide = lives_->wide(i);
    if (wide[1].empty() && bucket(wide[0].lower) == bucket(wide[0].upper - 1)) {
      walk(buckets_[bucket(wide[0].lower)], [&](entry const& e) { return conflicts(i, e); }, visit);
    } else {
      gathered_.clear();
      gather(i);
      walk_gathered(visit);
    }
  }

  /// The lowest offset for buffer i, aligned. As `gaps`.
  [[nodiscard]] bytes lowest(std::size_t i) {
    buffer const& b = problem_->buffers[i];
    bytes found = 0;
    gaps(i, [&](bytes begin, bytes end) {
      found = align_up(begin, b.alignment);
      return found < end && end - found >= b.size;
    });
    return found;
  }

  /// The lowest offset where every buffer of a row would fit, all of one size and alignment. A sort of all that they
  /// conflict with.
  [[nodiscard]] bytes lowest_for_row(std::span<std::uint32_t const> row) {
    buffer const& b = problem_->buffers[row.front()];
    gathered_.clear();
    for (std::uint32_t const i : row) gather(i);
    bytes found = 0;
    walk_gathered([&](bytes begin, bytes end) {
      found = align_up(begin, b.alignment);
      return found < end && end - found >= b.size;
    });
    return found;
  }

  /// The lowest offset in the smallest gap for buffer i, aligned; above all it conflicts with where there is no gap.
  /// As `gaps`.
  [[nodiscard]] bytes best_fit(std::size_t i) {
    buffer const& b = problem_->buffers[i];
    bytes found = 0;
    bytes smallest = unbounded;
    gaps(i, [&](bytes begin, bytes end) {
      bytes const at = align_up(begin, b.alignment);
      if (at < end && end - at >= b.size && (end - begin < smallest || end == unbounded)) {
        if (end != unbounded || smallest == unbounded) found = at;
        smallest = std::min(smallest, end - begin);
      }
      return false;
    });
    return found;
  }

  /// Entries looked at, since construction.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

 private:
  struct entry {
    bytes offset;
    bytes end;
    span life;
    std::uint32_t stream;
  };
  static constexpr std::uint64_t narrowest_bucket = 8;           // ranks; narrower ones would be all overhead
  static constexpr std::uint64_t entries_moved_as_one_read = 8;  // memmove's speed against a walk's

  [[nodiscard]] std::size_t bucket(std::uint32_t rank) const noexcept { return rank >> shift_; }

  [[nodiscard]] bool conflicts(std::size_t i, entry const& e) const noexcept {
    bool const own = !lives_->streams_matter() || e.stream == problem_->buffers[i].stream;
    lifespans::spans const& s = own ? lives_->own(i) : lives_->wide(i);
    return s[0].meets(e.life) || s[1].meets(e.life);
  }

  /// Adds all entries that conflict with i to gathered_. One that lies in several of the buckets is taken from the
  /// first of these.
  void gather(std::size_t i) {
    for (span const s : lives_->wide(i)) {
      if (s.empty()) continue;
      std::size_t const first = bucket(s.lower);
      for (std::size_t k = first; k <= bucket(s.upper - 1); ++k) {
        work_ += buckets_[k].size();
        for (entry const& e : buckets_[k]) {
          if (std::max(first, bucket(e.life.lower)) == k && conflicts(i, e)) gathered_.push_back(e);
        }
      }
    }
  }

  template <class Visit>
  void walk_gathered(Visit&& visit) {
    std::ranges::sort(gathered_, {}, &entry::offset);
    work_ += gathered_.size() * static_cast<unsigned>(std::bit_width(gathered_.size()));
    walk(gathered_, [](entry const&) { return true; }, visit);
  }

  template <class Conflicts, class Visit>
  void walk(std::vector<entry> const& in, Conflicts&& conflicts, Visit&& visit) {
    bytes top = 0;
    std::size_t k = 0;
    for (; k < in.size(); ++k) {
      entry const& e = in[k];
      if (!conflicts(e)) continue;
      if (e.offset > top && visit(top, e.offset)) break;
      top = std::max(top, e.end);
    }
    work_ += 1 + k;
    if (k == in.size()) visit(top, unbounded);
  }

  problem const* problem_;
  lifespans const* lives_;
  unsigned shift_ = 0;
  std::vector<std::vector<entry>> buckets_;
  std::vector<entry> gathered_;
  std::uint64_t work_ = 0;
};

}  // namespace gmlake::plan
