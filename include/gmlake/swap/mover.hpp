#pragma once
/// Moves blocks out to host memory and back in, one step at a time: it queues copies behind the work that used a block,
/// takes the memory away once the host has seen a copy to be whole, and lets consumers wait on the device. It holds no
/// lock, keeps no table and decides nothing: `swapping_pool` does.
///
/// What holds: a copy is given up only once the block's memory has the same contents and no copy of them is under way;
/// memory is taken away only once its copy is whole and everything that used it is known to be done. Whatever fails,
/// the block is in one of the four states, with its contents.

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/stream/stream_policy.hpp"
#include "gmlake/swap/copier.hpp"
#include "gmlake/swap/swap_stats.hpp"
#include "gmlake/swap/swappable.hpp"

namespace gmlake::swap {

/// A pool of movable blocks, as `basic_pool` is.
template <class P>
concept MovablePool = Pool<P> && requires(P& p, address a, stream s) {
  { p.vacate(a) } noexcept -> std::same_as<result<void>>;
  { p.refill(a, s) } noexcept -> std::same_as<result<void>>;
  { p.record_stream(a, s) } noexcept -> std::same_as<result<void>>;
  { p.deallocate(a, s) } noexcept -> std::same_as<result<void>>;
};

template <MovablePool Device, Pool Host, StreamPolicy Streams, Copier Copies>
class mover {
 public:
  using block = swappable<std::optional<typename Streams::fence>>;
  using moving_list = hooked_list<block, &block::in_motion>;

  /// `device` and `host` outlive it.
  mover(Device& device, Host& host, Streams streams, Copies copies) noexcept
      : device_(&device), host_(&host), streams_(std::move(streams)), copies_(std::move(copies)) {}
  mover(mover const&) = delete;
  mover& operator=(mover const&) = delete;

  [[nodiscard]] swap_stats& seen() noexcept { return seen_; }
  [[nodiscard]] swap_stats const& seen() const noexcept { return seen_; }
  /// Blocks that are leaving or arriving, in the order in which their copies were queued each way.
  [[nodiscard]] moving_list& moving() noexcept { return moving_; }

  /// Work on `on` uses the block too. Error: `out_of_host_memory`.
  [[nodiscard]] result<void> add_user(block& b, stream on) noexcept {
    if (on == b.on || std::ranges::find(b.users, on) != b.users.end()) return {};
    try {
      b.users.push_back(on);
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "swap");
    }
    return {};
  }

  /// mapped → leaving, behind the work queued on `last` and on its own streams; with its contents, or without if
  /// `discarding`. Errors: `out_of_host_memory` (the host has no memory for a copy), the driver's; then it stays.
  [[nodiscard]] result<void> leave(block& b, stream last, bool discarding) noexcept {
    if (!room_for_leftovers()) return failure(errc::out_of_host_memory, "swap");
    bool const copying = !discarding && b.copy == address{};
    address copy = b.copy;
    if (copying) {
      result<address> const to = host_->allocate(b.size, stream{});
      if (!to) {
        ++seen_.refusals;
        return failure(to.error().code == errc::out_of_memory ? errc::out_of_host_memory : to.error().code, "swap",
                       to.error().native);
      }
      copy = *to;
      seen_.on_host += b.size;
    }
    result<void> done = follow(copies_.stream_out(), b.on);
    if (done && last != b.on) done = follow(copies_.stream_out(), last);
    for (std::size_t i = 0; done && i < b.users.size(); ++i) done = follow(copies_.stream_out(), b.users[i]);
    if (done && copying) done = copies_.copy_out(copy, b.begin, b.size);
    if (done) done = fence_off(b, copies_.stream_out());
    if (!done) {
      ++seen_.failures;
      if (copying) forsake(copy, b.size);
      return done;
    }
    b.copy = copy;
    b.contents = !discarding;
    if (copying) seen_.copied_out += b.size;
    begin_move(b, residency::leaving);
    return {};
  }

