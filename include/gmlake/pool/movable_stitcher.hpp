#pragma once
/// Serves movable blocks, whose memory can be taken away and replaced: from the mapping that is kept for a block which
/// comes again and again, with its chunks replaced as need be, from one that is lent by another such block until that
/// comes, or from a new one. Chunks are chosen by what is foreseen.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "gmlake/pool/ranked_extents.hpp"
#include "gmlake/pool/stitch_maker.hpp"
#include "gmlake/pool/wanted_chunks.hpp"

namespace gmlake {

template <PoolConfig Config>
class movable_stitcher : private stitch_maker<Config> {
  using base = stitch_maker<Config>;
  using claim = typename base::claim;
  using base::heads_;
  using base::p_;
  using base::whole_;

 public:
  using base::base;

  /// A block of n bytes, on a movable stitch that is idle, or on a new one even where contiguous memory is free; or the
  /// shortfall. Errors: the driver's, and `out_of_host_memory`; then nothing has changed.
  [[nodiscard]] result<stitched> make(stream_index user, bytes n, bytes alignment, foresight const& f) noexcept {
    if (stitch* const idle = nearest(user, n, alignment, f); idle != nullptr) {
      stitch_event const was{idle->begin, idle->size, idle->count};
      bool const lent = idle->foreseen.as != f.as && is_kept(*idle, f.now);
      p_->stitches.wake(*idle);
      result<bool> const whole = mend({user, user, true}, *idle, n, f);
      if (whole && *whole) {
        if (!lent) foresee(*idle, f);
        p_->observer.reused(was);
        return stitched{&base::serve(user, *idle, n), 0};
      }
      if (idle->count > 0) {
        // What it lacks is not to be had, and would hardly be the next time: the block's is the one made now.
        if (whole && idle->foreseen.as == f.as) foresee(*idle, {});
        p_->stitches.put_back(*idle);
      } else {
        p_->stitches.unmap(*idle);
        p_->observer.evicted(was);
      }
      if (!whole) return failure(whole.error());
    }
    result<std::span<extent const>> const from = choose({user, user, true}, n, any_size, f);
    if (!from) return failure(from.error());
    if (from->empty()) return stitched{nullptr, shortfall_};
    bytes largest = least_spare;
    for (extent const& e : *from) largest = std::max(largest, e.of->size);
    for (extent const& e : whole_) largest = std::max(largest, e.of->size);
    for (extent const& e : heads_) largest = std::max(largest, e.of->size);
    result<stitched> made = base::on_new(user, n, *from, alignment, align_up(n, p_->granule) + largest);
    if (made && made->served != nullptr) foresee(*made->served->view, f);
    return made;
  }

  /// What is known of the block that a movable stitch serves.
  void foresee(stitch& s, foresight const& f) noexcept {
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

  /// Unmaps what is mapped of a stitch that serves a block or is vacated. Precondition and error as for `vacate`.
  [[nodiscard]] result<void> unmap(stitch& s) noexcept {
    if (s.count == 0) return {};
    stitch_event const gone{s.begin, s.size, s.count};
    if (result<void> done = p_->stitches.vacate(s); !done) return done;
    p_->observer.evicted(gone);
    return {};
  }

  /// The last free that `by` has to wait for before it may have what is mapped for a vacated block, as far as that is
  /// free; 0: none. The maximum where others have some of it, and none may be mapped in its place yet.
  [[nodiscard]] tick awaited(stream_index by, block const& b) noexcept {
    stitch const& s = *b.view;
    tick last = 0;
    bool missing = false;
    each_used(s, b.size, [&](std::size_t i, bytes used) noexcept {
      chunk& c = *s.chunks[i];
      if (!p_->space.is_free(c, c.home, used)) missing = true;
      else last = std::max(last, p_->space.awaited(by, c, c.home, used));
    });
    return missing && !is_over(s) ? std::numeric_limits<tick>::max() : last;
  }

  /// Puts free memory under a vacated block, for work on `user`, or tells the shortfall. `by` uses it first: that is
  /// who waits for other streams, and `user` for it. Errors as for `make`.
  [[nodiscard]] result<stitched> refill(stream_index user, stream_index by, block& b) noexcept {
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
        base::take(s, b);
        return stitched{&b, 0};
      }
    }
    bytes const largest = s.room - align_up(b.size, p_->granule);
    if (s.count > 0 && !is_over(s)) {
      result<std::span<extent const>> const some = any_chunks(who, b.size, largest, s.foreseen);
      if (!some) return failure(some.error());
      return stitched{nullptr, some->empty() ? shortfall_ : 0};
    }
    result<std::span<extent const>> const from = choose(who, b.size, largest, s.foreseen);
    if (!from) return failure(from.error());
    if (from->empty()) return stitched{nullptr, shortfall_};
    if (!base::prepare(*from)) return failure(errc::out_of_host_memory, "stitch");
    if (result<void> done = unmap(s); !done) return failure(done.error());
    if (result<void> done = p_->stitches.fill(s, *from); !done) return failure(done.error());
    p_->observer.stitched({s.begin, s.size, s.count});
    b.on = user;
    base::take(s, b);
    return stitched{&b, 0};
  }

