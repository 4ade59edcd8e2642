#pragma once
/// The swappable blocks of a pool and which of them are on the device: brings blocks in, and where memory is out sends
/// others away, those first that its policy names. It knows nothing of steps and schedules, and holds no lock: `pager`
/// does.
///
/// What holds: a page is listed with the policy exactly while it is here and nobody holds or pins it, unless it has
/// refused to leave in this step; one that is held is never sent away.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <utility>

#include "gmlake/core/address_map.hpp"
#include "gmlake/core/slab.hpp"
#include "gmlake/swap/pager_options.hpp"
#include "gmlake/swap/pause_outcome.hpp"
#include "gmlake/swap/step_log.hpp"
#include "gmlake/swap/swapping_pool.hpp"
#include "gmlake/swap/victim_policy.hpp"

namespace gmlake::swap {

/// A pool of blocks that swap, as `swapping_pool` is over a `basic_pool`.
template <class P>
concept SwapPool = requires(P& p, P const& k, address a, stream s, bytes n, tag t, bool b, bool (*of)(address)) {
  { p.allocate(request{}, t) } noexcept -> std::same_as<result<address>>;
  { p.foresee(a, foresight{}) } noexcept -> std::same_as<result<void>>;
  { p.deallocate(a) } noexcept -> std::same_as<result<void>>;
  { p.deallocate(a, s) } noexcept -> std::same_as<result<void>>;
  { p.record_stream(a, s) } noexcept -> std::same_as<result<void>>;
  { p.swap_out(a, s, vacating::leave) } noexcept -> std::same_as<result<void>>;
  { p.discard(a, s, vacating::leave) } noexcept -> std::same_as<result<void>>;
  { p.unmap_absent(of) } noexcept -> std::same_as<result<void>>;
  { p.swap_in(a, s) } noexcept -> std::same_as<result<void>>;
  { p.prefetch(a) } noexcept -> std::same_as<result<void>>;
  { p.try_prefetch(a) } noexcept -> std::same_as<result<void>>;
  { p.awaited(a) } noexcept -> std::same_as<result<std::uint64_t>>;
  { p.awaits_copy(a) } noexcept -> std::same_as<bool>;
  { p.end_departure() } noexcept -> std::same_as<bool>;
  { p.progress() } noexcept -> std::same_as<result<bool>>;
  { p.settle() } noexcept -> std::same_as<result<void>>;
  { k.residency_of(a) } noexcept -> std::same_as<result<residency>>;
  { k.is_paused(a) } noexcept -> std::same_as<result<bool>>;
  { p.set_read_only(a, b) } noexcept -> std::same_as<result<void>>;
  { p.resume(t) } noexcept -> std::same_as<pause_outcome>;
  { k.swaps() } noexcept -> std::same_as<swap_stats>;
  { p.take_carried() } noexcept -> std::same_as<carried>;
  { p.device().account() } noexcept -> std::same_as<memory_account>;
  { p.device().set_limit(n) } noexcept -> std::same_as<void>;
  { p.device().allocate(request{}) } noexcept -> std::same_as<result<address>>;
  { p.device().movable_chunk() } noexcept -> std::same_as<bytes>;
  { p.device().set_movable_chunk(n) } noexcept -> std::same_as<void>;
  { p.device().trim() } noexcept -> std::same_as<result<bytes>>;
  { k.options().smallest } -> std::convertible_to<bytes>;
};

template <SwapPool P, VictimPolicy Victims>
class resident_set {
 public:
  resident_set(P& pool, pager_options const& options, pager_stats& seen) noexcept
      : pool_(&pool), options_(&options), seen_(&seen) {}
  resident_set(resident_set const&) = delete;
  resident_set& operator=(resident_set const&) = delete;
  ~resident_set() {
    known_.for_each([this](page& p) { nodes_.release(p); });
  }

  [[nodiscard]] P& pool() noexcept { return *pool_; }
  [[nodiscard]] page* find(address at) const noexcept { return known_.find(at); }
  template <std::invocable<page&> F>
  void each(F&& f) const {
    known_.for_each(std::forward<F>(f));
  }
  /// False: nothing is sent away on demand.
  void set_paging(bool pages) noexcept { paging_ = pages; }

