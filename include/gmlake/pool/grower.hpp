#pragma once
/// Takes memory from the device: in which range, in which chunks, up to the limit.

#include <algorithm>
#include <limits>

#include "gmlake/core/alignment.hpp"
#include "gmlake/pool/pool_parts.hpp"

namespace gmlake {

template <PoolConfig Config>
class grower {
 public:
  using parts = pool_parts<Config>;

  explicit grower(parts& p) noexcept : p_(&p) {}

  /// Creates `missing` bytes or more, which need not be contiguous; the memory is free for `user`, and what was
  /// created before a failure stays. Errors: `out_of_memory` (the device's or the limit), `out_of_addresses`, the
  /// driver's. `movable`: for a movable block.
  [[nodiscard]] result<void> add(stream_index user, area a, bytes missing, bool movable = false) noexcept {
    if (result<void> room = check(missing); !room) return room;
    bytes const size = chunk_size(a, missing, movable);
    if (separate(a)) return add_separate(user, a, size, missing);
    return make(user, a, {}, size, missing);
  }

  /// Creates memory so that a contiguous free block of n bytes is there: what lies free at the end of the area's range
  /// counts where it is on the user's own shelf. Errors as for `add`.
  [[nodiscard]] result<void> add_contiguous(stream_index user, area a, bytes n) noexcept {
    p_->space.shelve_fresh();
    range* const r = separate(a) ? nullptr : current(a);
    bytes at_end = r != nullptr ? free_end(*r, user) : 0;
    if (at_end >= n) at_end = 0;  // the split policy has overlooked it, as it may
    bytes const missing = n - at_end;
    if (result<void> room = check(missing); !room) return room;
    bytes const size = chunk_size(a, missing);
    if (separate(a)) return add_separate(user, a, size, n);
    if (r != nullptr && round_up(missing, size) <= r->size - r->grown)
      return make(user, a, {.end_of = r}, size, missing);
    if (block* const hole = hole_for(a, round_up(n, size))) return make(user, a, {.hole = hole}, size, n);
    result<range*> const fresh = open(a, round_up(n, size));
    if (!fresh) return failure(fresh.error());
    return make(user, a, {.end_of = *fresh}, size, n);
  }

  /// The size of chunks for movable blocks under the present limit, in bytes.
  [[nodiscard]] bytes movable_chunk() noexcept {
    if (p_->options.movable_chunk > 0) return in_granules(p_->options.movable_chunk);
    return in_granules(p_->growth.chunk_size(
        {.reserved = p_->space.home().reserved(), .headroom = headroom(), .granule = p_->granule, .movable = true}));
  }

  /// A live block on chunks that are its own: of one handle, or as the growth policy sizes them. n is a multiple of the
  /// granule. Errors as for `add`.
  [[nodiscard]] result<block*> add_own(stream_index user, bytes n, bool one_handle) noexcept {
    if (result<void> room = check(n); !room) return failure(room.error());
    bytes const size = one_handle || placed ? n : std::min(n, chunk_size(area::large, n));
    result<range*> const opened = p_->space.home().open_range(n, area::own);
    if (!opened) return failure(opened.error());
    range& r = **opened;
    while (r.grown < n) {
      result<block*> const b = shared_extend(r, std::min(size, n - r.grown));
      if (!b) {
        for (block* left = r.first; left != nullptr;) {
          block& gone = *left;
          left = left->next;
          p_->space.give_back(gone, user, 0);
        }
        if (r.first == nullptr) p_->space.home().close_range(r);
        return failure(b.error());
      }
      p_->observer.created((*b)->begin, (*b)->size);
      if (r.first != *b) p_->space.home().absorb_next(*r.first);
    }
    r.first->state = block_state::live;
    r.first->on = user;
    return r.first;
  }

 private:
  static constexpr bool placed = PlacedBackend<typename Config::backend>;

  [[nodiscard]] bool separate(area a) const noexcept { return placed || (a == area::large && p_->growth.separate()); }

  [[nodiscard]] bytes headroom() const noexcept {
    bytes const held = p_->space.home().reserved();
    bytes const own = p_->options.limit > held ? p_->options.limit - held : 0;
    return p_->options.shared != nullptr ? std::min(own, p_->options.shared->left()) : own;
  }

  /// Part of what is shared with other pools, for one chunk; given back unless it comes to be.
  [[nodiscard]] bool take_share(bytes n) noexcept {
    return p_->options.shared == nullptr || p_->options.shared->take(n);
  }
  void give_share(bytes n) noexcept {
    if (p_->options.shared != nullptr) p_->options.shared->give(n);
  }

  [[nodiscard]] result<void> check(bytes missing) const noexcept {
    if (!fits_aligned(missing, p_->granule) || align_up(missing, p_->granule) > headroom()) {
      return failure(errc::out_of_memory, "limit");
    }
    if constexpr (MeasuredBackend<typename Config::backend>) {
      if (missing < worth_asking) return {};
      result<device_memory> const device = p_->backend.memory_info();
      if (device && device->free < missing) return failure(errc::out_of_memory, "device memory");
    }
    return {};
  }