 private:
  static constexpr bytes any_size = ~bytes{0};
  /// From when memory is free that needs no wait, and whose user has left by now.
  static constexpr std::uint64_t usable_now = 0, left = 1;
  /// Idle stitches looked at for one request, of which most may be kept for others.
  static constexpr int most_tries = 1024;
  /// Addresses that a movable block keeps beside its own, for the end of a last chunk that is larger than what it
  /// takes of it: more than growth policies' chunks.
  static constexpr bytes least_spare = 256_MiB;

  /// Whether no device work uses a vacated stitch's addresses any more, as far as the host knows.
  [[nodiscard]] bool is_over(stitch const& s) const noexcept {
    return p_->space.time().passed(s.behind, s.behind_stamp);
  }
  /// Whether no device work uses the addresses of a stitch without a block, or of a vacated one, as far as the host
  /// knows, and nobody has noted them.
  [[nodiscard]] bool mappable(stitch const& s) const noexcept {
    return s.vacated ? is_over(s) : !p_->options.pinned && p_->space.time().all_passed(s.last_use);
  }

  /// The same for an idle one, after asking. A stream that has come to rest may have no fence behind its last frees.
  [[nodiscard]] bool learn_mappable(stitch const& s) noexcept {
    if (p_->options.pinned) return false;
    result<bool> const over = p_->space.time().learn_all_passed(s.last_use);
    return over && *over;
  }

  /// Free memory for a block, from chunks of at most `largest`; nothing, and `shortfall_`, where there is too little.
  /// Who uses it first comes after all who may use it. Stale after the next call. Errors: the stream policy's,
  /// `out_of_host_memory`.
  [[nodiscard]] result<std::span<extent const>> choose(claim who, bytes n, bytes largest, foresight const& f) noexcept {
    result<std::span<extent const>> from = any_chunks(who, n, largest, f);
    if (!from || from->empty()) return from;
    result<bool> const ordered = wait_for(who, *from);
    if (!ordered) return failure(ordered.error());
    if (*ordered) return from;
    // A stream can't wait now: what needs no wait.
    return any_chunks({who.first, who.first}, n, largest, f);
  }

  /// The stitch policy's choice. Where nothing is foreseen, what has to be waited for only if the rest falls short.
  [[nodiscard]] result<std::span<extent const>> any_chunks(claim who, bytes n, bytes largest,
                                                           foresight const& f) noexcept {
    if (f.now == 0 && who.waits) {
      result<std::span<extent const>> ready = any_chunks({who.first, who.first}, n, largest, f);
      if (!ready || !ready->empty()) return ready;
    }
    if (!base::collect(who)) return failure(errc::out_of_host_memory, "stitch");
    base::tails_.clear();
    for (auto* const all : {&whole_, &heads_}) {
      std::erase_if(*all, [largest](extent const& e) noexcept { return e.of->size > largest; });
    }
    if (f.now != 0) prefer(who, f, n);
    stitch_choice const choice = base::choose(whole_, n);
    shortfall_ = choice.shortfall;
    return base::chosen(choice);
  }