  /// leaving → absent, if the copy is whole; whether it is. Where `waiting`, the host waits for it. Errors: the
  /// driver's; then it stays: mapped if the copy's end can't be told, else leaving, to be tried again.
  [[nodiscard]] result<bool> finish_leaving(block& b, bool waiting) noexcept {
    result<bool> const whole = reached(b, waiting);
    if (!whole) {
      stay(b, false);
      return failed<bool>(whole.error());
    }
    if (!*whole) return false;
    if (result<void> done = device_->vacate(b.begin); !done) return failed<bool>(done.error());
    end_move(b, residency::absent);
    if (!b.contents) let_copy_go(b);
    ++seen_.departures;
    seen_.absent += b.size;
    return true;
  }

  /// leaving → mapped: it is wanted again before it has gone. Its copy is of no use, unless nobody writes the block.
  void call_back(block& b) noexcept {
    stay(b, b.read_only);
    ++seen_.called_back;
  }

  /// absent → arriving; `b.on` and its users are to wait for it by `follow_arrival`. Errors: the pool's, the driver's;
  /// then it is absent still, and its contents are where they were.
  [[nodiscard]] result<void> arrive(block& b) noexcept {
    if (!room_for_leftovers()) return failure(errc::out_of_host_memory, "swap");
    if (result<void> done = device_->refill(b.begin, copies_.stream_in()); !done) return done;
    result<void> done;
    if (b.contents) done = copies_.copy_in(b.begin, b.copy, b.size);
    if (done) done = fence_off(b, copies_.stream_in());
    if (!done) {
      ++seen_.failures;
      (void)streams_.synchronize_device();
      (void)device_->vacate(b.begin);  // should that fail too, the next arrival finds the memory there
      return done;
    }
    if (b.contents) seen_.copied_in += b.size;
    seen_.absent -= b.size;
    ++b.generation;
    begin_move(b, residency::arriving);
    return {};
  }

  /// What is queued on `on` from now on finds an arriving block's contents.
  [[nodiscard]] result<void> follow_arrival(block& b, stream on) noexcept { return streams_.wait(on, *b.moved); }

  /// arriving → mapped, if the copy is whole; whether it is. Errors: the driver's; then it is arriving still.
  [[nodiscard]] result<bool> finish_arriving(block& b, bool waiting) noexcept {
    result<bool> whole = reached(b, waiting);
    if (!whole) return failed<bool>(whole.error());
    if (!*whole) return false;
    end_move(b, residency::mapped);
    b.contents = true;
    if (!b.read_only) let_copy_go(b);
    ++seen_.arrivals;
    return true;
  }

  /// The block goes, in whatever state: to be used again after `after`'s work and that of its users. Error: the pool's,
  /// then it is live as before.
  [[nodiscard]] result<void> drop(block& b, stream after) noexcept {
    result<void> done;
    if (b.state == residency::leaving) done = device_->record_stream(b.begin, copies_.stream_out());
    if (b.state == residency::arriving) done = streams_.wait(after, *b.moved);
    if (done) done = device_->deallocate(b.begin, after);
    if (!done) return done;
    if (b.state == residency::absent) seen_.absent -= b.size;
    if (b.state == residency::leaving || b.state == residency::arriving) {
      moving_.erase(moving_list::s_iterator_to(b));
    }
    let_copy_go(b);
    return {};
  }

  /// Nobody writes the block from now on, or somebody may again: whether its copy is kept.
  void set_read_only(block& b, bool read_only) noexcept {
    b.read_only = read_only;
    if (!read_only && b.state == residency::mapped) let_copy_go(b);
  }

  /// Gives back what copies that nobody needs any more have used, once they are over. Error: the driver's.
  [[nodiscard]] result<void> sweep() noexcept {
    for (std::size_t i = 0; i < leftovers_.size();) {
      result<bool> const over = streams_.reached(leftovers_[i].behind);
      if (!over) return failure(over.error());
      if (*over) end_leftover(i);
      else ++i;
    }
    return {};
  }

  /// The host waits for all copies; whatever was moving stays in its state.
  [[nodiscard]] result<void> synchronize() noexcept { return streams_.synchronize_device(); }

