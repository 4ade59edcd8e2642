#pragma once
/// Fits a problem into a capacity, or finds that it does not fit: a depth-first search over canonical solutions, in one
/// static order and a budget of nodes.
///
/// In the manner of MiniMalloc (Moffitt, ASPLOS 2023, section 4). Buffers are placed by rising offset, by the static
/// order where these are equal, and each as low as those allow that lie there already (its *rest*). So whoever is
/// passed over can only be placed once something has been put beneath it. A branch ends where
///
/// - a section can't hold what it still has to: its buffers one on another, none below its rest (*bound*);
/// - a buffer that was passed over has no one left to lie on, or only at a height where it no longer fits (*support*);
/// - the next offset leaves a gap that a buffer would have fitted into (*dominance*);
/// - the same buffers at the same rests have failed before (*memory*): as all that was passed over has been tried, a
///   node that fails has no completion whatever, in any order. Remembered by a 64-bit hash: a wrong proof has a chance
///   of about 10⁻¹¹ in a run of a minute;
/// - nothing can lie on the buffer that failed (*hatless*): it would lie where it is in any other branch as well.
///
/// What a placement cuts in two in time is solved one part after the other. No recursion, no clock, no chance.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/plan/exact_model.hpp"

namespace gmlake::plan {

/// What has failed, by capacity. Forgets the older of two that fall into one place.
class exact_memory {
 public:
  [[nodiscard]] bool knows(std::uint64_t state) const noexcept { return failed_[state >> shift] == state; }
  void remember(std::uint64_t state) noexcept { failed_[state >> shift] = state; }

  [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
    return x ^ (x >> 32);
  }

 private:
  static constexpr unsigned shift = 44;  // 2^20 places, 8 MiB
  std::vector<std::uint64_t> failed_ = std::vector<std::uint64_t>(std::size_t{1} << (64 - shift));
};

enum class fit_outcome : std::uint8_t { fits, never_fits, undecided };

class exact_fit {
 public:
  /// `capacity` in the model's units, below its `most_units`. Refers to all but `of`, which outlive it. O(n²).
  exact_fit(problem const& of, exact_model const& m, exact_memory& memory, std::vector<std::uint32_t> order,
            std::uint32_t capacity)
      : memory_(&memory), order_(std::move(order)), capacity_(capacity), sums_(m.sections()) {
    std::size_t const n = order_.size();
    std::vector<std::uint32_t> place(n);
    for (std::uint32_t i = 0; i < n; ++i) place[order_[i]] = i;
    for (std::uint32_t i = 0; i < n; ++i) {
      exact_model::item const& x = m[order_[i]];
      // An alignment above the capacity leaves the offset 0 alone, as any power of two above it does.
      buffers_.emplace_back(x, std::min(x.alignment, std::bit_ceil(capacity + 1)), none);
      neighbours_from_.push_back(neighbours_.size());
      for (std::uint32_t const j : m.conflicts(order_[i])) {
        neighbours_.push_back(place[j]);
        bool const earlier = place[j] < i && (buffers_[i].twin == none || place[j] > buffers_[i].twin);
        if (earlier && m.twins(of, order_[i], j)) buffers_[i].twin = place[j];
      }
    }
    neighbours_from_.push_back(neighbours_.size());
    state_.resize(n);
    cuts_.assign(m.sections(), m.ring() ? 1 : 0);
  }

  /// Undecided when so many nodes more were not enough; another call goes on from there.
  [[nodiscard]] fit_outcome run(std::uint64_t more_nodes) {
    if (!std::exchange(started_, true) && !start()) return fit_outcome::never_fits;
    std::uint64_t const most = nodes_ + more_nodes;
    while (!frames_.empty()) {
      frame& top = frames_.back();
      if (top.kind == frame::all) {
        if (top.next == top.end) {
          frames_.pop_back();
          if (solved()) return fit_outcome::fits;
        } else {
          list const next = parts_[top.next++];
          branch(next, top.last);
        }
        continue;
      }
      if (nodes_ >= most) return fit_outcome::undecided;
      undo(top.trail);
      std::uint32_t const chosen = choose(top);
      if (chosen == none) {
        fail();
        continue;
      }
      ++nodes_;
      lists_.resize(top.top);
      if (place(chosen) && solved()) return fit_outcome::fits;
    }
    return fit_outcome::never_fits;
  }