  /// The idle movable stitch for n bytes that has served what is foreseen to be this block; else the one that takes the
  /// fewest driver calls, now and when others want its chunks: none where it is kept for another. Null where there is
  /// none.
  [[nodiscard]] stitch* nearest(stream_index user, bytes n, bytes alignment, foresight const& f) noexcept {
    auto const fits = [&](stitch const& s) noexcept {
      return s.movable && s.capacity() >= n && s.size - s.chunks[s.count - 1]->size < n &&
             is_aligned(s.begin, alignment);
    };
    auto const missing = [&](stitch& s, bool waits) noexcept {
      std::size_t sum = 0;
      each_used(s, n, [&](std::size_t i, bytes used) noexcept {
        if (!obtainable({user, user, waits}, *s.chunks[i], used)) ++sum;
      });
      return sum;
    };
    if (f.as != 0) {
      auto const own = [&](stitch& s) noexcept {
        return fits(s) && (mappable(s) || missing(s, true) == 0 || learn_mappable(s));
      };
      if (stitch* const s = p_->stitches.find_kept(f.as, own); s != nullptr) return s;
    }
    stitch* best = nullptr;
    std::size_t least = 0;
    auto const consider = [&](stitch& s) noexcept {
      bool const kept = is_kept(s, f.now);
      if (!fits(s) || (kept && !f.dies)) return false;
      std::size_t const gone = missing(s, false);
      if (gone > 0 && (kept || !mappable(s))) return false;
      std::size_t const calls = gone + conflicts(s, n, f);
      if (kept && calls > 0) return false;
      if (best == nullptr || calls < least) best = &s, least = calls;
      return least == 0;
    };
    (void)p_->stitches.find(n, consider, most_tries);
    return best;
  }

  /// Chunks beneath a stitch's first n bytes that others want before the block is gone.
  [[nodiscard]] std::size_t conflicts(stitch const& s, bytes n, foresight const& f) const noexcept {
    std::size_t sum = 0;
    each_used(s, n, [&](std::size_t i, bytes) noexcept { sum += first_wanted(*s.chunks[i], f.now) < f.until ? 1 : 0; });
    return sum;
  }

  /// Orders candidates by `rank_of`; of whole chunks there are no more than make n bytes then. For want of memory,
  /// candidates stay as they are.
  void prefer(claim who, foresight const& f, bytes n) noexcept {
    try {
      keep_best(whole_, who, f, n);
      keep_best(heads_, who, f, any_size);
    } catch (std::bad_alloc const&) {
    }
  }
  void keep_best(std::vector<extent>& all, claim who, foresight const& f, bytes n) {
    rank(all, who, f);
    all.clear();
    for (bytes sum = 0; sum < n && !ranked_.empty(); sum += all.back().size) all.push_back(ranked_.take_first());
  }
  void rank(std::span<extent const> all, claim who, foresight const& f) {
    ranked_.clear();
    for (extent const& e : all) ranked_.add(e, rank_of(e, who, f));
    ranked_.begin();
  }
  /// First what is free now, then what has to be waited for, as it is foreseen to be free. Of those alike the chunks
  /// that nobody wants before the block is gone, those wanted soonest after it at the front; then the others, those
  /// wanted last at the front. All are alike where nothing is foreseen.
  [[nodiscard]] extent_rank rank_of(extent const& e, claim who, foresight const& f) const noexcept {
    if (f.now == 0) return {};
    std::uint64_t const at = first_wanted(*e.of, f.now);
    bool const wanted = at < f.until;
    bool const usable = p_->space.usable(who.first, *e.of, e.begin(), e.size);
    return {usable ? usable_now : std::max<std::uint64_t>(e.of->ready > f.now ? e.of->ready : 0, left), wanted,
            wanted ? ~at : at};
  }