  /// Forgets a block at the end of everything: its copy goes back. Precondition: synchronized.
  void forget(block& b) noexcept { let_copy_go(b); }
  /// The same for copies nobody needs.
  void forget_leftovers() noexcept {
    while (!leftovers_.empty()) end_leftover(leftovers_.size() - 1);
  }

 private:
  using fence = typename Streams::fence;
  /// A copy in host memory that was under way when its block was called back or dropped.
  struct leftover {
    fence behind;
    address copy{};
    bytes size = 0;
  };

  /// For every fence that a block has, and one more.
  [[nodiscard]] bool room_for_leftovers() noexcept {
    try {
      std::size_t const most = leftovers_.size() + fenced_ + 1;
      if (most > leftovers_.capacity()) leftovers_.reserve(2 * most);
    } catch (std::bad_alloc const&) {
      return false;
    }
    return true;
  }

  template <class T>
  [[nodiscard]] result<T> failed(error const& e) noexcept {
    ++seen_.failures;
    return failure(e);
  }

  /// What is queued on `later` from now on runs after what is queued on `earlier`.
  [[nodiscard]] result<void> follow(stream later, stream earlier) noexcept {
    if (later == earlier) return {};
    result<fence> f = streams_.record(earlier);
    if (!f) return failure(f.error());
    result<void> done = streams_.wait(later, *f);
    streams_.release(*f);
    return done;
  }

  [[nodiscard]] result<void> fence_off(block& b, stream on) noexcept {
    result<fence> f = streams_.record(on);
    if (!f) return failure(f.error());
    end_fence(b);
    b.moved.emplace(std::move(*f));
    ++fenced_;
    return {};
  }

  [[nodiscard]] result<bool> reached(block& b, bool waiting) noexcept {
    if (!waiting) return streams_.reached(*b.moved);
    result<void> const done = streams_.synchronize(*b.moved);
    return done ? result<bool>(true) : failure(done.error());
  }

  /// leaving → mapped.
  void stay(block& b, bool keeps_copy) noexcept {
    b.state = residency::mapped;
    b.contents = true;
    moving_.erase(moving_list::s_iterator_to(b));
    if (!keeps_copy) let_copy_go(b);
  }

  void begin_move(block& b, residency to) noexcept {
    b.state = to;
    moving_.push_back(b);
  }
  void end_move(block& b, residency to) noexcept {
    b.state = to;
    moving_.erase(moving_list::s_iterator_to(b));
    end_fence(b);
  }
  void end_fence(block& b) noexcept {
    if (!b.moved) return;
    streams_.release(*b.moved);
    b.moved.reset();
    --fenced_;
  }

  /// The block has no copy from now on. One that may be under way keeps its host memory until it is over.
  void let_copy_go(block& b) noexcept {
    if (b.moved) {
      leftovers_.push_back({std::move(*b.moved), b.copy, b.size});
      b.moved.reset();
      --fenced_;
    } else if (b.copy != address{}) {
      release_copy(b.copy, b.size);
    }
    b.copy = {};
  }

  void end_leftover(std::size_t i) noexcept {
    leftover& l = leftovers_[i];
    streams_.release(l.behind);
    if (l.copy != address{}) release_copy(l.copy, l.size);
    if (&l != &leftovers_.back()) l = std::move(leftovers_.back());
    leftovers_.pop_back();
  }

  void release_copy(address copy, bytes n) noexcept {
    (void)host_->deallocate(copy);
    seen_.on_host -= n;
  }
  /// The copy may be under way, and nothing will tell when it is over.
  void forsake(address copy, bytes n) noexcept {
    (void)streams_.synchronize_device();
    release_copy(copy, n);
  }

  Device* device_;
  Host* host_;
  Streams streams_;
  Copies copies_;
  moving_list moving_;
  std::vector<leftover> leftovers_;
  std::size_t fenced_ = 0;  ///< blocks that have a fence
  swap_stats seen_;
};

}  // namespace gmlake::swap
