#pragma once
/// Serves requests, in this order; each step is tried only when those above it have found nothing:
///
/// 0. the place that a plan has for it, where the configuration plans and the program keeps to the plan
/// 1. a free block on the stream's own shelf (`allocate`; all that a warm program ever sees)
/// 2. a free block of another stream's, its fence passed or waited for already
/// 3. an idle stitch whose memory is free, then a new stitch
/// 4. what other streams' fences still guard, gathered: the stream waits on the device (if the wait policy says so; it
///    may also ask for that before 3), and 1 and 3 are tried again
/// 5. a plan's memory that is idle, or all of it; growth, stitched with what is free already
/// 6. the last resorts (`last_resort`), one after the other until the request is served: the device waits that the
///    policy spared; idle stitches evicted and free chunks released, to be created again in the shape needed; the host
///    waits for all streams, and once more from 1. Beyond that only the pool's user can help: `basic_pool` asks.
///
/// Requests for chunks of their own take the same way, but only from chunks that were made for such a block.
///
/// Not locked: `basic_pool` does that. Every operation acquires what it needs first; from the first change to a shelf
/// on nothing can fail.

#include <concepts>
#include <span>
#include <utility>

#include "gmlake/core/address_map.hpp"
#include "gmlake/core/slab.hpp"
#include "gmlake/pool/grower.hpp"
#include "gmlake/pool/movable_stitcher.hpp"
#include "gmlake/pool/planner_of.hpp"
#include "gmlake/pool/reclaimer.hpp"
#include "gmlake/pool/returner.hpp"
#include "gmlake/pool/stitcher.hpp"
#include "gmlake/stitch/no_stitch.hpp"

namespace gmlake {

template <PoolConfig Config>
class engine {
 public:
  using parts = pool_parts<Config>;

  engine(typename Config::backend backend, typename Config::streams streams, pool_options const& options,
         pool_policies<Config> policies) noexcept
      : p_(std::move(backend), std::move(streams), options, std::move(policies)),
        grow_(p_),
        stitch_(p_),
        move_(p_),
        return_(p_, stitch_),
        reclaim_(p_),
        plan_(p_, stitch_, grow_, return_) {}

  [[nodiscard]] parts& state() noexcept { return p_; }
  [[nodiscard]] parts const& state() const noexcept { return p_; }
  [[nodiscard]] address_map<block> const& live() const noexcept { return live_; }

  /// Errors: `out_of_memory`, with no account yet; `invalid_argument`; the driver's.
  [[nodiscard]] result<address> allocate(request const& r) noexcept {
    stream_index user = p_.space.time().if_last(r.on);
    if (user == nobody) [[unlikely]] {
      result<stream_index> const entered = p_.space.enter(r.on);
      if (!entered) return failure(entered.error());
      user = *entered;
    }
    if (r.alignment == block_alignment && r.where == placement::anywhere && r.size <= largest_request) [[likely]] {
      bytes const n = size_of(r);
      if constexpr (plans) {
        if (address const at = plan_.serve(r, user, n); at != address{}) [[likely]]
          return at;
      }
      if (!live_.reserve_one() || !p_.space.home().reserve_blocks(2)) [[unlikely]]
        return search(r, user);
      area const a = area_for(r.size);
      if (block* const again = p_.space.take_fresh(user, a, n)) return hand_out(*again, r, user);
      if (block* const fit = p_.space.find(user, a, n)) [[likely]] {
        return hand_out(p_.space.carve(*fit, fit->begin, n, block_state::live), r, user);
      }
    }
    return search(r, user);
  }