  /// Replaces those chunks of a movable stitch whose memory the user can't have, so that it can serve n bytes; whether
  /// it can now: not where chunks are missing while device work may use its addresses. What is foreseen to be free may
  /// be in use still, and so may what the block itself has left: it waits for that on the device. Precondition: it
  /// serves nobody or is vacated. Errors: the driver's, the stream policy's and `out_of_host_memory`; then what is
  /// mapped is as good as any, or nothing is (`count` tells).
  [[nodiscard]] result<bool> mend(claim who, stitch& s, bytes n, foresight const& f) noexcept {
    who.waits = f.now != 0 || (s.vacated && !is_over(s));
    result<bool> found = find_missing(who, s, n, f);
    if (!found || !*found) return found;
    if (!missing_.empty() && !mappable(s)) return false;
    if (result<bool> ordered = wait_for(who, s, n); !ordered || !*ordered) return ordered;
    if (result<void> done = p_->stitches.replace(s, missing_, replacing_); !done) return failure(done.error());
    if (!base::prepare(s, n)) return failure(errc::out_of_host_memory, "stitch");
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

  /// Which chunks those are, and for each another as large; whether there are as many. Where the addresses may be
  /// mapped anew, and it had rather not wait, also what it would have to wait for, as far as others are there by now:
  /// for a long wait any, else those that nobody wants meanwhile.
  /// Error: `out_of_host_memory`.
  [[nodiscard]] result<bool> find_missing(claim who, stitch& s, bytes n, foresight const& f) noexcept {
    missing_.clear();
    replacing_.clear();
    bool const anew = f.now != 0 && who.waits && (f.at_once || !f.waits) && mappable(s);
    try {
      std::size_t late = 0;
      each_used(s, n, [&](std::size_t i, bytes used) {
        if (!obtainable(who, *s.chunks[i], used)) missing_.push_back(i);
        else if (anew && is_late(who, {s.chunks[i].of, 0, used}, f)) ++late;
      });
      if (missing_.empty() && late == 0) return true;
      if (!base::collect(who)) return failure(errc::out_of_host_memory, "stitch");
      auto const has = [&](extent const& e) noexcept {
        return std::ranges::find(s.mapped(), e.of, &mapped_chunk::of) != s.mapped().end();
      };
      for (auto* const all : {&whole_, &heads_}) std::erase_if(*all, has);
      rank(heads_, who, f);
      std::swap(ranked_, ranked_heads_);
      rank(whole_, who, f);
      if (!replace_missing(s, n)) return false;
      if (late > 0) replace_late(who, s, n, f);
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "stitch");
    }
    return true;
  }
  /// Whether there are as many.
  [[nodiscard]] bool replace_missing(stitch const& s, bytes n) {
    bool whole = true;
    each_used(s, n, [&](std::size_t i, bytes used) {
      if (!whole || !std::ranges::binary_search(missing_, i)) return;
      chunk* const other = like(*s.chunks[i], used, extent_rank::any, [](extent const&) noexcept { return true; });
      whole = other != nullptr;
      if (whole) replacing_.push_back(other);
    });
    return whole;
  }
  void replace_late(claim who, stitch const& s, bytes n, foresight const& f) {
    bool long_wait = false;
    auto const better = [&](extent const& e) noexcept { return long_wait || first_wanted(*e.of, f.now) >= f.until; };
    each_used(s, n, [&](std::size_t i, bytes used) {
      auto const at = std::ranges::lower_bound(missing_, i);
      bool const is_missing = at != missing_.end() && *at == i;
      if (is_missing || !is_late(who, {s.chunks[i].of, 0, used}, f)) return;
      long_wait = f.at_once || s.chunks[i]->ready > f.soon;
      chunk* const other = like(*s.chunks[i], used, f.at_once ? usable_now : left, better);
      if (other == nullptr) return;
      replacing_.insert(replacing_.begin() + (at - missing_.begin()), other);
      missing_.insert(at, i);
    });
  }

  /// A chunk as large that suits, whose first bytes are free from `latest` on, which is no candidate any more then;
  /// null where there is none.
  template <std::predicate<extent const&> Suits>
  [[nodiscard]] chunk* like(chunk const& c, bytes used, std::uint64_t latest, Suits const& suits) noexcept {
    auto const fits = [&](extent const& e) noexcept { return e.of->size == c.size && e.size >= used && suits(e); };
    // Where a part does, a whole one is not cut, unless it is free sooner.
    chunk* const part = used < c.size ? ranked_heads_.take(fits, std::min(latest, ranked_.free_from(fits))) : nullptr;
    return part != nullptr ? part : ranked_.take(fits, latest);
  }

  /// Whether free memory that is obtainable has to be waited for, longer than for what has left by now or had better.
  [[nodiscard]] bool is_late(claim who, extent const& e, foresight const& f) noexcept {
    return (f.at_once || e.of->ready > f.now) && !p_->space.usable(who.first, *e.of, e.begin(), e.size);
  }
  /// Whether a chunk's first bytes can be had at once, or by waiting on the device where one may.
  [[nodiscard]] bool obtainable(claim who, chunk& c, bytes used) noexcept {
    return who.waits ? p_->space.is_free(c, c.home, used) : p_->space.usable(who.user, c, c.home, used);
  }

  /// Calls `f(number, bytes used of it)` for the chunks beneath a movable stitch's first n bytes.
  template <std::invocable<std::size_t, bytes> F>
  static void each_used(stitch const& s, bytes n, F&& f) {
    bytes offset = 0;
    for (std::size_t i = 0; i < s.count && offset < n; offset += s.chunks[i++]->size) {
      f(i, std::min(s.chunks[i]->size, n - offset));
    }
  }

  void let_go(block& b, stream_index on, tick stamp) noexcept {
    b.view->vacated = true;
    note_wants(*b.view);
    base::give_back_taken(b, on, stamp);
  }

  ranked_extents ranked_, ranked_heads_;
  std::vector<std::size_t> missing_;
  std::vector<chunk*> replacing_;
  bytes shortfall_ = 0;  ///< of the last choice
};

}  // namespace gmlake