  /// n bytes, which others leave for if need be. Null: too small to be logged; then `at` says where. `foreseen`: of one
  /// that is swappable. Errors: the pool's.
  struct allocated {
    address at{};
    page* of = nullptr;
  };
  [[nodiscard]] result<allocated> allocate(bytes n, stream on, tag group, may_leave leaves,
                                           foresight const& foreseen) noexcept {
    bool const asked = leaves == may_leave::always || !paging_;
    bool const movable = n >= (asked ? pool_->options().smallest : smallest_movable());
    bool const known = movable || n >= options_->smallest_logged;
    bool const fixed = leaves == may_leave::never || !movable;
    if (known && (!nodes_.reserve(1) || !known_.reserve_one())) return failure(errc::out_of_host_memory, "pager");
    // Where small blocks need a chunk of their own kind, there is one to be had among those that are free, by the last
    // resorts: nothing has to leave for that.
    request const plain{.size = n, .on = on, .insist = !movable, .foreseen = foreseen};
    result<address> at = fixed ? served<address>(
                                     n, [&]() noexcept { return pool_->device().allocate(plain); },
                                     [&]() noexcept { return at_last(n, on); })
                               : served<address>(
                                     n, [&]() noexcept { return pool_->allocate(plain, group); },
                                     [&]() noexcept {
                                       request insisting = plain;
                                       insisting.insist = true;
                                       return pool_->allocate(insisting, group);
                                     });
    if (!at) return failure(at.error());
    if (!known) return allocated{*at, nullptr};
    page& p = nodes_.acquire();
    p.begin = *at;
    p.size = n;
    p.home = p.last = p.recorded = on;
    p.group = group;
    p.serial = serials_++;
    p.as = foreseen.as != 0 ? foreseen.as : page::by_serial | p.serial;
    p.fixed = fixed;
    if (fixed) fixed_bytes_ += n;
    known_.insert(*at, p);
    return allocated{*at, &p};
  }

  /// The pool has it back.
  void forget(page& p) noexcept {
    unlist(p);
    place(p, page::place::here);
    if (p.refused) refused_.erase(place_list::s_iterator_to(p));
    if (p.fixed) fixed_bytes_ -= p.size;
    (void)known_.extract(p.begin);
    nodes_.release(p);
  }

  /// Somebody uses it from now on, and it stays until `let_go` as often.
  void hold(page& p) noexcept {
    unlist(p);
    ++p.users;
  }
  void let_go(page& p) noexcept {
    --p.users;
    list(p);
  }
  /// Its place in the order of victims has changed.
  template <std::invocable<page&> F>
  void rekey(page& p, F&& change) noexcept {
    bool const was = p.listed;
    unlist(p);
    std::forward<F>(change)(p);
    if (was) list(p);
  }

  /// What is queued on `on` from now on finds the contents. Precondition: held. Errors: the pool's; then it is where it
  /// was.
  [[nodiscard]] result<void> bring(page& p, stream on) noexcept {
    if (p.where == page::place::here) [[likely]]
      return {};
    if (p.where == page::place::coming) return pool_->swap_in(p.begin, on);
    return fetch(p, on);
  }
  /// Begins that, by hand: for whoever asks for it later. Precondition and errors as for `bring`.
  [[nodiscard]] result<void> begin_bringing(page& p) noexcept {
    result<residency> const now = pool_->residency_of(p.begin);
    if (!now) return failure(now.error());
    auto const insisting = [&]() noexcept { return pool_->prefetch(p.begin); };
    result<void> done = *now != residency::absent
                            ? insisting()
                            : served<void>(p.size, [&]() noexcept { return pool_->try_prefetch(p.begin); }, insisting);
    look_at(p);
    return done;
  }

  /// When a page's memory comes and goes from now on.
  void foresee(page const& p, foresight const& f) noexcept { (void)pool_->foresee(p.begin, f); }

  /// Which pages that are out come back first, by the memory that is mapped for them: less is sooner.
  [[nodiscard]] std::uint64_t awaited(page const& p) noexcept {
    result<std::uint64_t> const is = p.where == page::place::out ? pool_->awaited(p.begin) : std::uint64_t{0};
    return is ? *is : 0;
  }