  /// Whatever else can be done without asking the pool's user. Errors as for `allocate`.
  [[nodiscard]] result<address> last_resort(request const& r) noexcept {
    if (r.size > largest_request) return failure(errc::out_of_memory, "allocate");
    result<stream_index> const user = p_.space.enter(r.on);
    if (!user) return failure(user.error());
    if constexpr (plans) (void)plan_.leave(*user);
    ++p_.retries;
    p_.owed.settle();
    if (result<bool> any = gather(*user); !any) return failure(any.error());
    result<block*> b = from_lake(r, *user, true);
    if (wanting(b)) b = reshape(r, *user);
    if (wanting(b)) {
      if (result<bool> any = p_.space.time().synchronize(); !any) {
        // A stream that is being captured can't be waited for: then this is all there is.
        return any.error().code == errc::not_supported ? failure(errc::out_of_memory, "allocate")
                                                       : failure(any.error());
      }
      return_.learn_passed();
      if constexpr (plans) (void)plan_.settle_rest(*user);
      b = from_lake(r, *user, true);
      if (wanting(b)) b = reshape(r, *user);
    }
    if (!b) return failure(b.error());
    if (*b == nullptr) return failure(errc::out_of_memory, "allocate");
    return refilled_ != nullptr ? result<address>((*b)->begin) : hand_out(**b, r, *user);
  }

  /// Takes the memory from under the movable block at `at`, which keeps its address. The caller vouches that no device
  /// work uses it any more. One that has none is unmapped, if that is wanted. Errors: `unknown_pointer`, `double_free`;
  /// `invalid_argument` where the block is not movable or the pool is pinned; the driver's: then nothing has changed.
  [[nodiscard]] result<void> vacate(address at, vacating how) noexcept {
    result<block*> const b = movable_at(at, "vacate");
    if (!b) return failure(b.error());
    if (p_.options.pinned) return failure(errc::invalid_argument, "vacate: the pool is pinned");
    p_.owed.settle();
    stitch& s = *(*b)->view;
    if (!s.vacated) return move_.vacate(**b, how);
    return how == vacating::unmap ? move_.unmap(s) : result<void>{};
  }
  /// The same at once, while work queued on `after` so far may still use it; it stays mapped. No effect on one that has
  /// no memory. Errors as for `vacate`, and the stream policy's.
  [[nodiscard]] result<void> vacate_behind(address at, stream after) noexcept {
    result<block*> const b = movable_at(at, "vacate");
    if (!b) return failure(b.error());
    if (p_.options.pinned) return failure(errc::invalid_argument, "vacate: the pool is pinned");
    if ((*b)->view->vacated) return {};
    result<stream_index> const behind = p_.space.enter(after);
    if (!behind) return failure(behind.error());
    auto& time = p_.space.time();
    tick const stamp = time.stamp(*behind);
    if (result<void> done = time.fence_apart(*behind); !done) return done;
    move_.vacate_behind(**b, *behind, stamp);
    return {};
  }

  /// What is known of the movable block at `at` from now on. Errors: `unknown_pointer`, `double_free`,
  /// `invalid_argument` where the block is not movable.
  [[nodiscard]] result<void> foresee(address at, foresight const& f) noexcept {
    result<block*> const b = movable_at(at, "foresee");
    if (!b) return failure(b.error());
    move_.foresee(*(*b)->view, f);
    return {};
  }

  /// `movable_stitcher::awaited` of the block at `at`; 0 if it has memory. Errors as for `foresee`, and the policy's.
  [[nodiscard]] result<tick> awaited(address at, stream by) noexcept {
    result<block*> const b = movable_at(at, "awaited");
    if (!b) return failure(b.error());
    result<stream_index> const first = p_.space.enter(by);
    if (!first) return failure(first.error());
    return (*b)->view->vacated ? move_.awaited(*first, **b) : tick{0};
  }

  /// Puts memory under the block at `at` again, for work on `on` that comes after what `by` does next; its contents are
  /// undefined. Errors as for `vacate` and `allocate`; then it has none, as before. `at_last`: by the last resorts.
  [[nodiscard]] result<void> refill(address at, stream on, stream by, bool at_last) noexcept {
    result<block*> const b = movable_at(at, "refill");
    if (!b) return failure(b.error());
    if (!(*b)->view->vacated) return {};
    if ((*b)->view->lent > 0) return failure(errc::invalid_argument, "refill: other memory is shown");
    result<stream_index> const user = p_.space.enter(on);
    if (!user) return failure(user.error());
    result<stream_index> const first = p_.space.enter(by);
    if (!first) return failure(first.error());
    refilled_ = *b;
    refilled_by_ = *first;
    request const r{.size = (*b)->size, .on = on, .where = placement::movable};
    result<address> const done = at_last ? last_resort(r) : search(r, *user);
    refilled_ = nullptr;
    return done ? result<void>{} : failure(done.error());
  }

