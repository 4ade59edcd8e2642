#pragma once
/// The memory that plans place blocks in: taken from the lake like a stitch's extents, one long view of it first and,
/// where that is too short, other free runs of addresses where they lie. Held or let go as a whole; while it is being
/// let go, parts go back as they become idle. Afterwards the view's mapping stays in the stitch cache, so that the next
/// hold needs no driver call.
///
/// Invariant: each segment's pieces are what is still taken of it, `taken` blocks of the lake in a tree by offset. So
/// a part goes back in O(log n), however many pieces a segment is in, and nothing is allocated but blocks' nodes.

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/core/intrusive.hpp"
#include "gmlake/plan/track.hpp"
#include "gmlake/pool/grower.hpp"
#include "gmlake/pool/stitcher.hpp"

namespace gmlake {

template <PoolConfig Config>
class arena {
 public:
  using parts = pool_parts<Config>;
  using outcome = stitched;

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
  [[nodiscard]] bool held() const noexcept { return taken_ + parted_ == size_ && size_ > 0; }
  /// Some of it went back while it was held: not all of its segments is there.
  [[nodiscard]] bool parted() const noexcept { return parted_ != 0; }
  /// Whether [begin, end) lies in one segment. O(log n) in the segments.
  [[nodiscard]] bool contains(address begin, address end) const noexcept {
    auto const after = segment_above(begin);
    if (after == by_address_.begin()) return false;
    plan::segment const& s = segments_[*std::prev(after)];
    return end <= s.at + s.size;
  }
  /// Walks the segments and all their pieces: null, or the invariant that is broken.
  [[nodiscard]] char const* find_fault() const noexcept {
    if (by_address_.size() != segments_.size()) return "an arena's segments are known by address";
    address low{};
    for (std::size_t const i : by_address_) {
      if (segments_[i].at < low) return "an arena's segments are in order and don't overlap";
      low = segments_[i].at + segments_[i].size;
    }
    bytes taken = 0;
    for (std::size_t i = 0; i < holdings_.size(); ++i) {
      bytes end = 0;
      for (block const& b : holdings_[i].taken) {
        if (b.state != block_state::taken || b.in == nullptr) return "an arena's memory is taken";
        if (b.requested < end) return "an arena's memory is in order";
        end = b.requested + b.size;
        taken += b.size;
      }
      if (end > segments_[i].size) return "an arena's memory lies in its segments";
    }
    return taken == taken_ ? nullptr : "an arena's memory is counted";
  }
  /// Whether all of [at, at + n) lies in a segment and is taken now. O(log n) in the pieces, and those it touches.
  [[nodiscard]] bool holds(address at, bytes n) const noexcept {
    if (!contains(at, at + n)) return false;
    std::size_t const i = segment_at(at);
    pieces const& taken = holdings_[i].taken;
    bytes low = at - segments_[i].at;
    bytes const high = low + n;
    for (auto b = first_above(taken, low); b != taken.end() && b->requested <= low && low < high; ++b) {
      low = b->requested + b->size;
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
    if (!reserve_segment()) return failure(errc::out_of_host_memory, "plan");
    result<outcome> first = one_run(user, n);
    if (first && first->served == nullptr && grows) {
      result<void> const more =
          stitches(n) ? grow_->add(user, area::large, first->shortfall) : grow_->add_contiguous(user, area::large, n);
      if (!more) return failure(more.error());
      first = one_run(user, n);
    }
    if (first && first->served == nullptr && first->shortfall < n) first = one_run(user, n - first->shortfall);
    if (!first) return failure(first.error());
    if (first->served != nullptr) add(*first->served);
    try {
      if (size_ < n && !grows) add_runs(user, n - size_);
    } catch (std::bad_alloc const&) {
      let_go(user, p_->space.time().stamp(user));
      forget();
      return failure(errc::out_of_host_memory, "plan");
    }
    order_segments();
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
    parted_ = 0;
    holding all = size_ > 0 ? holding::all : holding::nothing;
    for (std::size_t i = 0; i < segments_.size();) {
      result<bool> const there = take(i, user);
      if (!there) {
        let_go(user, p_->space.time().stamp(user));
        if (all == holding::part) forget();  // places that the caller is not told of have changed
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
    if (all == holding::part) order_segments();
    return all;
  }

  /// Gives what is taken of [at, at + n), which lies in a segment, back to the lake. False for want of host memory:
  /// then the rest stays. O(log n) in the pieces for each that goes.
  [[nodiscard]] bool give_back(address at, bytes n, stream_index on, tick stamp) noexcept {
    std::size_t const i = segment_at(at);
    holdings& h = holdings_[i];
    bytes const low = at - segments_[i].at;
    bytes const high = low + n;
    for (auto piece = first_above(h.taken, low); piece != h.taken.end() && piece->requested < high;) {
      if (!p_->space.home().reserve_blocks(2)) return false;
      if (piece->requested < low) (void)split(h, *piece, low - piece->requested);
      if (piece->requested + piece->size > high) piece = split(h, *piece, high - piece->requested);
      piece = part_with(h, piece, on, stamp);
    }
    h.stamp = std::max(h.stamp, stamp);
    if (h.taken.empty()) end_view(h, stamp);
    return true;
  }

  /// The same of one that stays held, and will not need that part again while it is. Whether some went.
  bool part_early(address at, bytes n, stream_index on, tick stamp) noexcept {
    bytes const before = taken_;
    (void)give_back(at, n, on, stamp);
    parted_ += before - taken_;
    return taken_ < before;
  }

  /// Gives back all that is still taken.
  void let_go(stream_index on, tick stamp) noexcept {
    for (holdings& h : holdings_) {
      for (auto piece = h.taken.begin(); piece != h.taken.end();) piece = part_with(h, piece, on, stamp);
      end_view(h, stamp);
    }
  }

  /// A block at `at`, which lies in a segment, as it would be if the lake had served it: on its view, or on the chunks
  /// beneath. O(log n) in the pieces, and linear in the chunks from the piece's beginning to the block.
  [[nodiscard]] block as_block(address at, bytes n, bytes requested, stream_index on) const noexcept {
    std::size_t const i = segment_at(at);
    holdings const& h = holdings_[i];
    block b;
    b.begin = at;
    b.size = n;
    b.requested = requested;
    b.on = on;
    b.state = block_state::live;
    if (h.viewed != nullptr) {
      b.view = h.viewed->view;
      return b;
    }
    auto const beneath = first_above(h.taken, at - segments_[i].at);
    if (beneath == h.taken.end() || at < beneath->begin) return b;
    b.first_chunk = beneath->first_chunk;
    while (b.first_chunk->end() <= at) b.first_chunk = b.first_chunk->next;
    return b;
  }

  /// Another claim may find other memory. Precondition: nothing is taken.
  void forget() noexcept {
    ++claims_;
    segments_.clear();
    holdings_.clear();
    by_address_.clear();
    size_ = parted_ = 0;
    low_ = high_ = address{};
  }

 private:
  struct by_offset {
    [[nodiscard]] bool operator()(block const& a, block const& b) const noexcept { return a.requested < b.requested; }
    [[nodiscard]] bool operator()(bytes a, block const& b) const noexcept { return a < b.requested; }
  };
  /// Split policies use the hook of free blocks only.
  using pieces = hooked_set<block, &block::by_size, by_offset>;
  /// What is held of one segment.
  struct holdings {
    pieces taken;             ///< blocks of the lake
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
      if (!reserve_segment() || !p_->space.home().reserve_blocks(2)) throw std::bad_alloc();
      add(p_->space.carve(*b, b->begin, b->size, block_state::taken));
    }
  }

  /// Makes the next `add` succeed. False for want of host memory.
  [[nodiscard]] bool reserve_segment() noexcept {
    try {
      reserve_another(segments_);
      reserve_another(holdings_);
      reserve_another(by_address_);
    } catch (std::bad_alloc const&) {
      return false;
    }
    return true;
  }
  template <class T>
  static void reserve_another(std::vector<T>& v) {
    if (v.size() == v.capacity()) v.reserve(2 * v.size() + 1);
  }

  /// A block that is taken, or a stitch's, becomes the next segment. Precondition: reserved.
  void add(block& b) noexcept {
    bytes const offset = segments_.empty() ? 0 : segments_.back().offset + segments_.back().size + wall;
    segments_.push_back({b.begin, b.size, offset});
    holdings_.emplace_back();
    by_address_.push_back(by_address_.size());
    size_ += b.size;
    adopt(holdings_.back(), b);
  }

  void adopt(holdings& h, block& b) noexcept {
    b.state = block_state::taken;
    taken_ += b.size;
    block* next = &b;
    if (b.view != nullptr) {
      h.viewed = &b;
      next = std::exchange(b.next_taken, nullptr);
    }
    bytes offset = 0;
    while (next != nullptr) {
      block& piece = *next;
      next = std::exchange(piece.next_taken, nullptr);
      piece.requested = offset;
      offset += piece.size;
      h.taken.push_back(piece);
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
    adopt(holdings_[i], **b);
    return true;
  }

  /// The first piece that ends above an offset.
  template <class Pieces>
  [[nodiscard]] static auto first_above(Pieces& taken, bytes low) noexcept {
    auto const next = taken.upper_bound(low, by_offset{});
    if (next == taken.begin()) return next;
    auto const before = std::prev(next);
    return before->requested + before->size > low ? before : next;
  }
  /// Cuts the first n bytes off a piece, as a piece of their own: which. Precondition: a node reserved.
  typename pieces::iterator split(holdings& h, block& rest, bytes n) noexcept {
    block& front = p_->space.home().split_front(rest, n);
    front.requested = rest.requested;
    rest.requested += n;
    return h.taken.insert_before(pieces::s_iterator_to(rest), front);
  }
  /// Gives a piece back to the lake: the one after it.
  typename pieces::iterator part_with(holdings& h, typename pieces::iterator piece, stream_index on,
                                      tick stamp) noexcept {
    block& gone = *piece;
    auto const next = h.taken.erase(piece);
    taken_ -= gone.size;
    p_->space.give_back(gone, on, stamp);
    return next;
  }

  /// The segment is no part of the arena any more. Precondition: nothing of it is taken.
  void give_up(std::size_t i) noexcept {
    size_ -= segments_[i].size;
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
    holdings_.erase(holdings_.begin() + static_cast<std::ptrdiff_t>(i));
    by_address_.pop_back();
    ++claims_;
  }

  /// All of it has gone back, the last part under `stamp`; a stream that was retired gives older ones.
  void end_view(holdings& h, tick stamp) noexcept {
    if (block* const b = std::exchange(h.viewed, nullptr)) stitch_->end(*b, b->on, std::max(h.stamp, stamp));
    h.stamp = 0;
  }

  /// In `by_address_`: the first segment that begins above `at`.
  [[nodiscard]] auto segment_above(address at) const noexcept {
    return std::ranges::upper_bound(by_address_, at, {}, [this](std::size_t i) { return segments_[i].at; });
  }
  /// Precondition: one contains it.
  [[nodiscard]] std::size_t segment_at(address at) const noexcept { return *std::prev(segment_above(at)); }

  /// Segments have been added or given up: they are found by address again.
  void order_segments() noexcept {
    std::iota(by_address_.begin(), by_address_.end(), std::size_t{0});
    std::ranges::sort(by_address_, {}, [this](std::size_t i) { return segments_[i].at; });
    low_ = high_ = address{};
    if (segments_.empty()) return;
    plan::segment const& last = segments_[by_address_.back()];
    low_ = segments_[by_address_.front()].at;
    high_ = last.at + last.size;
  }

  parts* p_;
  stitcher<Config>* stitch_;
  grower<Config>* grow_;
  std::vector<plan::segment> segments_;
  std::vector<holdings> holdings_;       ///< by segment
  std::vector<std::size_t> by_address_;  ///< the segments
  std::uint64_t claims_ = 0;
  bytes size_ = 0;
  bytes taken_ = 0;
  bytes parted_ = 0;  ///< went back early since it is held
  bytes wanted_ = 0;
  address low_{}, high_{};
};

}  // namespace gmlake