  [[nodiscard]] std::uint64_t nodes() const noexcept { return nodes_; }
  /// In units, by buffer; those of a solution after `fits`.
  [[nodiscard]] std::vector<std::uint32_t> offsets() const {
    std::vector<std::uint32_t> by_buffer(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) by_buffer[order_[i]] = state_[i].rest;
    return by_buffer;
  }

 private:
  static constexpr std::uint32_t none = exact_model::none;

  struct ordered : exact_model::item {
    ordered(exact_model::item const& x, std::uint32_t clamped, std::uint32_t alike) : item(x), twin(alike) {
      alignment = clamped;
    }
    std::uint32_t twin;  ///< the one before it in order that it could be exchanged with
  };
  struct seat {
    std::uint32_t rest = 0;  ///< the lowest offset that the placed ones leave; its offset once it is placed
    std::uint32_t low = 0;   ///< at least its rest: what its offset can't be below in this branch
    bool placed = false;
  };
  struct change {
    std::uint32_t who;
    seat before;
  };
  /// Part of lists_.
  struct list {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  /// What was placed last: a place in the order of offsets.
  struct point {
    std::uint32_t offset = 0;
    std::uint32_t who = 0;
  };
  /// A choice: which of a list comes next. All: parts that are each to be solved.
  struct frame {
    enum kind_of : std::uint8_t { choice, all } kind = choice;
    bool hatless = false;       ///< the last that was tried has nothing above it
    point last;                 ///< before which nothing is placed
    std::uint32_t end = 0;      ///< of the list, or of the parts
    std::uint32_t next = 0;     ///< to be tried, or solved
    std::uint32_t top = 0;      ///< of lists_ (all: before the parts were cut)
    std::uint32_t begin = 0;    ///< of the list, or of the parts
    std::uint32_t ceiling = 0;  ///< dominance: offsets stay below
    std::uint32_t trail = 0;
    std::uint64_t state = 0;
  };

  [[nodiscard]] static std::uint64_t key(std::uint32_t low, std::uint32_t who) noexcept {
    return std::uint64_t{low} << 32 | who;
  }
  [[nodiscard]] static std::uint32_t who(std::uint64_t k) noexcept { return static_cast<std::uint32_t>(k); }
  [[nodiscard]] static std::uint32_t low(std::uint64_t k) noexcept { return static_cast<std::uint32_t>(k >> 32); }
  [[nodiscard]] std::uint32_t lists_end() const noexcept { return static_cast<std::uint32_t>(lists_.size()); }
  [[nodiscard]] std::span<std::uint32_t const> neighbours(std::uint32_t i) const noexcept {
    return {neighbours_.data() + neighbours_from_[i], neighbours_from_[i + 1] - neighbours_from_[i]};
  }
  [[nodiscard]] std::uint32_t aligned(std::uint32_t offset, std::uint32_t i) const noexcept {
    std::uint32_t const a = buffers_[i].alignment;
    return (offset + a - 1) & ~(a - 1);
  }
  /// Whether `i` could lie there.
  [[nodiscard]] bool fits(std::uint32_t offset, std::uint32_t i) const noexcept {
    return offset <= capacity_ - buffers_[i].size && (buffers_[i].fixed == none || offset <= buffers_[i].fixed);
  }

  /// False where it is plain that nothing fits.
  [[nodiscard]] bool start() {
    for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
      seat& s = state_[i];
      s.rest = s.low = buffers_[i].fixed == none ? 0 : buffers_[i].fixed;
      if (buffers_[i].size > capacity_ || !fits(s.rest, i)) return false;
      lists_.push_back(key(s.low, i));
      count_cuts(i, 1);
    }
    std::ranges::sort(lists_);
    if (!bounded(0)) return false;
    part(0, {});
    return true;
  }