  /// Whether the host would wait for a page's own copy out, were it to begin to come back.
  [[nodiscard]] bool awaits_copy(page const& p) noexcept {
    return p.where == page::place::out && pool_->awaits_copy(p.begin);
  }

  /// Begins to bring a page back if there is memory for it now; whether nothing is left to be done for it.
  [[nodiscard]] bool begin_return(page& p, foresight const& f) noexcept {
    if (p.where != page::place::out) return true;
    result<residency> const now = pool_->residency_of(p.begin);
    if (!now || *now == residency::leaving) return !now;
    if (*now != residency::absent) {
      settle_down(p, *now);
      return true;
    }
    if (room() < p.size) return false;
    foresee(p, f);
    result<void> const done = pool_->try_prefetch(p.begin);
    if (done) {
      place(p, page::place::coming);
      ++seen_->planned_in;
      return true;
    }
    if (done.error().code == errc::out_of_memory) return false;
    ++seen_->refused;
    return true;  // its access will try again
  }

  /// Sends a page away that is here and that nobody holds; whether it goes. One that `discards` goes without being
  /// copied, if its contents can be made again; so does one whose contents have to be.
  [[nodiscard]] bool send(page& p, bool planned, vacating way = vacating::unmap, bool discards = false) noexcept {
    unlist(p);
    if (!options_->leave_mapped) way = vacating::unmap;
    discards = p.discarded || (discards && p.recompute != nullptr);
    result<void> const done = discards ? pool_->discard(p.begin, p.last, way) : pool_->swap_out(p.begin, p.last, way);
    if (!done) {
      ++seen_->refused;
      if (!p.refused) refused_.push_back(p);
      p.refused = true;
      return false;
    }
    place(p, page::place::out);
    p.planned = planned;
    if (discards && !p.discarded) ++seen_->discarded;
    p.discarded = discards;
    return true;
  }

  /// Ends moves that are over, unless it was just done and is not to be done `always`. Whether any has ended.
  bool look(bool always) noexcept {
    if (out_.empty() && coming_.empty()) return false;
    if (!always && options_->look_every > time::zero()) {
      auto const now = std::chrono::steady_clock::now();
      if (now < next_look_) return false;
      next_look_ = now + options_->look_every;
    }
    if (!pool_->progress()) ++seen_->refused;  // it is tried again
    while (!coming_.empty()) {
      page& p = coming_.front();
      result<residency> const now = pool_->residency_of(p.begin);
      if (now && *now == residency::arriving) break;
      settle_down(p, now ? *now : residency::mapped);
    }
    return true;
  }

  /// Nothing of the job's that is out is left mapped.
  void unmap_absent(std::uint32_t job) noexcept {
    auto const its = [&](address at) noexcept {
      page const* const p = known_.find(at);
      return p != nullptr && p->job == job;
    };
    if (!pool_->unmap_absent(its)) ++seen_->refused;
  }

  /// Those that could not leave may try again.
  void forgive() noexcept {
    while (!refused_.empty()) {
      page& p = refused_.front();
      refused_.pop_front();
      p.refused = false;
      list(p);
    }
  }

  /// After others have moved blocks: looks where they are.
  void look_at(page& p) noexcept {
    result<residency> const now = pool_->residency_of(p.begin);
    if (now) settle_down(p, *now);
  }
  void look_at_all() noexcept {
    known_.for_each([this](page& p) { look_at(p); });
  }

  /// Until the pool holds no more than `limit` in live blocks, as far as may be. Whether it does.
  [[nodiscard]] bool shrink(bytes limit) noexcept {
    for (;;) {
      memory_account const now = pool_->device().account();
      if (now.live <= limit) return true;
      if (leaving() == 0 && evict(now.live - limit) == 0) {
        // What is on its way back can leave once it is there.
        if (coming_.empty() || !recover()) return false;
        continue;
      }
      if (!await_departure()) return pool_->device().account().live <= limit;
    }
  }

