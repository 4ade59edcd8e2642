#pragma once
/// The buffers that have offsets already, and the free gaps they leave for another one's lifetime.
///
/// Time is cut into buckets; each keeps the placed buffers that live in it, by offset. Most buffers live within a
/// bucket or two, whose lists are walked from below and left at the first gap that will do; those of a long life gather
/// what they meet and merge it. Buckets are so wide that a buffer is in three of them at the average, which bounds the
/// memory. Counts every entry looked at (`work`), so that budgets need no clock. Never moves what is placed.
///
/// Whether an entry conflicts is as good as random to a branch predictor, and a wrong guess costs more than all else
/// that is done with an entry. So `lowest`, and what gathers, compute it without a branch.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
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
  /// O(entries of the buckets that i lives in), and a merge of those it conflicts with where it lives in several.
  template <class Visit>
  void gaps(std::size_t i, Visit&& visit) {
    met_by(i, [&](auto const& in, auto const& meets) {
      bytes top = 0;
      std::size_t k = 0;
      for (; k < in.size(); ++k) {
        if (!meets(in[k])) continue;
        if (in[k].offset > top && visit(top, in[k].offset)) break;
        top = std::max(top, in[k].end);
      }
      work_ += 1 + k;
      if (k == in.size()) visit(top, unbounded);
    });
  }

  /// The lowest offset for buffer i, aligned. As `gaps`.
  [[nodiscard]] bytes lowest(std::size_t i) {
    bytes found = 0;
    met_by(i, [&](auto const& in, auto const& meets) { found = lowest_in(in, meets, problem_->buffers[i]); });
    return found;
  }

  /// The lowest offset where every buffer of a row would fit, all of one size and alignment. A merge of all that they
  /// conflict with.
  [[nodiscard]] bytes lowest_for_row(std::span<std::uint32_t const> row) {
    begin_gathering();
    for (std::uint32_t const i : row) gather(i);
    return lowest_in(merged(), always, problem_->buffers[row.front()]);
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
  /// Of an entry, what matters once it is known to conflict.
  struct piece {
    bytes offset;
    bytes end;
  };
  static constexpr auto always = [](piece const&) { return 1u; };
  static constexpr std::uint64_t narrowest_bucket = 8;           // ranks; narrower ones would be all overhead
  static constexpr std::uint64_t entries_moved_as_one_read = 8;  // memmove's speed against a walk's

  [[nodiscard]] std::size_t bucket(std::uint32_t rank) const noexcept { return rank >> shift_; }

  /// Calls `use(entries, meets)`: by offset, with those among them that conflict with i.
  template <class Use>
  void met_by(std::size_t i, Use&& use) {
    lifespans::spans const& wide = lives_->wide(i);
    if (wide[1].empty() && bucket(wide[0].lower) == bucket(wide[0].upper - 1)) {
      with_conflicts(i,
                     [&](auto const& meets) { use(std::span<entry const>(buckets_[bucket(wide[0].lower)]), meets); });
    } else {
      begin_gathering();
      gather(i);
      use(merged(), always);
    }
  }

  /// Calls `use(meets)`, where `meets(e)` is 1 for an entry that i conflicts with, else 0.
  template <class Use>
  void with_conflicts(std::size_t i, Use&& use) const {
    auto const meet = [](span s, span o) { return unsigned{s.lower < o.upper} & unsigned{o.lower < s.upper}; };
    lifespans::spans const& own = lives_->own(i);
    lifespans::spans const& wide = lives_->wide(i);
    std::uint32_t const stream = problem_->buffers[i].stream;
    if (!wide[1].empty() || !own[1].empty()) {
      use([=, by_stream = std::array{wide, own}](entry const& e) {
        lifespans::spans const& s = by_stream[e.stream == stream];
        return meet(s[0], e.life) | meet(s[1], e.life);
      });
    } else if (lives_->streams_matter()) {
      use([=, by_stream = std::array{wide[0], own[0]}](entry const& e) {
        return meet(by_stream[e.stream == stream], e.life);
      });
    } else {
      use([=, s = own[0]](entry const& e) { return meet(s, e.life); });
    }
  }

  /// The lowest offset for `b` between those of `in`, by offset, that `meets` is 1 for; aligned.
  template <class Met, class Meets>
  [[nodiscard]] bytes lowest_in(std::span<Met const> in, Meets const& meets, buffer const& b) {
    bytes const size = b.size;
    bytes const alignment = b.alignment;
    bytes top = 0;
    std::size_t k = 0;
    for (; k < in.size(); ++k) {
      unsigned const met = meets(in[k]);
      bytes const at = align_up(top, alignment);
      bytes const offset = in[k].offset;
      if ((met & unsigned{at < offset} & unsigned{offset - at >= size}) != 0) break;
      top = std::max(top, in[k].end & (bytes{0} - met));
    }
    work_ += 1 + k;
    return align_up(top, alignment);
  }

  void begin_gathering() noexcept {
    gathered_count_ = 0;
    runs_.clear();
  }

  /// Adds all entries that conflict with i to gathered_, a run for each bucket. One that lies in several of the buckets
  /// is taken from the first of these.
  void gather(std::size_t i) {
    with_conflicts(i, [&](auto const& meets) {
      for (span const s : lives_->wide(i)) {
        if (s.empty()) continue;
        std::size_t const first = bucket(s.lower);
        for (std::size_t k = first; k <= bucket(s.upper - 1); ++k) {
          auto const& in = buckets_[k];
          work_ += in.size();
          if (gathered_.size() < gathered_count_ + in.size()) gathered_.resize(2 * (gathered_count_ + in.size()));
          std::size_t const begin = gathered_count_;
          std::size_t const least = k == first ? 0 : k << shift_;
          piece* const to = gathered_.data() + begin;
          std::size_t added = 0;
          for (entry const& e : in) {
            to[added] = {e.offset, e.end};
            added += meets(e) & unsigned{e.life.lower >= least};
          }
          gathered_count_ += added;
          if (added != 0) runs_.push_back(begin);
        }
      }
    });
  }

  /// What is gathered, by offset: runs are merged in pairs until one is left. O(gathered · log runs).
  [[nodiscard]] std::span<piece const> merged() {
    std::size_t const n = gathered_count_;
    work_ += n * static_cast<unsigned>(std::bit_width(n));
    merged_.resize(std::max(merged_.size(), gathered_.size()));
    while (runs_.size() > 1) {
      std::size_t kept = 0;
      for (std::size_t r = 0; r < runs_.size(); r += 2) {
        auto const from = [&](std::size_t run) { return run < runs_.size() ? runs_[run] : n; };
        std::size_t const begin = runs_[r];
        merge(begin, from(r + 1), from(r + 2));
        runs_[kept++] = begin;
      }
      runs_.resize(kept);
      std::swap(gathered_, merged_);
    }
    return {gathered_.data(), n};
  }

  /// The runs [begin, middle) and [middle, end) of gathered_ into merged_.
  void merge(std::size_t begin, std::size_t middle, std::size_t end) noexcept {
    piece const* a = gathered_.data() + begin;
    piece const* const a_end = gathered_.data() + middle;
    piece const* b = a_end;
    piece const* const b_end = gathered_.data() + end;
    piece* to = merged_.data() + begin;
    while (a != a_end && b != b_end) {
      bool const second = b->offset < a->offset;
      *to++ = *(second ? b : a);
      b += second;
      a += !second;
    }
    std::copy(b, b_end, std::copy(a, a_end, to));
  }

  problem const* problem_;
  lifespans const* lives_;
  unsigned shift_ = 0;
  std::vector<std::vector<entry>> buckets_;
  std::vector<piece> gathered_;  ///< grows only; what is beyond the count is nothing
  std::size_t gathered_count_ = 0;
  std::vector<std::size_t> runs_;  ///< where in gathered_ each begins that is by offset
  std::vector<piece> merged_;
  std::uint64_t work_ = 0;
};

}  // namespace gmlake::plan
