#pragma once
/// A pool whose blocks can leave for host memory and come back, at stable addresses: what the framework holds are the
/// same pointers all along.
///
///     swapping_pool pool(device_pool, host_pool, streams, copier);
///     address weights = *pool.allocate(1_GiB, s);
///     pool.swap_out(weights, s);        // behind the work queued on s; the memory is free once the copy is whole
///     pool.swap_in(weights, s);         // what is queued on s from now on finds the contents
///
/// Between the two calls nothing may use the block; a kernel that does so faults. It may be freed in every state. Where
/// absent blocks are served in place (`swap_options::in_place`), kernels may use one as soon as it is absent: they work
/// on its copy in host memory, slowly, and what they write is its contents.
///
/// Copies run on streams of their own. Copies that pinned memory has no room for are in a file below it, if one is
/// given. The device memory of a block that has left is free once `progress` has seen its copy to be whole:
/// `swap_worker` calls that in the background, and requests for memory do.
///
/// Thread-safe. Its lock is taken before the pools' own. Requests of at least `smallest` bytes are swappable; the rest
/// goes to the device pool as it is.

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/core/address_map.hpp"
#include "gmlake/core/slab.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/swap/mover.hpp"
#include "gmlake/swap/pause_outcome.hpp"

namespace gmlake::swap {

struct swap_options {
  /// Absent blocks are served from their host copies, at their addresses, where both pools can (`in_place.hpp`) and the
  /// copy's chunks find room there: those of at most 256 MiB do. Each copy begins on a chunk of its own then, so the
  /// host pool's chunks should be small beside the blocks (`adaptive_options::fixed(32_MiB)`). Such copies are never
  /// written to the file; the host waits for the work on a block before it is brought back or freed.
  bool in_place = false;
  bytes stage_size = 16_MiB;  ///< of the host pool's memory, taken twice where there is a file
  bytes smallest = 1_MiB;     ///< smaller requests are not swappable: each would cost a mapping for little memory
};

template <MovablePool Device, Pool Host, StreamPolicy Streams, Copier Copies, BackingStore Below = swap_file>
class swapping_pool {
 public:
  /// The pools outlive it, and serve others too if they like.
  swapping_pool(Device& device, Host& host, Streams streams, Copies copies, swap_options const& options = {}) noexcept
    requires std::default_initializable<Below>
      : swapping_pool(device, host, std::move(streams), std::move(copies), Below{}, options) {}
  /// With `below` for the copies that the host pool has no room for.
  swapping_pool(Device& device, Host& host, Streams streams, Copies copies, Below below,
                swap_options const& options = {}) noexcept
      : device_(&device),
        options_(options),
        mover_(device, host, std::move(streams), std::move(copies), std::move(below),
               {.in_place = options.in_place, .stage_size = options.stage_size}) {}
  swapping_pool(swapping_pool const&) = delete;
  swapping_pool& operator=(swapping_pool const&) = delete;
  /// Waits for the copies and gives back host memory. Blocks stay with the device pool; those absent are lost.
  ~swapping_pool() {
    (void)mover_.synchronize();
    while (!mover_.moving().empty()) mover_.moving().pop_front();
    while (!all_.empty()) {
      block& b = all_.front();
      mover_.forget(b);
      all_.pop_front();
      nodes_.release(b);
    }
    mover_.forget_leftovers();
  }

  /// n bytes for work queued on `on`; swappable where n is large enough. Where memory is short, blocks that are leaving
  /// are waited for. Errors: the device pool's.
  [[nodiscard]] result<address> allocate(bytes n, stream on = {}) noexcept { return allocate(n, on, tag{}); }
  /// The same in a group that is paused and resumed together.
  [[nodiscard]] result<address> allocate(bytes n, stream on, tag group) noexcept {
    return allocate(request{.size = n, .on = on}, group);
  }
  /// As requested, but movable where it is large enough, whatever the request says. One that does not insist waits for
  /// nothing: not for what is leaving, nor by the device pool's last resorts; nor does it ask which moves are over, as
  /// who asks so often that it counts calls `progress` when it likes.
  [[nodiscard]] result<address> allocate(request r, tag group) noexcept {
    std::scoped_lock const lock(mutex_);
    if (r.insist) (void)advance(false);
    if (r.size < options_.smallest) return served(r);
    if (!nodes_.reserve(1) || !known_.reserve_one()) return failure(errc::out_of_host_memory, "swap");
    r.where = placement::movable;
    result<address> const at = served(r);
    if (!at) return failure(at.error());
    block& b = nodes_.acquire();
    b.begin = *at;
    b.size = r.size;
    b.on = r.on;
    b.group = group;
    all_.push_back(b);
    known_.insert(*at, b);
    mover_.seen().swappable += r.size;
    return *at;
  }