  /// Maps other memory at a vacated block's address. Errors: `unknown_pointer`, `double_free`; `invalid_argument` where
  /// the block has memory, or shows some; `stitch_cache::show`'s. Then nothing has changed.
  [[nodiscard]] result<void> show(address at, std::span<lent_memory const> pieces) noexcept {
    result<block*> const b = movable_at(at, "show");
    if (!b) return failure(b.error());
    stitch& s = *(*b)->view;
    if (!s.vacated || s.lent > 0) return failure(errc::invalid_argument, "show: the block has memory");
    p_.owed.settle();
    if (result<void> done = move_.unmap(s); !done) return done;
    return p_.stitches.show(s, pieces);
  }
  /// Takes it away again. No effect where none is shown. Errors: `unknown_pointer`, `double_free`, the driver's.
  [[nodiscard]] result<void> hide(address at) noexcept {
    result<block*> const b = movable_at(at, "hide");
    if (!b) return failure(b.error());
    return (*b)->view->lent > 0 ? p_.stitches.hide(*(*b)->view) : result<void>{};
  }

  /// Of the live block at `at`; 0 where there is none.
  [[nodiscard]] bytes size_at(address at) const noexcept {
    block const* const b = live_.find(at);
    return b != nullptr ? b->size : 0;
  }

  /// A block of r.size bytes at `at`, where one was before, in the lake or on a stitch: to bring back an arrangement
  /// that the caller has noted. It vouches for the order of the memory's uses. Errors: `out_of_memory` where not all of
  /// it is free, or not as a block was there; `out_of_host_memory`.
  [[nodiscard]] result<address> allocate_at(address at, request const& r) noexcept {
    result<stream_index> const user = p_.space.enter(r.on);
    if (!user) return failure(user.error());
    if (r.size > largest_request || !is_aligned(at, block_alignment))
      return failure(errc::out_of_memory, "allocate_at");
    bytes const n = r.where == placement::anywhere ? size_of(r) : whole_granules(r);
    if constexpr (plans) {
      if (r.where == placement::anywhere && plan_.restore(at, n, r, *user)) return at;
    }
    if (!live_.reserve_one()) return failure(errc::out_of_host_memory, "allocate_at");
    result<block*> b = nullptr;
    if (r.where == placement::anywhere) b = stitch_.reuse_at(at, *user, n, false);
    if (b && *b == nullptr) b = lake_block_at(at, n);
    if (!b) return failure(b.error());
    if (*b == nullptr) return failure(errc::out_of_memory, "allocate_at");
    return hand_out(**b, r, *user);
  }

  /// Takes back the block at `at`: for others once `on`'s work so far is done with, and recorded uses.
  [[nodiscard]] result<void> deallocate(address at, stream const* on) noexcept {
    stream_index s = nobody;
    if (on != nullptr) {
      result<stream_index> const named = p_.space.enter(*on);
      if (!named) return failure(named.error());
      s = *named;
    }
    if constexpr (plans) {
      if (plan_.take_back(at, on, s)) return {};
    }
    block* const b = live_.extract(at);
    if (b == nullptr) [[unlikely]]
      return failure(fate_of(at), "deallocate");
    if (on == nullptr) s = b->on;
    p_.observer.deallocated({at, b->requested, b->size, p_.space.time().name(s), b});
    p_.freed_since_growth += b->size;
    if constexpr (plans) plan_.freed(b->number, b->size);
    return_.take_back(*b, s);
    // Should one of these fail, it will be tried again: the block has been taken back all the same.
    if (p_.space.time().shared()) (void)p_.space.time().note_free(s);
    if (p_.stitches.victim() != nullptr) [[unlikely]]
      (void)reclaim_.keep_budget();
    return {};
  }

