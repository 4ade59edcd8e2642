#pragma once
/// Serves blocks from stitches: an idle one whose memory is free, or a new one from what the stitch policy chooses.

#include <algorithm>
#include <new>
#include <tuple>
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
             usable(user, idle, n);
    });
    if (s == nullptr) return nullptr;
    if (!prepare(*s, n)) return failure(errc::out_of_host_memory, "stitch");
    return &wake(user, *s, n);
  }

  /// A block of n bytes at `at`, on the idle stitch that serves blocks there; null where there is none, or its memory
  /// is not all free; where `ordered`, at once for the user, else in whatever order it was used.
  [[nodiscard]] result<block*> reuse_at(address at, stream_index user, bytes n, bool ordered) noexcept {
    for (stitch& s : p_->stitches.all()) {
      if (s.begin + s.base != at || s.serves != nullptr || s.capacity() < n) continue;
      bool const free =
          ordered ? usable(user, s, n) : each_run(s, n, [&](chunk& c, address begin, bytes size) noexcept {
            return p_->space.is_free(c, begin, size);
          });
      if (!free) return nullptr;
      if (!prepare(s, n)) return failure(errc::out_of_host_memory, "stitch");
      return &wake(user, s, n);
    }
    return nullptr;
  }

  /// A block of n bytes on a new stitch of free memory, or the shortfall. Errors: the driver's, and
  /// `out_of_host_memory`; then nothing has changed.
  [[nodiscard]] result<outcome> make(stream_index user, bytes n, bytes alignment) noexcept {
    result<std::span<extent const>> const from = choose({user, user}, n, alignment <= block_alignment, any_size, {});
    if (!from) return failure(from.error());
    if (from->empty()) return outcome{nullptr, shortfall_};
    return on_new(user, n, *from, alignment, 0);
  }

  /// A block of n bytes whose memory can be taken away and replaced, or the shortfall: on a movable stitch that is
  /// idle, or on a new one even where contiguous memory is free. Errors as for `make`.
  [[nodiscard]] result<outcome> make_movable(stream_index user, bytes n, bytes alignment, foresight const& f) noexcept {
    if (stitch* const idle = nearest(user, n, alignment, f); idle != nullptr) {
      stitch_event const was{idle->begin, idle->size, idle->count};
      p_->stitches.wake(*idle);
      result<bool> const whole = mend({user, user, true}, *idle, n, f);
      if (whole && *whole) {
        foresee(*idle, f);
        p_->observer.reused(was);
        return outcome{&serve(user, *idle, n), 0};
      }
      if (idle->count > 0) {
        p_->stitches.put_back(*idle);
      } else {
        p_->stitches.unmap(*idle);
        p_->observer.evicted(was);
      }
      if (!whole) return failure(whole.error());
    }
    claim const who{user, user, true};
    result<std::span<extent const>> from = choose_movable(who, n, any_size, f);
    if (from && !from->empty()) from = in_order(who, *from, n, any_size, f);
    if (!from) return failure(from.error());
    if (from->empty()) return outcome{nullptr, shortfall_};
    bytes largest = least_spare;
    for (extent const& e : whole_) largest = std::max(largest, e.of->size);
    for (extent const& e : heads_) largest = std::max(largest, e.of->size);
    result<outcome> made = on_new(user, n, *from, alignment, align_up(n, p_->granule) + largest);
    if (made && made->served != nullptr) foresee(*made->served->view, f);
    return made;
  }

  /// What is known of the block that a movable stitch serves.
  void foresee(stitch& s, foresight const& f) noexcept {
    note_wants(s);
    s.foreseen = f;
    note_wants(s);
  }

  /// Takes the memory from under a movable block and gives it to the lake, free for all; the block keeps its address.
  /// Precondition: no device work uses it any more. Error: the driver's; then nothing has changed.
  [[nodiscard]] result<void> vacate(block& b, vacating how) noexcept {
    stitch& s = *b.view;
    if (how == vacating::unmap) {
      if (result<void> done = unmap(s); !done) return done;
    }
    let_go(b, b.on, 0);
    s.behind = nobody;
    return {};
  }
  /// The same while work on `behind` may still use it, up to the stamp: free for who waits for that. Stays mapped.
  void vacate_behind(block& b, stream_index behind, tick stamp) noexcept {
    stitch& s = *b.view;
    std::uint64_t const until = s.foreseen.as != 0 && s.foreseen.until != foresight::never ? s.foreseen.until : 0;
    let_go(b, behind, stamp);
    s.behind = behind;
    s.behind_stamp = stamp;
    for (std::size_t i = 0; i < s.count; ++i) s.chunks[i]->ready = until;
  }
  /// Whether no device work uses a vacated stitch's addresses any more, as far as the host knows.
  [[nodiscard]] bool is_over(stitch const& s) const noexcept {
    return p_->space.time().passed(s.behind, s.behind_stamp);
  }

  /// Unmaps what is mapped of a stitch that serves a block or is vacated. Precondition and error as for `vacate`.
  [[nodiscard]] result<void> unmap(stitch& s) noexcept {
    if (s.count == 0) return {};
    stitch_event const gone{s.begin, s.size, s.count};
    if (result<void> done = p_->stitches.vacate(s); !done) return done;
    p_->observer.evicted(gone);
    return {};
  }

  /// Puts free memory under a vacated block, for work on `user`, or tells the shortfall. `by` uses it first: that is
  /// who waits for other streams, and `user` for it. Errors as for `make`.
  [[nodiscard]] result<outcome> refill(stream_index user, stream_index by, block& b) noexcept {
    stitch& s = *b.view;
    claim const who{user, by, true};
    if (s.count > 0) {
      stitch_event const was{s.begin, s.size, s.count};
      result<bool> const whole = mend(who, s, b.size, s.foreseen);
      if (s.count == 0) p_->observer.evicted(was);
      if (!whole) return failure(whole.error());
      if (*whole) {
        p_->observer.reused(was);
        s.vacated = false;
        note_wants(s);
        b.on = user;
        take(s, b);
        return outcome{&b, 0};
      }
    }
    bytes const largest = s.room - align_up(b.size, p_->granule);
    result<std::span<extent const>> from = choose_movable(who, b.size, largest, s.foreseen);
    if (from && !from->empty()) {
      if (s.count > 0 && !is_over(s)) return outcome{nullptr, 0};
      from = in_order(who, *from, b.size, largest, s.foreseen);
    }
    if (!from) return failure(from.error());
    if (from->empty()) return outcome{nullptr, shortfall_};
    if (!prepare(*from)) return failure(errc::out_of_host_memory, "stitch");
    if (result<void> done = unmap(s); !done) return failure(done.error());
    if (result<void> done = p_->stitches.fill(s, *from); !done) return failure(done.error());
    p_->observer.stitched({s.begin, s.size, s.count});
    note_wants(s);
    b.on = user;
    take(s, b);
    return outcome{&b, 0};
  }

  /// The block of a stitch has been freed: its memory goes back to the lake, the mapping into the cache; where nothing
  /// is mapped any more, the addresses go back to the device. The block's node is released.
  void end(block& b, stream_index on, tick stamp) noexcept {
    give_back_taken(b, on, stamp);
    stitch& s = *b.view;
    note_wants(s);
    // What was handed on may still be read there, and the stamp of a stream that is gone is an old one.
    if (s.count == 0) p_->stitches.discard(s);
    else p_->stitches.rest(s, s.vacated ? std::max(stamp, s.behind_stamp) : stamp);
    p_->space.home().release_block(b);
  }

 private:
  /// Who asks for memory: for whose work, who uses it first, and whether that one may wait on the device for others.
  struct claim {
    stream_index user;
    stream_index first;
    bool waits = false;
  };

  /// Smaller free parts of chunks are not worth a handle.
  static constexpr bytes smallest_extent = 64_KiB;
  static constexpr bytes any_size = ~bytes{0};
  /// Idle stitches looked at for one request; where one of them is foreseen to be for it, it is worth the time.
  static constexpr int most_tries = 64, most_foreseen = 1024;
  /// Addresses that a movable block keeps beside its own, for the end of a last chunk that is larger than what it
  /// takes of it: more than growth policies' chunks.
  static constexpr bytes least_spare = 256_MiB;

  /// The stitch policy's choice of n bytes among free memory, from chunks of at most `largest`, with or without a free
  /// end of a chunk first; nothing, and `shortfall_`, where there is too little. Stale after the next call. Error:
  /// `out_of_host_memory`.
  [[nodiscard]] result<std::span<extent const>> choose(claim who, bytes n, bool tails, bytes largest,
                                                       foresight const& f) noexcept {
    if (!collect(who)) return failure(errc::out_of_host_memory, "stitch");
    if (!tails) tails_.clear();
    auto const too_large = [largest](extent const& e) noexcept { return e.of->size > largest; };
    std::erase_if(whole_, too_large);
    std::erase_if(heads_, too_large);
    std::span<extent> whole = whole_;
    if (f.now != 0) {
      prefer(who, f);
      bytes sum = 0;
      std::size_t enough = 0;
      while (enough < whole.size() && sum < n) sum += whole[enough++].size;
      whole = whole.first(enough);
    }
    stitch_choice const choice = p_->stitch.choose({whole, tails_, heads_}, n, chosen_);
    shortfall_ = choice.shortfall;
    return std::span<extent const>(chosen_).first(shortfall_ > 0 ? 0 : choice.count);
  }

  /// The same for a movable block, which any free memory may serve: where nothing is foreseen, what has to be waited
  /// for only if the rest falls short.
  [[nodiscard]] result<std::span<extent const>> choose_movable(claim who, bytes n, bytes largest,
                                                               foresight const& f) noexcept {
    if (f.now == 0) {
      result<std::span<extent const>> ready = choose({who.first, who.first}, n, false, largest, f);
      if (!ready || !ready->empty()) return ready;
    }
    return choose(who, n, false, largest, f);
  }
  /// Who uses these extents first comes after all who may use them. Where a stream can't wait now, what needs no wait
  /// is chosen instead. Errors: the stream policy's, and `choose`'s.
  [[nodiscard]] result<std::span<extent const>> in_order(claim who, std::span<extent const> from, bytes n,
                                                         bytes largest, foresight const& f) noexcept {
    result<bool> const ordered = wait_for(who, from);
    if (!ordered) return failure(ordered.error());
    return *ordered ? from : choose({who.first, who.first}, n, false, largest, f);
  }

  /// A block of n bytes on a new stitch of these extents, which is movable where it has `room` of its own.
  [[nodiscard]] result<outcome> on_new(stream_index user, bytes n, std::span<extent const> from, bytes alignment,
                                       bytes room) noexcept {
    if (!prepare(from)) return failure(errc::out_of_host_memory, "stitch");
    result<stitch*> const mapped = p_->stitches.map(from, alignment > p_->granule ? alignment : 0, room);
    if (!mapped) return failure(mapped.error());
    stitch& s = **mapped;
    s.movable = room > 0;
    p_->observer.stitched({s.begin, s.size, s.count});
    return outcome{&serve(user, s, n), 0};
  }

  /// The idle movable stitch for n bytes that has served what is foreseen to be this block; else, among those that are
  /// kept for no other, the one that takes the fewest driver calls, now and when others want its chunks. Null where
  /// there is none.
  [[nodiscard]] stitch* nearest(stream_index user, bytes n, bytes alignment, foresight const& f) noexcept {
    stitch* best = nullptr;
    std::size_t least = 0;
    bool own = false;
    learn_wanted(f.now);
    auto const consider = [&](stitch& s) noexcept {
      bool const fits = s.movable && s.size - s.chunks[s.count - 1]->size < n && is_aligned(s.begin, alignment);
      bool const same = f.as != 0 && s.foreseen.as == f.as;
      if (!fits || (!same && (own || is_wanted(s, f.now)))) return false;
      std::size_t missing = 0;
      each_used(s, n, [&](std::size_t i, bytes used) noexcept {
        if (!obtainable({user, user, same}, *s.chunks[i], used)) ++missing;
      });
      // Addresses that the device may still use, or that others have noted, are not mapped anew.
      if (missing > 0 && (p_->options.pinned || !p_->space.time().all_passed(s.last_use))) return false;
      std::size_t const calls = missing + (same ? 0 : conflicts(s, n, f));
      if (best == nullptr || same > own || calls < least) best = &s, least = calls;
      own = same;
      return least == 0 && (own || f.as == 0);
    };
    (void)p_->stitches.find(n, consider, f.as != 0 ? most_foreseen : most_tries);
    return best;
  }

  /// Whether a stitch is kept for a block that is foreseen to need what is mapped there.
  [[nodiscard]] static bool is_wanted(stitch const& s, std::uint64_t now) noexcept {
    bool const has_none = s.serves == nullptr || s.vacated;
    return s.foreseen.as != 0 && has_none && s.foreseen.again != foresight::never && s.foreseen.again > now;
  }

  /// For all chunks, when such stitches want them; anew where that may have changed. O(all that they map).
  void learn_wanted(std::uint64_t now) noexcept {
    if (!std::exchange(wants_changed_, false)) return;
    ++looks_;
    for (stitch& s : p_->stitches.all()) {
      if (!is_wanted(s, now)) continue;
      for (std::size_t i = 0; i < s.count; ++i) {
        chunk& c = *s.chunks[i];
        c.wanted = c.looked == looks_ ? std::min(c.wanted, s.foreseen.again) : s.foreseen.again;
        c.looked = looks_;
      }
    }
  }
  [[nodiscard]] std::uint64_t wanted(chunk const& c, std::uint64_t now) const noexcept {
    return c.looked == looks_ && c.wanted > now ? c.wanted : foresight::never;
  }
  /// Chunks beneath a stitch's first n bytes that others want before the block is gone.
  [[nodiscard]] std::size_t conflicts(stitch const& s, bytes n, foresight const& f) const noexcept {
    std::size_t sum = 0;
    bytes offset = 0;
    for (std::size_t i = 0; i < s.count && offset < n; offset += s.chunks[i++]->size) {
      sum += wanted(*s.chunks[i], f.now) < f.until ? 1 : 0;
    }
    return sum;
  }
  void note_wants(stitch const& s) noexcept { wants_changed_ = wants_changed_ || s.foreseen.as != 0; }

  /// Orders candidates: first what is free now, then what has to be waited for, as it is foreseen to be free. Of those
  /// alike the chunks that nobody wants before the block is gone, those wanted soonest after it at the front; then the
  /// others, those wanted last at the front.
  void prefer(claim who, foresight const& f) noexcept {
    learn_wanted(f.now);
    auto const rank = [&](extent const& e) noexcept {
      std::uint64_t const at = wanted(*e.of, f.now);
      std::uint64_t const there = p_->space.usable(who.first, *e.of, e.begin(), e.size) ? 0 : 1;
      std::uint64_t const from = e.of->ready > f.now ? e.of->ready : there;
      return at >= f.until ? std::tuple(from, false, at) : std::tuple(from, true, ~at);
    };
    auto const before = [&](extent const& a, extent const& b) noexcept { return rank(a) < rank(b); };
    std::ranges::stable_sort(whole_, before);
    std::ranges::stable_sort(heads_, before);
  }

  /// Replaces those chunks of a movable stitch whose memory the user can't have, so that it can serve n bytes; whether
  /// it can now. What is foreseen to be free may be in use still, and so may what the block itself has left: it waits
  /// for that on the device. Precondition: it serves nobody or is vacated; if any chunk is missing, no device work uses
  /// an idle one's addresses. Errors: the driver's, the stream policy's and `out_of_host_memory`; then what is mapped
  /// is as good as any, or nothing is (`count` tells).
  [[nodiscard]] result<bool> mend(claim who, stitch& s, bytes n, foresight const& f) noexcept {
    who.waits = f.now != 0 || (s.vacated && !is_over(s));
    result<bool> found = find_missing(who, s, n, f);
    if (!found || !*found) return found;
    if (!missing_.empty() && s.vacated && !is_over(s)) return false;
    if (result<bool> ordered = wait_for(who, s, n); !ordered || !*ordered) return ordered;
    if (result<void> done = p_->stitches.replace(s, missing_, replacing_); !done) return failure(done.error());
    if (!prepare(s, n)) return failure(errc::out_of_host_memory, "stitch");
    return true;
  }
  /// Who uses it first comes after all who may use the memory of the first n bytes, with what is missing replaced;
  /// false where a stream can't wait now. Error: the stream policy's.
  [[nodiscard]] result<bool> wait_for(claim who, stitch& s, bytes n) noexcept {
    std::size_t next = 0;
    bytes offset = 0;
    for (std::size_t i = 0; i < s.count && offset < n; offset += s.chunks[i++]->size) {
      bool const missing = next < missing_.size() && missing_[next] == i;
      chunk& c = missing ? *replacing_[next++] : *s.chunks[i];
      if (result<bool> done = wait_for(who, c, c.home, std::min(c.size, n - offset)); !done || !*done) return done;
    }
    return true;
  }
  [[nodiscard]] result<bool> wait_for(claim who, std::span<extent const> all) noexcept {
    for (extent const& e : all) {
      if (result<bool> done = wait_for(who, *e.of, e.begin(), e.size); !done || !*done) return done;
    }
    return true;
  }
  [[nodiscard]] result<bool> wait_for(claim who, chunk& c, address begin, bytes n) noexcept {
    if (p_->space.usable(who.first, c, begin, n)) return true;
    result<void> const done = p_->space.wait_for(who.first, c, begin, n);
    if (done) return true;
    return done.error().code == errc::not_supported ? result<bool>(false) : failure(done.error());
  }

  /// Which chunks those are, and for each another as large; whether there are as many. Error: `out_of_host_memory`.
  [[nodiscard]] result<bool> find_missing(claim who, stitch& s, bytes n, foresight const& f) noexcept {
    missing_.clear();
    replacing_.clear();
    bool whole = true;
    try {
      each_used(s, n, [&](std::size_t i, bytes used) {
        if (!obtainable(who, *s.chunks[i], used)) missing_.push_back(i);
      });
      if (missing_.empty()) return true;
      if (!collect(who)) return failure(errc::out_of_host_memory, "stitch");
      std::span const has(s.chunks.get(), s.count);
      auto const had = [&](extent const& e) noexcept { return std::ranges::find(has, e.of) != has.end(); };
      std::erase_if(whole_, had);
      std::erase_if(heads_, had);
      if (f.now != 0) prefer(who, f);
      each_used(s, n, [&](std::size_t i, bytes used) {
        if (!whole || !std::ranges::binary_search(missing_, i)) return;
        chunk* const other = like(*s.chunks[i], used);
        whole = other != nullptr;
        if (whole) replacing_.push_back(other);
      });
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "stitch");
    }
    return whole;
  }

  /// A chunk as large whose first bytes are free, which is no candidate any more then; null where there is none.
  [[nodiscard]] chunk* like(chunk const& c, bytes used) noexcept {
    auto const fits = [&](extent const& e) noexcept { return e.of->size == c.size && e.size >= used; };
    if (used < c.size) {
      if (auto const head = std::ranges::find_if(heads_, fits); head != heads_.end()) return head->of;
    }
    auto const whole = std::ranges::find_if(whole_, fits);
    if (whole == whole_.end()) return nullptr;
    chunk* const found = whole->of;
    whole_.erase(whole);
    return found;
  }

  /// Calls `f(number, bytes used of it)` for the chunks beneath a movable stitch's first n bytes.
  template <std::invocable<std::size_t, bytes> F>
  static void each_used(stitch const& s, bytes n, F&& f) {
    bytes offset = 0;
    for (std::size_t i = 0; i < s.count && offset < n; offset += s.chunks[i++]->size) {
      f(i, std::min(s.chunks[i]->size, n - offset));
    }
  }
  /// Whether a chunk's first bytes can be had at once, or by waiting on the device where one may.
  [[nodiscard]] bool obtainable(claim who, chunk& c, bytes used) noexcept {
    return who.waits ? p_->space.is_free(c, c.home, used) : p_->space.usable(who.user, c, c.home, used);
  }

  void let_go(block& b, stream_index on, tick stamp) noexcept {
    b.view->vacated = true;
    note_wants(*b.view);
    give_back_taken(b, on, stamp);
  }

  void give_back_taken(block& b, stream_index on, tick stamp) noexcept {
    for (block* taken = std::exchange(b.next_taken, nullptr); taken != nullptr;) {
      block& piece = *taken;
      taken = std::exchange(piece.next_taken, nullptr);
      (void)p_->space.give_back(piece, on, stamp);
    }
  }

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

  /// The same for a stitch of these extents.
  [[nodiscard]] bool prepare(std::span<extent const> from) noexcept {
    std::size_t blocks = 1;
    for (extent const& e : from) blocks += 2 + p_->space.count(*e.of, e.begin(), e.size);
    return p_->space.home().reserve_blocks(blocks);
  }

  /// Whether the user may have the memory beneath an idle stitch's first n bytes at once.
  [[nodiscard]] bool usable(stream_index user, stitch& s, bytes n) noexcept {
    return each_run(
        s, n, [&](chunk& c, address begin, bytes size) noexcept { return p_->space.usable(user, c, begin, size); });
  }

  /// A block of n bytes on an idle stitch. Precondition: nodes prepared.
  [[nodiscard]] block& wake(stream_index user, stitch& s, bytes n) noexcept {
    p_->stitches.wake(s);
    p_->observer.reused({s.begin, s.size, s.count});
    return serve(user, s, n);
  }

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

  parts* p_;
  std::vector<block*> free_;
  std::vector<std::size_t> missing_;
  std::vector<chunk*> replacing_;
  std::vector<extent> whole_, tails_, heads_, chosen_;
  bytes shortfall_ = 0;      ///< of the last choice
  std::uint32_t looks_ = 0;  ///< at what is wanted
  bool wants_changed_ = false;
};

}  // namespace gmlake