  /// Between neighbouring sections k and k + 1, how many unplaced buffers reach over. Says whether one fell to none.
  bool count_cuts(std::uint32_t i, std::uint32_t by) noexcept {
    bool none_left = false;
    for (span const s : buffers_[i].reach) {
      for (std::uint32_t k = s.lower; k + 1 < s.upper; ++k) none_left |= (cuts_[k] += by) == 0;
    }
    return none_left;
  }

  void set(std::uint32_t i, seat to) {
    trail_.push_back({i, state_[i]});
    state_[i] = to;
  }
  void undo(std::uint32_t to) {
    for (; trail_.size() > to; trail_.pop_back()) {
      auto const& [i, before] = trail_.back();
      if (state_[i].placed) count_cuts(i, 1);
      state_[i] = before;
    }
  }

  [[nodiscard]] std::uint32_t choose(frame& f) const noexcept {
    if (f.hatless) return none;
    while (f.next < f.end) {
      std::uint64_t const k = lists_[f.next++];
      std::uint32_t const i = who(k);
      if (low(k) >= f.ceiling) break;
      bool const passed_over = k < key(f.last.offset, f.last.who) || low(k) != state_[i].rest;
      if (passed_over || (buffers_[i].twin != none && !state_[buffers_[i].twin].placed)) continue;
      return i;
    }
    return none;
  }

  /// Drops the choice at the top, and every set of parts that it was needed for.
  void fail() {
    memory_->remember(frames_.back().state);
    frames_.pop_back();
    for (; !frames_.empty() && frames_.back().kind == frame::all; frames_.pop_back())
      parts_.resize(frames_.back().begin);
  }

  /// One part is solved: drops its choices, which are settled. True when there is nothing else to solve.
  [[nodiscard]] bool solved() {
    while (!frames_.empty() && frames_.back().kind == frame::choice) frames_.pop_back();
    return frames_.empty();
  }

  /// Puts c on its rest. True when nothing of the list is left to be placed.
  [[nodiscard]] bool place(std::uint32_t c) {
    frame& f = frames_.back();
    point const now{state_[c].rest, c};
    std::uint32_t const end = now.offset + buffers_[c].size;
    set(c, {now.offset, now.offset, true});
    bool const cut = count_cuts(c, none);
    f.hatless = true;
    bool fit = true;
    for (std::uint32_t const i : neighbours(c)) {
      if (state_[i].placed) continue;
      f.hatless = false;
      if (state_[i].rest >= end) continue;
      std::uint32_t const rest = aligned(end, i);
      set(i, {rest, std::max(rest, state_[i].low), false});
      fit = fit && fits(rest, i);
    }
    if (!fit) return false;
    list const left{f.top, 0};
    if (!list_unplaced({f.begin, f.end}, now) || !bounded(left.begin)) return false;
    if (left.begin == lists_end()) return true;
    if (cut) part(left.begin, now);
    else branch({left.begin, lists_end()}, now);
    return false;
  }

  /// Appends what is unplaced of `from`, by where it can lie at lowest after `now`. False when one can't.
  [[nodiscard]] bool list_unplaced(list from, point now) {
    for (std::uint32_t k = from.begin; k < from.end; ++k) {
      std::uint32_t const i = who(lists_[k]);
      seat const s = state_[i];
      if (s.placed) continue;
      if (key(s.rest, i) < key(now.offset, now.who)) {
        std::uint32_t const support = lowest_support(i, now.offset);
        if (support == none || !fits(std::max(support, s.low), i)) return false;
        if (support > s.low) set(i, {s.rest, support, false});
      }
      lists_.push_back(key(state_[i].low, i));
    }
    std::sort(lists_.begin() + from_top(), lists_.end());
    return true;
  }
  [[nodiscard]] std::ptrdiff_t from_top() const noexcept { return static_cast<std::ptrdiff_t>(frames_.back().top); }

  /// The lowest top that an unplaced neighbour may come to have.
  [[nodiscard]] std::uint32_t lowest_support(std::uint32_t i, std::uint32_t floor) const noexcept {
    std::uint32_t lowest = none;
    for (std::uint32_t const j : neighbours(i)) {
      if (!state_[j].placed) lowest = std::min(lowest, std::max(state_[j].low, floor) + buffers_[j].size);
    }
    return lowest == none || buffers_[i].fixed != none ? none : aligned(lowest, i);
  }

