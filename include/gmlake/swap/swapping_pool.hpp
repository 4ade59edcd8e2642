#pragma once
/// A pool whose blocks can leave for host memory and come back, at stable addresses: what the framework holds are the
/// same pointers all along.
///
///     swapping_pool pool(device_pool, host_pool, streams, copier);
///     address weights = *pool.allocate(1_GiB, s);
///     pool.swap_out(weights, s);        // behind the work queued on s; the memory is free once the copy is whole
///     pool.swap_in(weights, s);         // what is queued on s from now on finds the contents
///
/// Between the two calls nothing may use the block; a kernel that does so faults. It may be freed in every state.
/// Copies run on streams of their own. The device memory of a block that has left is free once `progress` has seen its
/// copy to be whole: `swap_worker` calls that in the background, and requests for memory do.
///
/// Thread-safe. Its lock is taken before the pools' own. Requests of at least `smallest` bytes are swappable; the rest
/// goes to the device pool as it is.

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/core/address_map.hpp"
#include "gmlake/core/slab.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/swap/mover.hpp"

namespace gmlake::swap {

struct swap_options {
  bytes smallest = 1_MiB;  ///< smaller requests are not swappable: each would cost a mapping for little memory
};

/// What came of pausing or resuming a group; in bytes.
struct pause_outcome {
  bytes moved = 0;
  bytes stayed = 0;  ///< in blocks that could not move
  error why;         ///< the first reason; meaningless if none stayed
};

template <MovablePool Device, Pool Host, StreamPolicy Streams, Copier Copies>
class swapping_pool {
 public:
  /// The pools outlive it, and serve others too if they like.
  swapping_pool(Device& device, Host& host, Streams streams, Copies copies, swap_options const& options = {}) noexcept
      : device_(&device), options_(options), mover_(device, host, std::move(streams), std::move(copies)) {}
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
    std::scoped_lock const lock(mutex_);
    (void)advance(false);
    request r{.size = n, .on = on};
    if (n < options_.smallest) return with_room<address>([&]() noexcept { return device_->allocate(r); });
    if (!nodes_.reserve(1) || !known_.reserve_one()) return failure(errc::out_of_host_memory, "swap");
    r.where = placement::movable;
    result<address> const at = with_room<address>([&]() noexcept { return device_->allocate(r); });
    if (!at) return failure(at.error());
    block& b = nodes_.acquire();
    b.begin = *at;
    b.size = n;
    b.on = on;
    b.group = group;
    all_.push_back(b);
    known_.insert(*at, b);
    mover_.seen().swappable += n;
    return *at;
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
  /// those recorded. No effect on one that is leaving or absent. Errors: `unknown_pointer`; `invalid_argument` (it is
  /// not swappable, or pinned); `out_of_host_memory`: the host has no room, and it stays; the driver's, likewise.
  [[nodiscard]] result<void> swap_out(address at, stream last) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "swap_out");
    if (b->pins > 0) return failure(errc::invalid_argument, "swap_out: pinned");
    return depart(*b, last, false);
  }

  /// What is queued on `on` from now on may use the block: it is brought back if it is not there. Errors:
  /// `unknown_pointer`, the device pool's, the driver's; then it is where it was, with its contents.
  [[nodiscard]] result<void> swap_in(address at, stream on) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "swap_in");
    if (result<void> done = bring_back(*b); !done) return done;
    return b->state == residency::arriving ? mover_.follow_arrival(*b, on) : result<void>{};
  }

  /// Starts to bring a block back, for whoever calls `swap_in` later. Errors as for `swap_in`.
  [[nodiscard]] result<void> prefetch(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    return b != nullptr ? bring_back(*b) : failure(errc::unknown_pointer, "prefetch");
  }

  /// As `swap_in`, for an access that nothing foresaw: counted as a miss where the block was absent. Blocks that are
  /// not swappable are always there.
  [[nodiscard]] result<void> access(address at, stream on) noexcept {
    {
      std::scoped_lock const lock(mutex_);
      block const* const b = known_.find(at);
      if (b == nullptr) return {};
      if (b->state == residency::absent) ++mover_.seen().misses;
    }
    return swap_in(at, on);
  }

  /// Keeps a block mapped, at the memory that it has from then on, until it is unpinned as often: for what registered
  /// or captured its addresses. It is brought back first. Errors as for `swap_in`.
  [[nodiscard]] result<void> pin(address at, stream on) noexcept {
    if (result<void> done = swap_in(at, on); !done) return done;
    std::scoped_lock const lock(mutex_);
    block* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "pin");
    ++b->pins;
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

  /// Sends a group's blocks to host memory, or discards their contents, waits until their memory is free and gives it
  /// back to the device as far as nothing else lies on it. Work on their streams is waited for. What can't leave stays.
  [[nodiscard]] pause_outcome pause(tag group, bool keeping = true) noexcept {
    std::scoped_lock const lock(mutex_);
    pause_outcome out;
    for (block& b : all_) {
      if (b.group != group || b.state == residency::absent) continue;
      result<void> done =
          b.pins > 0 ? result<void>(failure(errc::invalid_argument, "pause: pinned")) : depart(b, b.on, !keeping);
      count(out, b, done);
    }
    if (result<void> done = advance(true); !done && out.stayed == 0) out.why = done.error();
    recount(out, group, residency::absent);
    (void)device_->trim();
    return out;
  }

  /// Brings a group's blocks back, and waits until they are. Discarded contents come back undefined.
  [[nodiscard]] pause_outcome resume(tag group) noexcept {
    std::scoped_lock const lock(mutex_);
    pause_outcome out;
    for (block& b : all_) {
      if (b.group != group || b.state == residency::mapped) continue;
      count(out, b, bring_back(b));
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

  /// Error: `unknown_pointer`.
  [[nodiscard]] result<residency> residency_of(address at) const noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "residency_of");
    return b->state;
  }
  /// How often other memory has come under a block: whoever registered it must do so again when this has changed.
  /// Error: `unknown_pointer`.
  [[nodiscard]] result<std::uint64_t> generation_of(address at) const noexcept {
    std::scoped_lock const lock(mutex_);
    block const* const b = known_.find(at);
    if (b == nullptr) return failure(errc::unknown_pointer, "generation_of");
    return b->generation;
  }

  [[nodiscard]] pool_stats stats() const noexcept { return device_->stats(); }
  [[nodiscard]] swap_stats swaps() const noexcept {
    std::scoped_lock const lock(mutex_);
    return mover_.seen();
  }

 private:
  using mover_type = mover<Device, Host, Streams, Copies>;
  using block = typename mover_type::block;

  [[nodiscard]] result<void> depart(block& b, stream last, bool discarding) noexcept {
    if (b.state == residency::leaving || b.state == residency::absent) return {};
    if (b.state == residency::arriving) {
      if (result<bool> done = mover_.finish_arriving(b, true); !done) return failure(done.error());
    }
    return mover_.leave(b, last, discarding);
  }

  /// mapped or arriving, whatever it was.
  [[nodiscard]] result<void> bring_back(block& b) noexcept {
    if (b.state == residency::leaving) mover_.call_back(b);
    if (b.state != residency::absent) return {};
    return with_room<void>([&]() noexcept { return mover_.arrive(b); });
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

  /// Ends moves: those whose copies are whole, or all. Returns the first error.
  [[nodiscard]] result<void> advance(bool waiting) noexcept {
    result<void> first;
    for (auto i = mover_.moving().begin(); i != mover_.moving().end();) {
      block& b = *i++;
      result<bool> const done =
          b.state == residency::leaving ? mover_.finish_leaving(b, waiting) : mover_.finish_arriving(b, waiting);
      if (!done && first) first = failure(done.error());
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