  /// The block at `at` is used by work on `on` too: its memory waits for that as well when it is freed.
  [[nodiscard]] result<void> record_stream(address at, stream on) noexcept {
    block* const b = live_.find(at);
    if (b != nullptr) {
      result<stream_index> const s = p_.space.enter(on);
      return s ? return_.record(*b, *s) : failure(s.error());
    }
    if constexpr (plans) {
      result<stream_index> const s = p_.space.enter(on);
      if (!s) return failure(s.error());
      if (std::optional<result<void>> const done = plan_.record(at, *s)) return *done;
    }
    return failure(fate_of(at), "record_stream");
  }

  /// Gives back all that is free: waits for the streams on the host first.
  [[nodiscard]] result<bytes> trim() noexcept {
    p_.owed.settle();
    if (result<bool> any = p_.space.time().synchronize(); !any) return failure(any.error());
    return_.learn_passed();
    leave_plan();
    if (result<bool> any = reclaim_.evict_idle(); !any) return failure(any.error());
    return reclaim_.release(everything);
  }

  /// As `trim`, but waits for nothing: what is not known to be done with stays.
  [[nodiscard]] result<bytes> trim_passed() noexcept {
    p_.owed.settle();
    if (result<bool> news = p_.space.time().poll(); !news) return failure(news.error());
    return_.learn_passed();
    leave_plan();
    if (result<bool> any = reclaim_.evict_idle(); !any) return failure(any.error());
    return reclaim_.release(everything);
  }

  /// Allows access to all that is mapped once more, after the backend has changed whom it means.
  [[nodiscard]] result<void> renew_access() noexcept {
    for (range const& r : p_.space.home().ranges()) {
      for (chunk const* c = r.first_chunk; c != nullptr; c = c->next) {
        if (result<void> done = p_.backend.set_access(c->home, c->size, access::read_write); !done) return done;
      }
    }
    for (stitch const& s : p_.stitches.all()) {
      bytes const mapped = p_.stitches.mapped_at(s);
      if (mapped == 0) continue;
      if (result<void> done = p_.backend.set_access(s.begin, mapped, access::read_write); !done) return done;
    }
    return {};
  }

  [[nodiscard]] result<void> retire(stream s) noexcept { return p_.space.time().retire(s); }

  [[nodiscard]] bytes movable_chunk() noexcept { return grow_.movable_chunk(); }
  [[nodiscard]] memory_account account(bytes requested) const noexcept {
    bytes const reserved = p_.space.home().reserved();
    bytes const free = p_.space.total();
    return {.requested = requested,
            .reserved = reserved,
            .live = reserved - free,
            .free = free,
            .largest_contiguous = p_.space.largest(),
            .limit = p_.options.limit};
  }

  /// Whether it plans from now on; false gives up the plan that is followed.
  void set_planning(bool on) noexcept
    requires(Config::planning::enabled)
  {
    if (!on) leave_plan();
    plan_.set_learning(on);
  }

  /// What follows plans; only where the configuration plans.
  [[nodiscard]] auto& plan() noexcept { return plan_; }
  [[nodiscard]] auto const& plan() const noexcept { return plan_; }

 private:
  static constexpr bool plans = Config::planning::enabled;
  /// Whether there can be movable blocks, which are views.
  static constexpr bool moves =
      !PlacedBackend<typename Config::backend> && !std::same_as<typename Config::stitching, no_stitch>;
  static constexpr bytes everything = ~bytes{0};
  /// Beyond this no sum of sizes can be trusted not to overflow; no device has as much.
  static constexpr bytes largest_request = bytes{1} << 48;

  [[nodiscard]] area area_for(bytes size) const noexcept {
    return size <= p_.options.small_limit ? area::small : area::large;
  }
  [[nodiscard]] bool stitches(bytes n, bool growth_failed) const noexcept {
    return !PlacedBackend<typename Config::backend> && p_.stitch.stitches(n, growth_failed);
  }
  /// Nothing was found, for a reason that may be mended.
  [[nodiscard]] static bool wanting(result<block*> const& b) noexcept {
    if (b) return *b == nullptr;
    return b.error().code == errc::out_of_memory || b.error().code == errc::out_of_addresses;
  }