  /// When a block's memory comes and goes from now on, for the device pool. Errors: `unknown_pointer`, the pool's.
  [[nodiscard]] result<void> foresee(address at, foresight const& f) noexcept {
    std::scoped_lock const lock(mutex_);
    return known_.find(at) != nullptr ? device_->foresee(at, f) : failure(errc::unknown_pointer, "foresee");
  }

  /// Takes a block back, wherever its memory is: to be used again after the work queued on the stream that it was
  /// allocated for, or on `after`. Errors: the device pool's.
  [[nodiscard]] result<void> deallocate(address at) noexcept { return deallocate_after(at, nullptr); }
  [[nodiscard]] result<void> deallocate(address at, stream after) noexcept { return deallocate_after(at, &after); }

  /// Work on `on` uses the block too. Errors: the device pool's, `out_of_host_memory`.
  [[nodiscard]] result<void> record_stream(address at, stream on) noexcept {
    std::scoped_lock const lock(mutex_);
    if (block* const b = known_.find(at)) {
      if (result<void> done = mover_.add_user(*b, on); !done) return done;
    }
    return device_->record_stream(at, on);
  }

  /// Sends a block to host memory, behind the work queued on `last`, on the stream that it was allocated for and on
  /// those recorded; `way`: what becomes of its mapping. No effect on one that is leaving or absent. Where pinned
  /// memory is short, the oldest copies are written to the file first, in the caller's time. Errors: `unknown_pointer`,
  /// also for blocks that are not swappable; `invalid_argument`: it is pinned; `out_of_host_memory`: neither has room,
  /// and it stays; the driver's, likewise.
  [[nodiscard]] result<void> swap_out(address at, stream last, vacating way = vacating::unmap) noexcept {
    std::scoped_lock const lock(mutex_);
    return send(at, last, false, way);
  }
  /// The same without its contents: nothing is copied, and they are undefined when it has come back; a copy there is
  /// goes. One that had not left yet may still have them. Errors as for `swap_out`.
  [[nodiscard]] result<void> discard(address at, stream last, vacating way = vacating::unmap) noexcept {
    std::scoped_lock const lock(mutex_);
    return send(at, last, true, way);
  }

  /// Whatever touches an absent block from now on is at fault, of those that begin where `which` says so: what was left
  /// mapped is unmapped. Returns the first error, the driver's; the others are unmapped then.
  template <std::predicate<address> Which>
  [[nodiscard]] result<void> unmap_absent(Which which) noexcept {
    std::scoped_lock const lock(mutex_);
    result<void> first;
    for (block& b : all_) {
      result<void> done = which(b.begin) ? mover_.unmap(b) : result<void>{};
      if (!done && first) first = done;
    }
    return first;
  }

  /// What is queued on `on` from now on may use the block: it is brought back if it is not there. Errors:
  /// `unknown_pointer`, the device pool's, a watcher's, the file's, the driver's; then it is where it was, with its
  /// contents.
  [[nodiscard]] result<void> swap_in(address at, stream on) noexcept {
    std::scoped_lock const lock(mutex_);
    result<block*> const b = brought(at, on);
    return b ? result<void>{} : failure(b.error());
  }

  /// Starts to bring a block back, for whoever calls `swap_in` later. Errors as for `swap_in`.
  [[nodiscard]] result<void> prefetch(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    return b != nullptr ? bring_back(*b, nullptr) : failure(errc::unknown_pointer, "prefetch");
  }
  /// The same, but waits for nothing but the block's own copy out, as a request that does not insist. One that is
  /// leaving still stays.
  [[nodiscard]] result<void> try_prefetch(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "prefetch");
    return b->state == residency::absent ? mover_.arrive(*b, nullptr, false) : bring_back(*b, nullptr);
  }