  /// Brings a group's blocks back, for which others leave, and waits until they are.
  [[nodiscard]] pause_outcome resume(tag group) noexcept {
    auto const each_of_it = [&](auto f) {
      each([&](page& p) {
        if (p.group == group && !p.fixed) f(p);
      });
    };
    pause_outcome out = pool_->resume(group);
    look_at_all();
    if (out.stayed == 0) return out;
    each_of_it([&](page& p) { hold(p); });  // none of them leaves for another
    each_of_it([&](page& p) {
      if (p.where == page::place::out) (void)begin_bringing(p);
    });
    out = pool_->resume(group);
    look_at_all();
    each_of_it([&](page& p) { let_go(p); });
    return out;
  }

  /// What no operation uses leaves, and its memory goes back to the device, until the pool holds no more than that.
  /// Whether it does; where nothing is paged, only if it does anyway.
  bool keep_within(bytes limit) noexcept {
    auto const held = [&]() noexcept { return pool_->device().account().reserved; };
    bytes live = limit;
    for (int tries = 0; tries < most_shrinks; ++tries) {
      if (held() <= limit) return true;
      if (!paging_ || !shrink(live)) break;
      (void)pool_->device().trim();
      // Chunks that are free in part only can't go: others leave for them.
      memory_account const now = pool_->device().account();
      bytes const beyond = now.reserved > limit ? now.reserved - limit : 0;
      live = std::min(live, now.live) > beyond ? std::min(live, now.live) - beyond : 0;
    }
    (void)pool_->device().trim();
    return held() <= limit;
  }

  /// Movable blocks get chunks of n bytes from now on: whatever may leave does, once, and the device's memory comes
  /// anew.
  void change_chunk(bytes n) noexcept {
    pool_->device().set_movable_chunk(n);
    (void)shrink(0);
    (void)pool_->device().trim();
  }

  /// What blocks count for in schedules, under the present limit.
  [[nodiscard]] block_counting counting() const noexcept {
    return {.smallest = smallest_movable(), .chunk = pool_->device().movable_chunk()};
  }

  /// What the device pool has in live blocks, pages and others.
  [[nodiscard]] bytes live() const noexcept { return pool_->device().account().live; }
  /// What the device pool has in live blocks beside the pages.
  [[nodiscard]] bytes others() const noexcept {
    swap_stats const s = pool_->swaps();
    bytes const own = s.swappable - s.absent + fixed_bytes_, all = live();
    return all > own ? all - own : 0;
  }

 private:
  using place_list = hooked_list<page, &page::by_place>;
  static constexpr bytes least_more = 16_MiB;
  static constexpr int most_shrinks = 8;   ///< rounds of sending blocks away for a lower limit
  static constexpr int most_failures = 4;  ///< of moves, while room is sought for one request

  [[nodiscard]] bytes smallest_movable() const noexcept {
    return std::max<bytes>(options_->smallest, pool_->options().smallest);
  }
  [[nodiscard]] bytes room() const noexcept {
    memory_account const now = pool_->device().account();
    return now.limit > now.live ? now.limit - now.live : 0;
  }
  /// In blocks whose memory will be free without anybody's doing more.
  [[nodiscard]] bytes leaving() const noexcept {
    bytes const absent = pool_->swaps().absent;
    return out_bytes_ > absent ? out_bytes_ - absent : 0;
  }

  void list(page& p) noexcept {
    if (p.listed || !p.named || p.fixed || p.users > 0 || p.pins > 0 || p.refused || p.where != page::place::here)
      return;
    victims_.insert(p);
    p.listed = true;
  }
  void unlist(page& p) noexcept {
    if (!p.listed) return;
    victims_.erase(p);
    p.listed = false;
  }

  void place(page& p, page::place to) noexcept {
    if (p.where == page::place::out) {
      out_.erase(place_list::s_iterator_to(p));
      out_bytes_ -= p.size;
    }
    if (p.where == page::place::coming) coming_.erase(place_list::s_iterator_to(p));
    p.where = to;
    if (to == page::place::here) return;
    unlist(p);
    if (p.refused) refused_.erase(place_list::s_iterator_to(p));
    p.refused = false;
    (to == page::place::out ? out_ : coming_).push_back(p);
    if (to == page::place::out) out_bytes_ += p.size;
  }
  void settle_down(page& p, residency now) noexcept {
    page::place const to = now == residency::mapped     ? page::place::here
                           : now == residency::arriving ? page::place::coming
                                                        : page::place::out;
    if (to == p.where) return;
    if (to == page::place::out) p.planned = false;
    place(p, to);
    list(p);
  }