  [[nodiscard]] result<address> hand_out(block& b, request const& r, stream_index user) noexcept {
    b.requested = r.size;
    b.on = user;
    if constexpr (plans) b.number = plan_.note(user, b.size);
    live_.insert(b.begin, b);
    p_.observer.allocated({b.begin, r.size, b.size, r.on, &b});
    return b.begin;
  }

  /// [at, at + n) in the lake, if all of it is free.
  [[nodiscard]] result<block*> lake_block_at(address at, bytes n) noexcept {
    result<block*> b = p_.space.isolate_at(
        at, n, [this](chunk& c, address begin, bytes size) noexcept { return p_.space.is_free(c, begin, size); });
    if (b && *b != nullptr) (*b)->state = block_state::live;
    return b;
  }

  /// Steps 2 to 5.
  [[nodiscard]] result<address> search(request const& r, stream_index user) noexcept {
    if (!std::has_single_bit(r.alignment) || r.size > largest_request) {
      return failure(r.size > largest_request ? errc::out_of_memory : errc::invalid_argument, "allocate");
    }
    if (!moves && r.where == placement::movable) return failure(errc::not_supported, "allocate: movable");
    if (!live_.reserve_one() || !p_.space.home().reserve_blocks(2))
      return failure(errc::out_of_host_memory, "allocate");
    p_.owed.settle();
    if (p_.space.time().shared()) {
      if (result<bool> news = p_.space.time().poll(); !news) return failure(news.error());
      return_.learn_passed();
    }
    result<block*> b = from_lake(r, user, false);
    if (b && *b == nullptr && refilled_ == nullptr && p_.wait.before_growing()) {
      b = waited_for(r, user);
      result<bool> more = b && *b == nullptr ? gather(user) : false;
      if (!more) return failure(more.error());
      if (*more) b = from_lake(r, user, false);
    }
    if constexpr (plans) {
      if (b && *b == nullptr) {
        bool gave = false;
        if (r.where == placement::anywhere && r.alignment == block_alignment) {
          address const at = plan_.before_growing(r, user, size_of(r), gave);
          if (at != address{}) return at;
        }
        if (gave) b = from_lake(r, user, false);
      }
    }
    if (b && *b == nullptr) b = grown(r, user);
    if (!b) return failure(b.error());
    if (*b == nullptr) return failure(errc::out_of_memory, "allocate");
    return refilled_ != nullptr ? result<address>((*b)->begin) : hand_out(**b, r, user);
  }

  /// A block that another stream's fence still guards, with the user waiting for it; null where there is none.
  [[nodiscard]] result<block*> waited_for(request const& r, stream_index user) noexcept {
    if (!p_.space.time().shared() || r.where != placement::anywhere) return nullptr;
    block* const b = p_.space.find_elsewhere(user, area_for(r.size), padded(size_of(r), r.alignment), true);
    if (b == nullptr) return nullptr;
    if (result<void> done = p_.space.time().wait(user, b->on, b->stamp); !done) {
      if (done.error().code == errc::not_supported) return nullptr;
      return failure(done.error());
    }
    return cut(*b, align_up(b->begin, r.alignment), size_of(r));
  }

  /// All free memory on the user's shelves, a plan's too that was left; whether there was any.
  [[nodiscard]] result<bool> gather(stream_index user) noexcept {
    bool more = false;
    if constexpr (plans) more = plan_.settle_rest(user);
    result<bool> any = return_.gather(user);
    if (any && more) any = true;
    return any;
  }

  /// From memory that is there, contiguous or stitched; null where there is none to be had at once.
  [[nodiscard]] result<block*> from_lake(request const& r, stream_index user, bool growth_failed) noexcept {
    if (r.where == placement::movable) return on_view(r, user);
    if (r.where != placement::anywhere) return own(r, user);
    bytes const n = size_of(r);
    area const a = area_for(r.size);
    if (block* const b = contiguous(r, user, a, n)) return b;
    if (p_.wait.before_stitching()) {
      result<block*> b = waited_for(r, user);
      if (!b || *b != nullptr) return b;
    }
    if (a == area::small || !stitches(n, growth_failed)) return nullptr;
    result<block*> b = stitch_.reuse(user, n, r.alignment);
    if (!b || *b != nullptr) return b;
    result<stitched> made = stitch_.make(user, n, r.alignment);
    if (!made) return failure(made.error());
    return made->served;
  }