  /// Which of those that are absent `try_prefetch` can bring back first, by the memory that is mapped for them: less is
  /// sooner; 0 at once; the maximum: the host would wait. Others are there: 0. Errors: `unknown_pointer`, the device
  /// pool's.
  [[nodiscard]] result<std::uint64_t> awaited(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "awaited");
    return b->state == residency::absent ? mover_.awaited(*b) : std::uint64_t{0};
  }

  /// Whether `try_prefetch` would make the host wait for the block's own copy out, as far as can be told.
  [[nodiscard]] bool awaits_copy(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    return b != nullptr && b->state == residency::absent && mover_.awaits_copy(*b);
  }

  /// As `swap_in`, for an access that nothing foresaw: counted as a miss where the block was absent. Blocks that are
  /// not swappable are always there.
  [[nodiscard]] result<void> access(address at, stream on) noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return {};
    if (b->state == residency::absent) ++mover_.seen().misses;
    result<block*> const done = brought(at, on);
    return done ? result<void>{} : failure(done.error());
  }

  /// Keeps a block mapped, at the memory that it has from then on, until it is unpinned as often: for what registered
  /// or captured its addresses. It is brought back first. Errors as for `swap_in`.
  [[nodiscard]] result<void> pin(address at, stream on) noexcept {
    std::scoped_lock const lock(mutex_);
    result<block*> const b = brought(at, on);
    if (!b) return failure(b.error());
    ++(*b)->pins;
    return {};
  }
  /// Errors: `unknown_pointer`; `invalid_argument` where it is not pinned.
  [[nodiscard]] result<void> unpin(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "unpin");
    if (b->pins == 0) return failure(errc::invalid_argument, "unpin");
    --b->pins;
    return {};
  }

  /// Nobody writes the block any more, as frozen weights; its copy is kept then, and it leaves again without being
  /// copied. False ends that. Error: `unknown_pointer`.
  [[nodiscard]] result<void> set_read_only(address at, bool read_only) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "set_read_only");
    mover_.set_read_only(*b, read_only);
    return {};
  }

  /// `callback` is told before the block's device memory goes and after other memory has come, until `unwatch` or the
  /// block's end; its errors keep the block where it is. Where others know already that it goes, it is told at once; of
  /// an absent block, whose address has no memory, only when that has come. Pinning is for who can't be told. Errors:
  /// `unknown_pointer`; `invalid_argument`: it is empty; `out_of_host_memory`, the callback's: then it isn't.
  [[nodiscard]] result<watcher> watch(address at, remap_callback callback) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "watch");
    if (!callback) return failure(errc::invalid_argument, "watch");
    if (b->told) {
      if (result<void> heard = callback(b->begin, b->size, remapping::going); !heard) return failure(heard.error());
    }
    return b->watched.add(std::move(callback));
  }
  /// Errors: `unknown_pointer`; `invalid_argument` where there is no such watcher.
  [[nodiscard]] result<void> unwatch(address at, watcher who) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "unwatch");
    return b->watched.remove(who) ? result<void>{} : failure(errc::invalid_argument, "unwatch");
  }

  /// Sends a group's blocks to host memory, or discards their contents, also of those that have left, waits until their
  /// memory is free and gives it back to the device as far as nothing else lies on it. Work on their streams is waited
  /// for. What can't leave stays, and so does what `in_use(address)` says, which must not call the pool. The others are
  /// paused until they come back, by `resume` or otherwise.
  [[nodiscard]] pause_outcome pause(tag group, bool keeping = true) noexcept {
    return pause(group, keeping, [](address) noexcept { return false; });
  }
  template <std::predicate<address> InUse>
  [[nodiscard]] pause_outcome pause(tag group, bool keeping, InUse in_use) noexcept {
    std::scoped_lock const lock(mutex_);
    pause_outcome out;
    bytes leaves = 0;
    for (block& b : all_) {
      if (b.group != group || (b.state == residency::absent && keeping)) continue;
      bool const there = b.state != residency::absent;
      result<void> done;
      if (b.pins > 0) done = failure(errc::invalid_argument, "pause: pinned");
      else if (in_use(b.begin)) done = failure(errc::invalid_argument, "pause: in use");
      else done = depart(b, b.on, !keeping, vacating::unmap);
      if (done && there) leaves += b.size;
      count(out, b, done);
    }
    // What has left goes back to the device while the rest is copied, as the driver's calls for that take their time;
    // in parts, as each looks through all memory.
    bytes held = 0;
    result<void> const done = advance(true, [&](bytes n) noexcept {
      held += n;
      if (held < leaves / pause_parts) return;
      held = 0;
      (void)device_->trim_passed();
    });
    if (!done && out.stayed == 0) out.why = done.error();
    recount(out, group, residency::absent);
    for (block& b : all_) {
      if (b.group == group) b.paused = b.state == residency::absent || b.state == residency::leaving;
    }
    (void)device_->trim();  // what the driver does not take back now it is asked to again
    return out;
  }

  /// Brings a group's blocks back, and waits until they are. Discarded contents come back undefined.
  [[nodiscard]] pause_outcome resume(tag group) noexcept {
    std::scoped_lock const lock(mutex_);
    pause_outcome out;
    for (block& b : all_) {
      if (b.group != group || b.state == residency::mapped) continue;
      count(out, b, bring_back(b, nullptr));
      (void)advance(false);  // what has arrived gives its host memory back for others
    }
    if (result<void> done = advance(true); !done && out.stayed == 0) out.why = done.error();
    recount(out, group, residency::mapped);
    return out;
  }

  /// Ends the moves whose copies are whole, without waiting. Whether any is under way still. Error: the first that a
  /// move met; the others have been looked at all the same.
  [[nodiscard]] result<bool> progress() noexcept {
    std::scoped_lock const lock(mutex_);
    if (result<void> done = advance(false); !done) return failure(done.error());
    return !mover_.moving().empty();
  }
  /// The same for all moves, waiting on the host.
  [[nodiscard]] result<void> settle() noexcept {
    std::scoped_lock const lock(mutex_);
    return advance(true);
  }

  /// The host waits for the departure whose turn it is. Whether there was one, and its memory is free.
  [[nodiscard]] bool end_departure() noexcept {
    std::scoped_lock const lock(mutex_);
    return end_a_departure();
  }

  /// Error: `unknown_pointer`.
  [[nodiscard]] result<residency> residency_of(address at) const noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "residency_of");
    return b->state;
  }
  /// Whether the block is absent, and what touches it works on its copy in host memory. Error: `unknown_pointer`.
  [[nodiscard]] result<bool> served_in_place(address at) const noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "served_in_place");
    return b->in_place;
  }
  /// Whether it is away because its group was paused. Error: `unknown_pointer`.
  [[nodiscard]] result<bool> is_paused(address at) const noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "is_paused");
    return b->paused;
  }
  /// How often other memory has come under a block: whoever registered it must do so again when this has changed.
  /// Error: `unknown_pointer`.
  [[nodiscard]] result<std::uint64_t> generation_of(address at) const noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "generation_of");
    return b->generation;
  }

  [[nodiscard]] Device& device() noexcept { return *device_; }
  [[nodiscard]] swap_options const& options() const noexcept { return options_; }
  [[nodiscard]] pool_stats stats() const noexcept { return device_->stats(); }
  [[nodiscard]] swap_stats swaps() const noexcept {
    std::scoped_lock const lock(mutex_);
    return mover_.seen();
  }
  /// What copies took that the copier has timed, each once, when it is over.
  [[nodiscard]] carried take_carried() noexcept {
    std::scoped_lock const lock(mutex_);
    return mover_.take_carried();
  }

 private:
  static constexpr bytes pause_parts = 32;  ///< in which a group's memory goes back

  using mover_type = mover<Device, Host, Streams, Copies, Below>;
  using block = typename mover_type::block;

  [[nodiscard]] result<address> served(request const& r) noexcept {
    if (!r.insist) return device_->allocate(r);
    return with_room<address>([&]() noexcept { return device_->allocate(r); });
  }

  [[nodiscard]] result<void> send(address at, stream last, bool discarding, vacating way) noexcept {
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "swap_out");
    if (b->pins > 0) return failure(errc::invalid_argument, "swap_out: pinned");
    return depart(*b, last, discarding, way);
  }

  [[nodiscard]] result<void> depart(block& b, stream last, bool discarding, vacating way) noexcept {
    if (b.state == residency::leaving || b.state == residency::absent) {
      return discarding ? mover_.discard_copy(b) : result<void>{};
    }
    if (b.state == residency::arriving && way == vacating::unmap) {
      if (result<bool> done = mover_.finish_arriving(b, true); !done) return failure(done.error());
    }
    result<void> done = mover_.leave(b, last, discarding, way);
    while (!done && done.error().code == errc::out_of_host_memory && make_host_room()) {
      done = mover_.leave(b, last, discarding, way);
    }
    if (!done && done.error().code == errc::out_of_host_memory) ++mover_.seen().refusals;
    return done;
  }

  /// Whether host memory has become free, or may now be written to the file: one move is waited for that uses some.
  [[nodiscard]] bool make_host_room() noexcept {
    if (mover_.end_one_leftover()) return true;
    for (block& b : mover_.moving()) {
      if (b.state != residency::arriving) continue;
      result<bool> const come = mover_.finish_arriving(b, true);
      return come && *come;
    }
    if (mover_.files() && end_a_departure()) return true;
    return std::ranges::any_of(all_, [this](block& b) noexcept { return mover_.spare_copy(b); });
  }

  /// The block, for what is queued on `on` from now on.
  [[nodiscard]] result<block*> brought(address at, stream on) noexcept {
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "swap_in");
    result<void> done = bring_back(*b, &on);
    if (done && b->state == residency::arriving) done = mover_.follow_arrival(*b, on);
    return done ? result<block*>(b) : failure(done.error());
  }

  /// mapped or arriving, whatever it was; work on `last`, if there is one, may have used it in place.
  [[nodiscard]] result<void> bring_back(block& b, stream const* last) noexcept {
    if (b.state == residency::leaving) mover_.call_back(b);
    if (b.state != residency::absent) return mover_.reassure(b);
    return with_room<void>([&]() noexcept { return mover_.arrive(b, last); });
  }

  [[nodiscard]] result<void> deallocate_after(address at, stream const* after) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return after != nullptr ? device_->deallocate(at, *after) : device_->deallocate(at);
    if (result<void> done = mover_.drop(*b, after != nullptr ? *after : b->on); !done) return done;
    mover_.seen().swappable -= b->size;
    (void)known_.extract(at);
    all_.erase(block_list::s_iterator_to(*b));
    nodes_.release(*b);
    return {};
  }

  /// Where memory is out, what is leaving is waited for, one block after the other.
  template <class T, std::invocable Try>
  [[nodiscard]] result<T> with_room(Try once) noexcept {
    result<T> done = once();
    while (!done && done.error().code == errc::out_of_memory) {
      if (!end_a_departure()) break;
      done = once();
    }
    return done;
  }

  /// Whether one block's memory has become free.
  [[nodiscard]] bool end_a_departure() noexcept {
    for (block& b : mover_.moving()) {
      if (b.state != residency::leaving) continue;
      result<bool> const gone = mover_.finish_leaving(b, true);
      return gone && *gone;
    }
    return false;
  }

  /// Ends moves: those whose copies are whole, or all. Returns the first error. Copies one way are done in order:
  /// behind one that is not, nobody looks.
  [[nodiscard]] result<void> advance(bool waiting) noexcept {
    return advance(waiting, [](bytes) noexcept {});
  }
  /// `gone` is told the size of each that has left.
  template <std::invocable<bytes> Gone>
  [[nodiscard]] result<void> advance(bool waiting, Gone gone) noexcept {
    result<void> first;
    bool out_waits = false;
    bool in_waits = false;
    for (auto i = mover_.moving().begin(); i != mover_.moving().end() && !(out_waits && in_waits);) {
      block& b = *i++;
      bool const out = b.state == residency::leaving;
      bool& waits = out ? out_waits : in_waits;
      if (waits) continue;
      result<bool> const done = out ? mover_.finish_leaving(b, waiting) : mover_.finish_arriving(b, waiting);
      if (!done && first) first = failure(done.error());
      waits = done && !*done;
      if (out && done && *done) gone(b.size);
    }
    if (result<void> done = mover_.sweep(); !done && first) first = done;
    return first;
  }

  static void count(pause_outcome& out, block const& b, result<void> const& done) noexcept {
    if (done) return;
    if (out.stayed == 0) out.why = done.error();
    out.stayed += b.size;
  }
  void recount(pause_outcome& out, tag group, residency moved) noexcept {
    out.moved = out.stayed = 0;
    for (block const& b : all_) {
      if (b.group == group) (b.state == moved ? out.moved : out.stayed) += b.size;
    }
  }

  using block_list = hooked_list<block, &block::in_all>;

  mutable std::mutex mutex_;
  Device* device_;
  swap_options options_;
  mover_type mover_;
  slab<block> nodes_;
  address_map<block> known_;
  block_list all_;
};

}  // namespace gmlake::swap
