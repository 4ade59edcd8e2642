#pragma once
/// The memory that plans place blocks in: taken from the lake like a stitch's extents, one long view of it first and,
/// where that is too short, other free runs of addresses where they lie. Held or let go as a whole; while it is being
/// let go, parts go back as they become idle. Afterwards the view's mapping stays in the stitch cache, so that the next
/// hold needs no driver call.
///
/// Invariant: each segment's chain holds what is still taken of it, by offset, as `taken` blocks of the lake.

#include <algorithm>
#include <vector>

#include "gmlake/plan/track.hpp"
#include "gmlake/pool/grower.hpp"
#include "gmlake/pool/stitcher.hpp"

namespace gmlake {

template <PoolConfig Config>
class arena {
 public:
  using parts = pool_parts<Config>;
  using outcome = typename stitcher<Config>::outcome;

  arena(parts& p, stitcher<Config>& s, grower<Config>& g) noexcept : p_(&p), stitch_(&s), grow_(&g) {}

  /// What it consists of, in the order of the plan's space; empty before the first `claim`.
  [[nodiscard]] std::span<plan::segment const> segments() const noexcept { return segments_; }
  [[nodiscard]] bytes size() const noexcept { return size_; }
  /// What it was claimed for: it may be smaller.
  [[nodiscard]] bytes wanted() const noexcept { return wanted_; }
  /// A number for what it consists of: another one stands for other addresses.
  [[nodiscard]] std::uint64_t claims() const noexcept { return claims_; }
  /// Bytes that are taken from the lake now.
  [[nodiscard]] bytes taken() const noexcept { return taken_; }
  [[nodiscard]] bool held() const noexcept { return taken_ == size_ && size_ > 0; }
  [[nodiscard]] bool contains(address begin, address end) const noexcept {
    return std::ranges::any_of(segments_,
                               [=](plan::segment const& s) { return begin >= s.at && end <= s.at + s.size; });
  }
  /// Walks the chains: null, or the invariant that is broken.
  [[nodiscard]] char const* find_fault() const noexcept {
    bytes taken = 0;
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      bytes end = 0;
      for (block const* b = chains_[i].taken; b != nullptr; b = b->next_taken) {
        if (b->state != block_state::taken || b->in == nullptr) return "an arena's memory is taken";
        if (b->requested < end) return "an arena's memory is in order";
        end = b->requested + b->size;
        taken += b->size;
      }
      if (end > segments_[i].size) return "an arena's memory lies in its segments";
    }
    return taken == taken_ ? nullptr : "an arena's memory is counted";
  }
  /// Whether all of [at, at + n), which lies in a segment, is taken now.
  [[nodiscard]] bool holds(address at, bytes n) const noexcept {
    if (!contains(at, at + n)) return false;
    std::size_t const i = segment_at(at);
    bytes low = at - segments_[i].at;
    bytes const high = low + n;
    for (block const* b = chains_[i].taken; b != nullptr && low < high; b = b->next_taken) {
      if (b->requested <= low && low < b->requested + b->size) low = b->requested + b->size;
    }
    return low >= high;
  }
  /// Whether `a` may lie in it: a quick look, which is right when it says no.
  [[nodiscard]] bool covers(address a) const noexcept { return a >= low_ && a < high_; }

  /// Finds n bytes or, where `grows` is false, as many as are free for `user`, and holds them. Where one run of free
  /// addresses is long enough, no driver call is made. Precondition: nothing is taken. Errors: the driver's,
  /// `out_of_memory`, `out_of_host_memory`; then nothing is held. False: there is nothing to be had.
  [[nodiscard]] result<bool> claim(stream_index user, bytes n, bool grows) noexcept {
    forget();
    wanted_ = n;
    result<outcome> first = one_run(user, n);
    if (first && first->served == nullptr && grows) {
      result<void> const more =
          stitches(n) ? grow_->add(user, area::large, first->shortfall) : grow_->add_contiguous(user, area::large, n);
      if (!more) return failure(more.error());
      first = one_run(user, n);
    }
    if (first && first->served == nullptr && first->shortfall < n) first = one_run(user, n - first->shortfall);
    if (!first) return failure(first.error());
    try {
      if (first->served != nullptr) add(*first->served);
      if (size_ < n && !grows) add_runs(user, n - size_);
    } catch (std::bad_alloc const&) {
      let_go(user, p_->space.time().stamp(user));
      forget();
      return failure(errc::out_of_host_memory, "plan");
    }
    set_bounds();
    return size_ > 0;
  }