  /// Growth by what is missing, and the block from that and what was there.
  [[nodiscard]] result<block*> grown(request const& r, stream_index user) noexcept {
    if (r.where == placement::movable) return grown_view(r, user);
    if (r.where != placement::anywhere) return grown_own(r, user);
    bytes const n = size_of(r);
    area const a = area_for(r.size);
    result<void> done;
    if (a == area::large && stitches(n, false)) {
      result<stitched> made = stitch_.make(user, n, r.alignment);
      if (!made) return failure(made.error());
      if (made->served != nullptr) return made->served;  // it failed a moment ago, and doesn't any more
      done = grow_.add(user, a, made->shortfall);
    } else {
      done = grow_.add_contiguous(user, a, padded(n, r.alignment));
    }
    if (!done) return failure(done.error());
    if (block* const b = contiguous(r, user, a, n)) return b;
    result<block*> b = from_lake(r, user, false);
    if (!b || *b != nullptr || a == area::small) return b;
    // The stitch policy does not want what it asked for: then without a stitch.
    done = grow_.add_contiguous(user, a, padded(n, r.alignment));
    if (!done) return failure(done.error());
    return contiguous(r, user, a, n);
  }

  /// The needed shape from memory in the wrong one: free chunks released and created again, first those that leave
  /// other idle stitches as they are. Large blocks come from anywhere; small ones may in the end lie among the large.
  [[nodiscard]] result<block*> reshape(request const& r, stream_index user) noexcept {
    result<block*> b = recreated(r, user);
    if (!wanting(b)) return b;
    if (result<bool> any = reclaim_.evict_idle(); !any) return failure(any.error());
    b = recreated(r, user);
    if (!wanting(b) || r.where != placement::anywhere || area_for(r.size) == area::large) return b;
    if (block* const among = contiguous(r, user, area::large, size_of(r))) return among;
    return b;
  }

  [[nodiscard]] result<block*> recreated(request const& r, stream_index user) noexcept {
    bytes const n = padded(size_of(r), r.alignment);
    if (result<bytes> freed = reclaim_.release(align_up(n, p_.granule)); !freed) return failure(freed.error());
    return grown(r, user);
  }

  /// A movable block, a new one or the one to be refilled, from what is free; null where it falls short.
  [[nodiscard]] result<block*> on_view(request const& r, stream_index user) noexcept {
    result<stitched> const made = refilled_ != nullptr ? move_.refill(user, refilled_by_, *refilled_)
                                                       : move_.make(user, size_of(r), r.alignment, r.foreseen);
    if (!made) return failure(made.error());
    view_shortfall_ = made->shortfall;
    return made->served;
  }
  /// The same after growth by what was missing; where nothing was, and the block's addresses or a stream are not ready
  /// for what there is, growth is of no help.
  [[nodiscard]] result<block*> grown_view(request const& r, stream_index user) noexcept {
    result<block*> b = on_view(r, user);
    if (!b || *b != nullptr || view_shortfall_ == 0) return b;
    if (result<void> done = grow_.add(user, area::large, view_shortfall_, true); !done) return failure(done.error());
    return on_view(r, user);
  }

  [[nodiscard]] result<block*> movable_at(address at, char const* what) noexcept {
    block* const b = live_.find(at);
    bool planned = false;
    if constexpr (plans) planned = b == nullptr && plan_.look_at(at, [](block const&, stream) {});
    if (b == nullptr && !planned) return failure(fate_of(at), what);
    if (planned || b->view == nullptr || !b->view->movable) return failure(errc::invalid_argument, what);
    return b;
  }