  /// Whether every section can hold its unplaced, which lists_ has from `begin` on: a machine with release times.
  [[nodiscard]] bool bounded(std::uint32_t begin) {
    std::ranges::fill(sums_, 0u);
    for (std::uint32_t k = begin; k < lists_end(); ++k) {
      ordered const& x = buffers_[who(lists_[k])];
      std::uint32_t const release = low(lists_[k]);
      std::uint32_t highest = 0;
      for (span const s : x.sections) {
        for (std::uint32_t at = s.lower; at < s.upper; ++at) {
          sums_[at] = std::max(sums_[at], release) + x.size;
          highest = std::max(highest, sums_[at]);
        }
      }
      if (highest > capacity_) return false;
    }
    return true;
  }

  void branch(list of, point last) {
    frame f{.kind = frame::choice,
            .last = last,
            .end = of.end,
            .next = of.begin,
            .top = lists_end(),
            .begin = of.begin,
            .ceiling = none,
            .trail = static_cast<std::uint32_t>(trail_.size()),
            .state = exact_memory::mix(capacity_)};
    for (std::uint32_t k = of.begin; k < of.end; ++k) {
      std::uint32_t const i = who(lists_[k]);
      f.ceiling = std::min(f.ceiling, state_[i].rest + buffers_[i].size);
      f.state += exact_memory::mix(key(state_[i].rest, order_[i]) + 1);
    }
    if (memory_->knows(f.state)) f.next = f.end;
    frames_.push_back(f);
  }

  /// Parts what lists_ has from `begin` on by the cuts that nothing unplaced reaches over.
  void part(std::uint32_t begin, point last) {
    part_of_.resize(cuts_.size());
    std::uint32_t count = 0;
    for (std::size_t k = 0; k < cuts_.size(); ++k) part_of_[k] = k == 0 || cuts_[k - 1] != 0 ? count : ++count;
    // What wraps joins the first part and the last.
    bool const joined = std::any_of(lists_.begin() + begin, lists_.end(),
                                    [&](std::uint64_t k) { return !buffers_[who(k)].sections[1].empty(); });
    unparted_.assign(lists_.begin() + begin, lists_.end());
    auto const of = [&](std::uint64_t k) {
      std::uint32_t const p = part_of_[buffers_[who(k)].sections[0].lower];
      return joined && p == count ? 0 : p;
    };
    std::ranges::stable_sort(unparted_, {}, of);
    frame f{.kind = frame::all, .last = last, .next = static_cast<std::uint32_t>(parts_.size()), .top = begin};
    f.begin = f.next;
    lists_.resize(begin);
    for (std::size_t k = 0; k < unparted_.size(); ++k) {
      if (k == 0 || of(unparted_[k - 1]) != of(unparted_[k])) parts_.push_back({lists_end(), lists_end()});
      lists_.push_back(unparted_[k]);
      parts_.back().end = lists_end();
    }
    f.end = static_cast<std::uint32_t>(parts_.size());
    frames_.push_back(f);
  }

  exact_memory* memory_;
  std::vector<std::uint32_t> order_;
  std::uint32_t capacity_;
  bool started_ = false;
  std::uint64_t nodes_ = 0;
  std::vector<ordered> buffers_;  ///< by place in the order, as all indices here are
  std::vector<std::uint32_t> neighbours_;
  std::vector<std::size_t> neighbours_from_;
  std::vector<seat> state_;
  std::vector<change> trail_;
  std::vector<std::uint64_t> lists_;  ///< keys of unplaced buffers, in stretches that frames refer to
  std::vector<list> parts_;
  std::vector<frame> frames_;
  std::vector<std::uint32_t> cuts_;
  std::vector<std::uint32_t> sums_;  ///< `bounded`
  std::vector<std::uint32_t> part_of_;
  std::vector<std::uint64_t> unparted_;
};

}  // namespace gmlake::plan