  enum class holding : std::uint8_t {
    nothing,
    part,  ///< runs that are in other use now have been given up: it is smaller, and its places are others
    all,
  };
  /// Takes all of it again, or all but some of the runs beside the first. Precondition: nothing is taken. Nothing,
  /// where there is nothing to take, the first run is in other use, or its view is gone. On failure nothing is held.
  [[nodiscard]] result<holding> hold(stream_index user) noexcept {
    holding all = size_ > 0 ? holding::all : holding::nothing;
    for (std::size_t i = 0; i < segments_.size();) {
      result<bool> const there = take(i, user);
      if (!there) {
        let_go(user, p_->space.time().stamp(user));
        return failure(there.error());
      }
      if (*there) {
        ++i;
        continue;
      }
      if (i == 0) return holding::nothing;
      give_up(i);
      all = holding::part;
    }
    return all;
  }

  /// Gives [at, at + n), which is taken, back to the lake. False for want of host memory: then it stays.
  [[nodiscard]] bool give_back(address at, bytes n, stream_index on, tick stamp) noexcept {
    std::size_t const i = segment_at(at);
    plan::segment const& s = segments_[i];
    bytes const low = at - s.at;
    bytes const high = low + n;
    block** link = &chains_[i].taken;
    while (*link != nullptr && (*link)->requested + (*link)->size <= low) link = &(*link)->next_taken;
    while (*link != nullptr && (*link)->requested < high) {
      if (!p_->space.home().reserve_blocks(2)) return false;
      if ((*link)->requested < low) {
        split(*link, low - (*link)->requested);
        link = &(*link)->next_taken;
      }
      if ((*link)->requested + (*link)->size > high) split(*link, high - (*link)->requested);
      block& gone = **link;
      *link = std::exchange(gone.next_taken, nullptr);
      taken_ -= gone.size;
      gone.requested = 0;
      (void)p_->space.give_back(gone, on, stamp);
    }
    chains_[i].stamp = std::max(chains_[i].stamp, stamp);
    if (chains_[i].taken == nullptr) end_view(i, stamp);
    return true;
  }

