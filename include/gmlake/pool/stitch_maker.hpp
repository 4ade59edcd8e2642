#pragma once
/// What ordinary and movable stitches have in common: the free memory that one could take, a block on it, and the
/// memory given back.

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/pool/pool_parts.hpp"

namespace gmlake {

/// What came of an attempt: a block, or how many bytes were missing.
struct stitched {
  block* served = nullptr;
  bytes shortfall = 0;
};

template <PoolConfig Config>
class stitch_maker {
 public:
  using parts = pool_parts<Config>;

  explicit stitch_maker(parts& p) noexcept : p_(&p) {}

 protected:
  /// Who asks for memory: for whose work, who uses it first, and whether that one may wait on the device for others.
  struct claim {
    stream_index user;
    stream_index first;
    bool waits = false;
  };

  /// Smaller free parts of chunks are not worth a handle.
  static constexpr bytes smallest_extent = 64_KiB;

  /// Everything that a stitch could take for the user at once, and room for the choice. False for want of host memory.
  [[nodiscard]] bool collect(claim who) noexcept {
    free_.clear();
    whole_.clear();
    tails_.clear();
    heads_.clear();
    try {
      auto const add = [this](block& b) { free_.push_back(&b); };
      if (who.waits) p_->space.each_large(smallest_extent, add);
      else p_->space.each_usable(who.user, smallest_extent, add);
      std::ranges::sort(free_, [](block const* a, block const* b) {
        return a->size != b->size ? a->size > b->size : a->begin < b->begin;
      });
      for (block const* b : free_) add_extents(*b);
      chosen_.resize(whole_.size() + 2);
    } catch (std::bad_alloc const&) {
      return false;
    }
    return true;
  }

  /// The stitch policy's choice of n bytes among these and the candidates' free ends and beginnings.
  [[nodiscard]] stitch_choice choose(std::span<extent> whole, bytes n) noexcept {
    return p_->stitch.choose({whole, tails_, heads_}, n, chosen_);
  }
  /// What was chosen; stale after the next `collect`.
  [[nodiscard]] std::span<extent const> chosen(stitch_choice const& c) const noexcept {
    return std::span<extent const>(chosen_).first(c.shortfall > 0 ? 0 : c.count);
  }

  void add_extents(block const& b) {
    address const end = b.end();
    chunk* c = b.first_chunk;
    if (c->home < b.begin) {
      bytes const offset = b.begin - c->home;
      if (c->end() <= end) tails_.push_back({c, offset, c->size - offset});
      c = c->next;
    }
    for (; c != nullptr && c->home < end; c = c->next) {
      if (c->end() <= end) whole_.push_back({c, 0, c->size});
      else heads_.push_back({c, 0, end - c->home});
    }
  }

  /// A block of n bytes on a new stitch of these extents, which is movable where it has `room` of its own.
  [[nodiscard]] result<stitched> on_new(stream_index user, bytes n, std::span<extent const> from, bytes alignment,
                                        bytes room) noexcept {
    if (!prepare(from)) return failure(errc::out_of_host_memory, "stitch");
    result<stitch*> const mapped = p_->stitches.map(from, alignment > p_->granule ? alignment : 0, room);
    if (!mapped) return failure(mapped.error());
    stitch& s = **mapped;
    s.movable = room > 0;
    p_->observer.stitched({s.begin, s.size, s.count});
    return stitched{&serve(user, s, n), 0};
  }

  /// Calls `f(chunk, begin, size)` for each contiguous run of homes beneath the first n bytes of a stitch, until it
  /// says no.
  template <class F>
  static bool each_run(stitch& s, bytes n, F&& f) noexcept {
    bytes offset = s.base;
    for (std::size_t i = 0; n > 0;) {
      chunk& first = *s.chunks[i];
      address const begin = first.home + offset;
      bytes run = first.size - offset;
      while (++i < s.count && run < n && s.chunks[i]->home == begin + run && s.chunks[i]->in == first.in) {
        run += s.chunks[i]->size;
      }
      bytes const size = run < n ? run : n;
      if (!f(first, begin, size)) return false;
      n -= size;
      offset = 0;
    }
    return true;
  }

  /// Nodes for all that `serve` will split. False for want of host memory.
  [[nodiscard]] bool prepare(stitch& s, bytes n) noexcept {
    std::size_t blocks = 1;
    (void)each_run(s, n, [&](chunk& c, address begin, bytes size) noexcept {
      blocks += 2 + p_->space.count(c, begin, size);
      return true;
    });
    return p_->space.home().reserve_blocks(blocks);
  }

  /// The same for a stitch of these extents.
  [[nodiscard]] bool prepare(std::span<extent const> from) noexcept {
    std::size_t blocks = 1;
    for (extent const& e : from) blocks += 2 + p_->space.count(*e.of, e.begin(), e.size);
    return p_->space.home().reserve_blocks(blocks);
  }

  /// A block of n bytes on a stitch that was woken, or is new. Precondition: nodes prepared.
  [[nodiscard]] block& serve(stream_index user, stitch& s, bytes n) noexcept {
    block& b = p_->space.home().acquire_block();
    b.begin = s.begin + s.base;
    b.size = n;
    b.on = user;
    b.state = block_state::live;
    take(s, b);
    p_->stitches.serve(s, b);
    return b;
  }

  /// Takes the memory beneath the stitch's first bytes for its block.
  void take(stitch& s, block& b) noexcept {
    block** tail = &b.next_taken;
    (void)each_run(s, b.size, [&](chunk& c, address begin, bytes size) noexcept {
      tail = p_->space.take(c, begin, size, tail);
      return true;
    });
  }

  void give_back_taken(block& b, stream_index on, tick stamp) noexcept {
    for (block* taken = std::exchange(b.next_taken, nullptr); taken != nullptr;) {
      block& piece = *taken;
      taken = std::exchange(piece.next_taken, nullptr);
      p_->space.give_back(piece, on, stamp);
    }
  }

  parts* p_;
  std::vector<block*> free_;
  std::vector<extent> whole_, tails_, heads_;  ///< candidates, as collected last
  std::vector<extent> chosen_;
};

}  // namespace gmlake