  [[nodiscard]] bytes chunk_size(area a, bytes missing, bool movable = false) noexcept {
    bytes wanted = p_->options.small_chunk;
    if (a != area::small) {
      wanted = p_->growth.chunk_size({.deficit = missing,
                                      .reserved = p_->space.home().reserved(),
                                      .headroom = headroom(),
                                      .freed = std::exchange(p_->freed_since_growth, 0),
                                      .granule = p_->granule,
                                      .movable = movable});
    }
    if (movable && p_->options.movable_chunk > 0) wanted = p_->options.movable_chunk;
    if (placed) wanted = std::max(missing, std::min(wanted, align_down(headroom(), p_->granule)));
    return in_granules(wanted);
  }
  [[nodiscard]] bytes in_granules(bytes chunk) const noexcept {
    return align_up(std::clamp(chunk, p_->granule, largest_chunk), p_->granule);
  }
  /// Where chunks are to go: the end of a range, the beginning of a hole, or wherever there is room.
  struct target {
    range* end_of = nullptr;
    block* hole = nullptr;
  };

  /// Creates chunks until `missing` bytes are there.
  [[nodiscard]] result<void> make(stream_index user, area a, target t, bytes size, bytes missing) noexcept {
    while (missing > 0) {
      result<bytes> const made = one(user, a, t, size, missing);
      if (!made) return failure(made.error());
      missing -= std::min(missing, *made);
    }
    return {};
  }

  /// The same in a range of its own.
  [[nodiscard]] result<void> add_separate(stream_index user, area a, bytes size, bytes missing) noexcept {
    result<range*> own = p_->space.home().open_range(round_up(missing, size), a);
    if (!own && placed && own.error().code == errc::out_of_memory && size > align_up(missing, p_->granule)) {
      size = align_up(missing, p_->granule);
      own = p_->space.home().open_range(size, a);
    }
    if (!own) return failure(own.error());
    result<void> done = make(user, a, {.end_of = *own}, size, missing);
    if ((*own)->first == nullptr) p_->space.home().close_range(**own);
    return done;
  }

  /// One chunk of `size` bytes, or less where the limit or the device has no more.
  [[nodiscard]] result<bytes> one(stream_index user, area a, target t, bytes size, bytes missing) noexcept {
    bytes const least = align_up(std::min(missing, size), p_->granule);
    bytes n = std::min(size, align_down(headroom(), p_->granule));
    if (n < least) return failure(errc::out_of_memory, "limit");
    result<block*> made = shared_place(a, t, n);
    if (!made && made.error().code == errc::out_of_memory && least < n && !placed) {
      n = least;
      made = shared_place(a, t, n);
    }
    if (!made) return failure(made.error());
    p_->observer.created((*made)->begin, n);
    p_->space.give_back(**made, user, 0);
    return n;
  }

  [[nodiscard]] result<block*> shared_extend(range& r, bytes n) noexcept {
    if (!take_share(n)) return failure(errc::out_of_memory, "shared limit");
    result<block*> made = p_->space.home().extend(r, n);
    if (!made) give_share(n);
    return made;
  }
  [[nodiscard]] result<block*> shared_place(area a, target t, bytes n) noexcept {
    if (!take_share(n)) return failure(errc::out_of_memory, "shared limit");
    result<block*> made = place(a, t, n);
    if (!made) give_share(n);
    return made;
  }

  [[nodiscard]] result<block*> place(area a, target t, bytes n) noexcept {
    auto& home = p_->space.home();
    if (t.end_of != nullptr) return home.extend(*t.end_of, n);
    if (t.hole == nullptr) t.hole = hole_for(a, n);
    if (t.hole != nullptr) return home.fill(*t.hole, n);
    range* r = current(a);
    if (r == nullptr || r->size - r->grown < n) {
      result<range*> const fresh = open(a, n);
      if (!fresh) return failure(fresh.error());
      r = *fresh;
    }
    return home.extend(*r, n);
  }

  /// The range that the area grows in.
  [[nodiscard]] range* current(area a) noexcept {
    auto& ranges = p_->space.home().ranges();
    for (auto i = ranges.rbegin(); i != ranges.rend(); ++i) {
      if (i->kind == a) return &*i;
    }
    return nullptr;
  }

  [[nodiscard]] static bytes free_end(range const& r, stream_index user) noexcept {
    block const* const last = r.last;
    bool const usable = last != nullptr && last->state == block_state::free && !last->parked &&
                        (last->on == user || last->on == nobody);
    return usable ? last->size : 0;
  }

  [[nodiscard]] block* hole_for(area a, bytes n) noexcept {
    for (block& hole : p_->space.home().holes()) {
      if (hole.in->kind == a && hole.size >= n) return &hole;
    }
    return nullptr;
  }

  /// A range with room for n bytes and more to come; where so many addresses can't be had, for n bytes only.
  [[nodiscard]] result<range*> open(area a, bytes n) noexcept {
    bytes const wanted =
        a == area::small ? std::min(p_->options.home_addresses, small_addresses) : p_->options.home_addresses;
    bytes const size = std::max(align_up(wanted, p_->granule), n);
    result<range*> fresh = p_->space.home().open_range(size, a);
    if (!fresh && size > n) fresh = p_->space.home().open_range(n, a);
    return fresh;
  }

  static constexpr bytes small_addresses = 16_GiB;
  /// The device is asked before memory of this size is taken piece by piece, so that a request which it can't serve
  /// leaves it what it has. Below, what a failure leaves in the pool is no loss.
  static constexpr bytes worth_asking = 1_GiB;
  /// Nobody means a chunk larger than this.
  static constexpr bytes largest_chunk = 1_TiB;

  parts* p_;
};

}  // namespace gmlake