  /// A block on free chunks that nobody shares and that were made for such a block; null where there are none of the
  /// size.
  [[nodiscard]] result<block*> own(request const& r, stream_index user) noexcept {
    if (r.alignment > p_.granule) return failure(errc::invalid_argument, "allocate: alignment above the granule");
    bytes const n = whole_granules(r);
    for (range& held : p_.space.home().ranges()) {
      if (held.kind != area::own) continue;
      for (chunk* c = held.first_chunk; c != nullptr; c = c->next) {
        if (r.where == placement::one_handle && c->size != n) continue;
        if (!makes_up(*c, n) || !p_.space.usable(user, *c, c->home, n)) continue;
        block& b = *c->first;
        if (b.end() >= c->home + n) return cut(b, c->home, n);
      }
    }
    return nullptr;
  }

  /// The same on new chunks. Free ones of another size go first, lest a program that keeps changing sizes pile them up.
  [[nodiscard]] result<block*> grown_own(request const& r, stream_index user) noexcept {
    bytes const n = whole_granules(r);
    if (result<bytes> freed = reclaim_.release(n, area::own); !freed) return failure(freed.error());
    return grow_.add_own(user, n, r.where == placement::one_handle);
  }

  [[nodiscard]] bytes whole_granules(request const& r) const noexcept {
    return align_up(r.size > 0 ? r.size : 1, p_.granule);
  }

  /// Whether chunks side by side from `first` on add up to exactly n bytes.
  [[nodiscard]] static bool makes_up(chunk const& first, bytes n) noexcept {
    bytes sum = first.size;
    for (chunk const* c = &first; sum < n && c->next != nullptr && c->next->home == c->end(); c = c->next) {
      sum += c->next->size;
    }
    return sum == n;
  }

  [[nodiscard]] bytes size_of(request const& r) const noexcept {
    return Config::split::round(r.size > 0 ? r.size : 1, p_.granule);
  }
  /// So much contiguous memory surely holds n bytes at that alignment.
  [[nodiscard]] static bytes padded(bytes n, bytes alignment) noexcept {
    return alignment > block_alignment ? n + alignment - block_alignment : n;
  }

  /// [begin, begin + n) of a free block, live; null for want of host memory. Growth may have used up the nodes that
  /// were reserved at first.
  [[nodiscard]] block* cut(block& b, address begin, bytes n) noexcept {
    return p_.space.home().reserve_blocks(2) ? &p_.space.carve(b, begin, n, block_state::live) : nullptr;
  }

  [[nodiscard]] block* contiguous(request const& r, stream_index user, area a, bytes n) noexcept {
    bytes const room = padded(n, r.alignment);
    block* b = p_.space.find(user, a, room);
    if (b == nullptr && p_.space.time().shared()) b = p_.space.find_elsewhere(user, a, room, false);
    if (b == nullptr) return nullptr;
    return cut(*b, align_up(b->begin, r.alignment), n);
  }

  void leave_plan() noexcept {
    if constexpr (plans) {
      (void)plan_.leave(p_.space.time().someone());
      (void)plan_.settle_rest(p_.space.time().someone());
    }
  }

  /// Why `at` is no block that could be freed.
  [[nodiscard]] errc fate_of(address at) const noexcept {
    if constexpr (plans) {
      if (plan_.was_placed(at)) return errc::double_free;
    }
    for (range const& r : p_.space.home().ranges()) {
      if (at < r.begin || at >= r.grown_end()) continue;
      for (block const* b = r.first; b != nullptr; b = b->next) {
        if (at < b->end())
          return b->state == block_state::free && is_aligned(at, block_alignment) ? errc::double_free
                                                                                  : errc::unknown_pointer;
      }
    }
    for (stitch const& s : p_.stitches.all()) {
      if (at == s.begin + s.base) return errc::double_free;
    }
    return errc::unknown_pointer;
  }

  parts p_;
  grower<Config> grow_;
  stitcher<Config> stitch_;
  movable_stitcher<Config> move_;
  returner<Config> return_;
  reclaimer<Config> reclaim_;
  [[no_unique_address]] planner_of<Config> plan_;
  address_map<block> live_;
  block* refilled_ = nullptr;  ///< what memory is being sought for, where that is no new block
  stream_index refilled_by_ = nobody;
  bytes view_shortfall_ = 0;  ///< what the last attempt at a movable block has missed
};

}  // namespace gmlake