  /// Gives back all that is still taken.
  void let_go(stream_index on, tick stamp) noexcept {
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      while (block* const b = chains_[i].taken) {
        chains_[i].taken = std::exchange(b->next_taken, nullptr);
        taken_ -= b->size;
        b->requested = 0;
        (void)p_->space.give_back(*b, on, stamp);
      }
      end_view(i, stamp);
    }
  }

  /// A block at `at` as it would be if the lake had served it: on its view, or on the chunks beneath.
  [[nodiscard]] block as_block(address at, bytes n, bytes requested, stream_index on) const noexcept {
    chain const& c = chains_[segment_at(at)];
    block b;
    b.begin = at;
    b.size = n;
    b.requested = requested;
    b.on = on;
    b.state = block_state::live;
    if (c.viewed != nullptr) {
      b.view = c.viewed->view;
      return b;
    }
    for (block const* t = c.taken; t != nullptr; t = t->next_taken) {
      if (at < t->begin || at >= t->end()) continue;
      b.first_chunk = t->first_chunk;
      while (b.first_chunk->end() <= at) b.first_chunk = b.first_chunk->next;
    }
    return b;
  }

  /// Another claim may find other memory. Precondition: nothing is taken.
  void forget() noexcept {
    ++claims_;
    segments_.clear();
    chains_.clear();
    size_ = 0;
    low_ = high_ = address{};
  }

 private:
  struct chain {
    block* taken = nullptr;   ///< of the lake, by offset
    block* viewed = nullptr;  ///< the stitch's own block while its view is in use
    tick stamp = 0;           ///< the youngest that some of it went back under
  };
  /// Free runs below this size are left to the lake.
  static constexpr bytes smallest_run = 64_KiB;
  /// Between two segments offsets are left out, so that nothing lies across.
  static constexpr bytes wall = 512;

  [[nodiscard]] bool stitches(bytes n) const noexcept {
    return !PlacedBackend<typename Config::backend> && p_->stitch.stitches(n, false);
  }

  /// n bytes at one run of addresses, at home or on a stitch; or how many are missing.
  [[nodiscard]] result<outcome> one_run(stream_index user, bytes n) noexcept {
    if (!p_->space.home().reserve_blocks(2)) return failure(errc::out_of_host_memory, "plan");
    if (block* const b = p_->space.find(user, area::large, n)) {
      return outcome{&p_->space.carve(*b, b->begin, n, block_state::taken), 0};
    }
    if (!stitches(n)) return outcome{nullptr, n};
    result<block*> const b = stitch_->reuse(user, n, block_alignment);
    if (!b) return failure(b.error());
    return *b != nullptr ? outcome{*b, 0} : stitch_->make(user, n, block_alignment);
  }

  /// Free runs where they lie, largest first, until there is room for `n` bytes and what walls and ragged ends lose.
  void add_runs(stream_index user, bytes n) {
    std::vector<block*> runs;
    p_->space.each_free(user, smallest_run, [&runs](block& b) { runs.push_back(&b); });
    std::ranges::sort(runs, [](block const* a, block const* b) {
      return a->size != b->size ? a->size > b->size : a->begin < b->begin;
    });
    bytes found = 0;
    for (block* const b : runs) {
      if (found >= n + n / 2) break;
      found += b->size;
      segments_.reserve(segments_.size() + 1);
      chains_.reserve(chains_.size() + 1);
      if (!p_->space.home().reserve_blocks(2)) throw std::bad_alloc();
      add(p_->space.carve(*b, b->begin, b->size, block_state::taken));
    }
  }

  /// A block that is taken, or a stitch's, becomes the next segment. Should it throw, the memory has gone back.
  void add(block& b) {
    bytes const offset = segments_.empty() ? 0 : segments_.back().offset + segments_.back().size + wall;
    try {
      segments_.push_back({b.begin, b.size, offset});
      chains_.push_back({});
    } catch (std::bad_alloc const&) {
      if (segments_.size() > chains_.size()) segments_.pop_back();
      tick const stamp = p_->space.time().stamp(b.on);
      if (b.view != nullptr) stitch_->end(b, b.on, stamp);
      else (void)p_->space.give_back(b, b.on, stamp);
      throw;
    }
    size_ += b.size;
    adopt(chains_.back(), b);
  }

  void adopt(chain& c, block& b) noexcept {
    b.state = block_state::taken;
    taken_ += b.size;
    b.requested = 0;
    if (b.view == nullptr) {
      c.taken = &b;
      b.next_taken = nullptr;
      return;
    }
    c.viewed = &b;
    c.taken = std::exchange(b.next_taken, nullptr);
    bytes offset = 0;
    for (block* t = c.taken; t != nullptr; t = t->next_taken) {
      t->requested = offset;
      offset += t->size;
    }
  }

  [[nodiscard]] result<bool> take(std::size_t i, stream_index user) noexcept {
    plan::segment const& s = segments_[i];
    result<block*> b = stitch_->reuse_at(s.at, user, s.size, true);
    if (b && *b == nullptr) {
      b = p_->space.isolate_at(s.at, s.size, [this, user](chunk& c, address at, bytes n) noexcept {
        return p_->space.usable(user, c, at, n);
      });
    }
    if (!b) return failure(b.error());
    if (*b == nullptr) return false;
    adopt(chains_[i], **b);
    return true;
  }

  /// Cuts the first n bytes off the block at `link`, which points to them then.
  void split(block*& link, bytes n) noexcept {
    block& rest = *link;
    block& front = p_->space.home().split_front(rest, n);
    front.requested = rest.requested;
    front.next_taken = &rest;
    rest.requested += n;
    link = &front;
  }

  /// All of it has gone back, the last part under `stamp`; a stream that was retired gives older ones.
  /// The segment is no part of the arena any more. Precondition: nothing of it is taken.
  void give_up(std::size_t i) noexcept {
    size_ -= segments_[i].size;
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
    chains_.erase(chains_.begin() + static_cast<std::ptrdiff_t>(i));
    ++claims_;
  }

  void end_view(std::size_t i, tick stamp) noexcept {
    chain& c = chains_[i];
    if (block* const b = std::exchange(c.viewed, nullptr)) stitch_->end(*b, b->on, std::max(c.stamp, stamp));
    c.stamp = 0;
  }

  [[nodiscard]] std::size_t segment_at(address at) const noexcept {
    std::size_t i = 0;
    while (at < segments_[i].at || at >= segments_[i].at + segments_[i].size) ++i;
    return i;
  }

  void set_bounds() noexcept {
    low_ = high_ = address{};
    for (plan::segment const& s : segments_) {
      if (low_ == address{} || s.at < low_) low_ = s.at;
      high_ = std::max(high_, s.at + s.size);
    }
  }

  parts* p_;
  stitcher<Config>* stitch_;
  grower<Config>* grow_;
  std::vector<plan::segment> segments_;
  std::vector<chain> chains_;
  std::uint64_t claims_ = 0;
  bytes size_ = 0;
  bytes taken_ = 0;
  bytes wanted_ = 0;
  address low_{}, high_{};
};

}  // namespace gmlake
