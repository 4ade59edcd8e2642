#pragma once
/// Serves blocks from stitches: an idle one whose memory is free, or a new one from what the stitch policy chooses.

#include <algorithm>
#include <new>
#include <vector>

#include "gmlake/pool/pool_parts.hpp"

namespace gmlake {

template <PoolConfig Config>
class stitcher {
 public:
  using parts = pool_parts<Config>;

  /// What came of an attempt: a block, or how many bytes were missing.
  struct outcome {
    block* served = nullptr;
    bytes shortfall = 0;
  };

  explicit stitcher(parts& p) noexcept : p_(&p) {}

  /// A block of n bytes on an idle stitch; null where none has all the memory it needs free.
  [[nodiscard]] result<block*> reuse(stream_index user, bytes n, bytes alignment) noexcept {
    stitch* const s = p_->stitches.find(n, [&](stitch& idle) noexcept {
      return p_->stitch.reuses(idle.capacity(), n) && is_aligned(idle.begin + idle.base, alignment) &&
             each_run(idle, n, [&](chunk& c, address begin, bytes size) noexcept {
               return p_->space.usable(user, c, begin, size);
             });
    });
    if (s == nullptr) return nullptr;
    if (!prepare(*s, n)) return failure(errc::out_of_host_memory, "stitch");
    p_->stitches.wake(*s);
    p_->observer.reused({s->begin, s->size, s->count});
    return &serve(user, *s, n);
  }

  /// A block of n bytes at `at`, on the idle stitch that serves blocks there; null where there is none, or its memory
  /// is not all free; where `ordered`, at once for the user, else in whatever order it was used.
  [[nodiscard]] result<block*> reuse_at(address at, stream_index user, bytes n, bool ordered) noexcept {
    for (stitch& s : p_->stitches.all()) {
      if (s.begin + s.base != at || s.serves != nullptr || s.capacity() < n) continue;
      bool const free = each_run(s, n, [&](chunk& c, address begin, bytes size) noexcept {
        return ordered ? p_->space.usable(user, c, begin, size) : p_->space.is_free(c, begin, size);
      });
      if (!free) return nullptr;
      if (!prepare(s, n)) return failure(errc::out_of_host_memory, "stitch");
      p_->stitches.wake(s);
      p_->observer.reused({s.begin, s.size, s.count});
      return &serve(user, s, n);
    }
    return nullptr;
  }

  /// A block of n bytes on a new stitch of free memory, or the shortfall. Errors: the driver's, and
  /// `out_of_host_memory`; then nothing has changed.
  [[nodiscard]] result<outcome> make(stream_index user, bytes n, bytes alignment) noexcept {
    if (!collect(user)) return failure(errc::out_of_host_memory, "stitch");
    stitch_candidates from{whole_, tails_, heads_};
    if (alignment > block_alignment) from.tails = {};
    stitch_choice const choice = p_->stitch.choose(from, n, chosen_);
    if (choice.shortfall > 0) return outcome{nullptr, choice.shortfall};
    result<stitch*> const mapped =
        p_->stitches.map(std::span<extent const>(chosen_).first(choice.count), alignment > p_->granule ? alignment : 0);
    if (!mapped) return failure(mapped.error());
    if (!prepare(**mapped, n)) {
      p_->stitches.unmap(**mapped);
      return failure(errc::out_of_host_memory, "stitch");
    }
    p_->observer.stitched({(*mapped)->begin, (*mapped)->size, (*mapped)->count});
    return outcome{&serve(user, **mapped, n), 0};
  }

  /// The block of a stitch has been freed: its memory goes back to the lake, the mapping into the cache. The block's
  /// node is released.
  void end(block& b, stream_index on, tick stamp) noexcept {
    for (block* taken = b.next_taken; taken != nullptr;) {
      block& piece = *taken;
      taken = std::exchange(piece.next_taken, nullptr);
      (void)p_->space.give_back(piece, on, stamp);
    }
    p_->stitches.rest(*b.view, stamp);
    p_->space.home().release_block(b);
  }

 private:
  /// Smaller free parts of chunks are not worth a handle.
  static constexpr bytes smallest_extent = 64_KiB;

  /// Everything that a stitch could take for the user at once, and room for the choice. False for want of host memory.
  [[nodiscard]] bool collect(stream_index user) noexcept {
    free_.clear();
    whole_.clear();
    tails_.clear();
    heads_.clear();
    try {
      p_->space.each_usable(user, smallest_extent, [this](block& b) { free_.push_back(&b); });
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

  [[nodiscard]] block& serve(stream_index user, stitch& s, bytes n) noexcept {
    block& b = p_->space.home().acquire_block();
    b.begin = s.begin + s.base;
    b.size = n;
    b.on = user;
    b.state = block_state::live;
    block** tail = &b.next_taken;
    (void)each_run(s, n, [&](chunk& c, address begin, bytes size) noexcept {
      tail = p_->space.take(c, begin, size, tail);
      return true;
    });
    p_->stitches.serve(s, b);
    return b;
  }

  parts* p_;
  std::vector<block*> free_;
  std::vector<extent> whole_, tails_, heads_, chosen_;
};

}  // namespace gmlake