  [[gnu::cold]] result<void> fetch(page& p, stream on) noexcept {
    result<residency> const now = pool_->residency_of(p.begin);
    if (!now) return failure(now.error());
    if (*now == residency::absent) {
      if (!p.discarded) ++(p.planned ? seen_->late : seen_->misses);
      result<void> done = served<void>(
          p.size, [&]() noexcept { return pool_->try_prefetch(p.begin); },
          [&]() noexcept { return pool_->swap_in(p.begin, on); });
      if (!done) return done;
    }
    if (result<void> done = pool_->swap_in(p.begin, on); !done) return done;
    result<residency> const after = pool_->residency_of(p.begin);
    place(p, after && *after == residency::mapped ? page::place::here : page::place::coming);
    p.planned = false;
    return {};
  }

  /// By all that the pool can do, and by all that leaves.
  [[nodiscard]] result<address> at_last(bytes n, stream on) noexcept {
    for (;;) {
      result<address> at = pool_->device().allocate(request{.size = n, .on = on});
      if (at || at.error().code != errc::out_of_memory || !await_departure()) return at;
    }
  }

  /// By `at_once` as soon as there is room, for which others leave; `at_last` with all that the pool can do.
  template <class T, std::invocable AtOnce, std::invocable AtLast>
  [[nodiscard]] result<T> served(bytes n, AtOnce at_once, AtLast at_last) noexcept {
    if (!paging_) return at_last();
    bool roomy = room() >= n || find_room(n);
    while (roomy) {
      result<T> done = at_once();
      if (done || done.error().code != errc::out_of_memory) return done;
      roomy = find_more(n);  // there is room, but not in this shape, or not on the device
    }
    return at_last();
  }

  [[nodiscard, gnu::cold]] bool find_room(bytes n) noexcept {
    (void)look(true);
    for (int failures = 0; failures < most_failures;) {
      bytes const free = room();
      if (free >= n) return true;
      bytes const soon = leaving();
      if (free + soon < n) (void)evict(n - free - soon);
      if (await_departure()) continue;
      ++failures;
      if (!recover()) break;
    }
    return room() >= n;
  }
  /// Beyond what should have been enough: whether anything more has become free. What is missing is the share of free
  /// memory that lies in pieces, so little leaves at a time.
  [[nodiscard, gnu::cold]] bool find_more(bytes n) noexcept {
    if (leaving() == 0 && evict(std::min(n, std::max(n / 16, least_more))) == 0) return recover();
    bool any = false;
    while (leaving() > 0 && await_departure()) any = true;
    return any || recover();
  }

  /// Bytes that begin to leave.
  bytes evict(bytes n) noexcept {
    bytes sum = 0;
    while (sum < n) {
      page* const p = victims_.next();
      if (p == nullptr) break;
      bytes const size = p->size;
      if (!send(*p, false)) continue;
      sum += size;
      ++seen_->evictions;
      seen_->evicted += size;
    }
    return sum;
  }

  [[nodiscard]] bool await_departure() noexcept {
    if (leaving() == 0) return false;
    auto const began = std::chrono::steady_clock::now();
    bool const ended = pool_->end_departure();
    ++seen_->host_waits;
    seen_->host_wait_ns += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count());
    return ended;
  }

  /// Nothing leaves any more: looks what has failed to, and waits for what is coming if nobody is listed. Whether there
  /// is somebody to send away now.
  [[nodiscard]] bool recover() noexcept {
    if (victims_.next() == nullptr && !coming_.empty() && !pool_->settle()) ++seen_->refused;
    (void)look(true);
    for (auto i = out_.begin(); i != out_.end();) {
      page& p = *i++;
      result<residency> const now = pool_->residency_of(p.begin);
      if (now && *now == residency::mapped) settle_down(p, *now);
    }
    return victims_.next() != nullptr;
  }

  P* pool_;
  pager_options const* options_;
  pager_stats* seen_;
  bool paging_ = true;
  std::uint64_t serials_ = 0;
  Victims victims_;
  slab<page> nodes_;
  address_map<page> known_;
  place_list out_, coming_, refused_;
  bytes out_bytes_ = 0;
  bytes fixed_bytes_ = 0;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace gmlake::swap
