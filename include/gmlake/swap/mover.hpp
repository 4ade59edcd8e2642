#pragma once
/// Moves blocks out to host memory and back in, one step at a time: it queues copies behind the work that used a block,
/// takes the memory away once the host has seen a copy to be whole, and lets consumers wait on the device. It holds no
/// lock, keeps no table and decides nothing: `swapping_pool` does. Where copies lie is `host_tier`'s business.
///
/// What holds: a copy is given up only once the block's memory has the same contents and no copy of them is under way;
/// memory is unmapped only once its copy is whole and everything that used it is known to be done; what stays mapped is
/// handed over at once, to who waits on the device for the copy. Whatever fails, the block is in one of the four
/// states, with its contents. A copy that was queued is taken to end well: a device on which one fails has lost all
/// else too.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/stream/stream_policy.hpp"
#include "gmlake/swap/carried.hpp"
#include "gmlake/swap/copier.hpp"
#include "gmlake/swap/host_tier.hpp"
#include "gmlake/swap/in_place.hpp"
#include "gmlake/swap/stages.hpp"
#include "gmlake/swap/swap_file.hpp"
#include "gmlake/swap/swap_stats.hpp"
#include "gmlake/swap/swappable.hpp"

namespace gmlake::swap {

/// A pool of movable blocks, as `basic_pool` is.
template <class P>
concept MovablePool = Pool<P> && requires(P& p, address a, stream s) {
  { p.vacate(a, vacating::leave) } noexcept -> std::same_as<result<void>>;
  { p.vacate_behind(a, s) } noexcept -> std::same_as<result<void>>;
  { p.foresee(a, foresight{}) } noexcept -> std::same_as<result<void>>;
  { p.awaited(a, s) } noexcept -> std::same_as<result<std::uint64_t>>;
  { p.refill(a, s, s, true) } noexcept -> std::same_as<result<void>>;
  { p.record_stream(a, s) } noexcept -> std::same_as<result<void>>;
  { p.deallocate(a, s) } noexcept -> std::same_as<result<void>>;
  { p.trim() } noexcept -> std::same_as<result<bytes>>;
  { p.trim_passed() } noexcept -> std::same_as<result<bytes>>;
};

struct mover_options {
  bool in_place = false;      ///< absent blocks are served from their host copies, where the pools can
  bytes stage_size = 16_MiB;  ///< pinned memory, twice so much, through which what is in the file comes back
};

template <MovablePool Device, Pool Host, StreamPolicy Streams, Copier Copies, BackingStore Below = swap_file>
class mover {
 public:
  using block = swappable<std::optional<typename Streams::fence>>;
  using moving_list = hooked_list<block, &block::in_motion>;

  /// `device` and `host` outlive it.
  mover(Device& device, Host& host, Streams streams, Copies copies, Below below = {},
        mover_options const& options = {}) noexcept
      : device_(&device),
        streams_(std::move(streams)),
        copies_(std::move(copies)),
        in_place_(options.in_place && can_serve_in_place<Device, Host>),
        tier_(host, std::move(below), options.stage_size, stages<Streams>::count, seen_) {}
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

  /// mapped or arriving → leaving, behind the work queued on `last` and on its own streams; with its contents, or
  /// without if `discarding`; `way`: what becomes of its mapping. Straight to absent where that is left: the memory
  /// serves others behind the copy. Errors: `out_of_host_memory` (the host has no memory for a copy), the driver's;
  /// then it stays.
  [[nodiscard]] result<void> leave(block& b, stream last, bool discarding, vacating way) noexcept {
    if (!room_for_leftovers()) return failure(errc::out_of_host_memory, "swap");
    bool const arriving = b.state == residency::arriving;
    if (arriving) {
      if (result<void> done = streams_.wait(copies_.stream_out(), *b.moved); !done) return done;
      end_arrival(b);
    }
    result<void> done = queue_departure(b, last, discarding, way);
    // Who comes next does not know that it is arriving still.
    if (!done && arriving) (void)streams_.synchronize_device();
    return done;
  }

  /// leaving → absent, if the copy is whole; whether it is. Where `waiting`, the host waits for it. Errors: a
  /// watcher's, the driver's; then it stays: mapped if a watcher minds or the copy's end can't be told, else leaving,
  /// to be tried again.
  [[nodiscard]] result<bool> finish_leaving(block& b, bool waiting) noexcept {
    result<bool> const whole = reached(b, waiting);
    if (!whole) {
      stay(b, false);
      return failed<bool>(whole.error());
    }
    if (!*whole) return false;
    if (result<void> heard = tell_going(b); !heard) {
      stay(b, b.read_only);
      return failed<bool>(heard.error());
    }
    if (result<void> done = device_->vacate(b.begin, b.way); !done) return failed<bool>(done.error());
    end_move(b, residency::absent);
    ++seen_.departures;
    seen_.absent += b.size;
    if (b.contents) rest(b);
    else let_copy_go(b);
    return true;
  }

  /// Whatever touches a block that is absent, or will be, is at fault from now on. Error: the driver's.
  [[nodiscard]] result<void> unmap(block& b) noexcept {
    b.way = vacating::unmap;
    if (b.state != residency::absent || b.in_place) return {};
    if (result<void> done = end_copy(b); !done) return done;
    return device_->vacate(b.begin, b.way);
  }

  /// The contents of one that is leaving or absent are wanted no more: its copy goes, when it is over; of an absent one
  /// the host waits for that. Error: the driver's; then it has them still.
  [[nodiscard]] result<void> discard_copy(block& b) noexcept {
    if (b.state == residency::leaving) {
      b.contents = false;  // until the copy is whole it may be called back
      return {};
    }
    if (result<void> done = hide(b, nullptr); !done) return done;
    if (result<void> done = end_copy(b); !done) return done;
    b.contents = false;
    let_copy_go(b);
    return {};
  }
  /// A mapped block's copy, kept since nobody writes the block, gives its host memory back; whether it had any.
  [[nodiscard]] bool spare_copy(block& b) noexcept {
    if (b.state != residency::mapped || b.copy == address{} || b.moved) return false;
    let_copy_go(b);
    return true;
  }

  /// leaving → mapped: it is wanted again before it has gone. Its copy is of no use, unless nobody writes the block.
  void call_back(block& b) noexcept {
    stay(b, b.read_only);
    ++seen_.called_back;
  }

  /// In which order what is absent may begin to arrive, by the memory that is mapped for it: the pool's `awaited`.
  [[nodiscard]] result<std::uint64_t> awaited(block const& b) noexcept {
    return device_->awaited(b.begin, copies_.stream_in());
  }

  /// Whether the host would wait for an absent block's own copy out to be over, before it may map other memory.
  [[nodiscard]] bool awaits_copy(block& b) noexcept {
    if (!b.moved) return false;
    result<std::uint64_t> const memory = awaited(b);
    if (!memory || *memory != std::numeric_limits<std::uint64_t>::max()) return false;
    result<bool> const over = streams_.reached(*b.moved);
    return over && !*over;
  }

  /// absent → arriving; `b.on` and its users are to wait for it by `follow_arrival`. Where it is served in place, the
  /// host waits for their work, and for that on `last` if there is one. Errors: the pool's, a watcher's, the file's,
  /// the driver's; then it is absent still, and its contents are where they were.
  [[nodiscard]] result<void> arrive(block& b, stream const* last, bool insist = true) noexcept {
    if (!room_for_leftovers()) return failure(errc::out_of_host_memory, "swap");
    if (result<void> able = can_fence(); !able) return able;
    if (result<void> done = hide(b, last); !done) return done;
    result<void> done = device_->refill(b.begin, b.on, copies_.stream_in(), false);
    if (!done && (insist || b.moved)) {
      // Other chunks may be mapped only once the copy out of those that are is over.
      done = end_copy(b);
      if (done) done = device_->refill(b.begin, b.on, copies_.stream_in(), insist);
    }
    if (!done) {
      rest(b);
      return done;
    }
    done = tell_come(b);
    if (done && b.moved) done = streams_.wait(copies_.stream_in(), *b.moved);
    if (done) done = bring_contents(b);
    if (done) done = fence_off(b, copies_.stream_in());
    if (!done) {
      ++seen_.failures;
      // Should one of these fail too, the next arrival finds the memory there.
      if (streams_.synchronize_device() && tell_going(b) && device_->vacate(b.begin, vacating::unmap)) rest(b);
      return done;
    }
    if (b.contents) seen_.copied_in += b.size;
    seen_.absent -= b.size;
    b.paused = false;
    ++b.generation;
    tier_.unkeep(b);
    begin_move(b, residency::arriving);
    return {};
  }

  /// Tells those who watch the block that other memory has come, if they think that it goes: where a departure was
  /// given up after they had been told. Error: theirs.
  [[nodiscard]] result<void> reassure(block& b) noexcept { return b.told ? tell_come(b) : result<void>{}; }

  /// What is queued on `on` from now on finds an arriving block's contents.
  [[nodiscard]] result<void> follow_arrival(block& b, stream on) noexcept { return streams_.wait(on, *b.moved); }

  /// arriving → mapped, if the copy is whole; whether it is. Errors: the driver's; then it is arriving still.
  [[nodiscard]] result<bool> finish_arriving(block& b, bool waiting) noexcept {
    result<bool> whole = reached(b, waiting);
    if (!whole) return failed<bool>(whole.error());
    if (!*whole) return false;
    end_fence(b);
    end_arrival(b);
    return true;
  }

  /// The block goes, in whatever state: to be used again after `after`'s work and that of its users, for which the host
  /// waits where it is served in place. Error: the pool's, then it is live as before.
  [[nodiscard]] result<void> drop(block& b, stream after) noexcept {
    result<void> done = hide(b, &after);
    if (b.state == residency::leaving) done = device_->record_stream(b.begin, copies_.stream_out());
    if (b.state == residency::arriving) done = streams_.wait(after, *b.moved);
    if (done) done = device_->deallocate(b.begin, after);
    if (!done) {
      if (b.state == residency::absent) rest(b);
      return done;
    }
    if (b.state == residency::absent) seen_.absent -= b.size;
    if (b.state == residency::leaving || b.state == residency::arriving) {
      moving_.erase(moving_list::s_iterator_to(b));
    }
    let_copy_go(b);
    return {};
  }

  /// Nobody writes the block from now on, or somebody may again: whether its copy is kept.
  void set_read_only(block& b, bool read_only) noexcept {
    if (b.state == residency::arriving && !b.read_only) b.outdated = true;
    b.read_only = read_only;
    if (!read_only && b.state == residency::mapped) let_copy_go(b);
  }

  /// Gives back what copies that nobody needs any more have used, once they are over. Error: the driver's.
  [[nodiscard]] result<void> sweep() noexcept {
    // Each way copies are over in their order.
    for (std::size_t i = 0, under_way = 0; i < leftovers_.size() && under_way < ways;) {
      result<bool> const over = streams_.reached(leftovers_[i].behind);
      if (!over) return failure(over.error());
      if (*over) end_leftover(i);
      else ++i, ++under_way;
    }
    return {};
  }

  /// Whether a copy that nobody needs any more has given its host memory back; the host waits for it.
  [[nodiscard]] bool end_one_leftover() noexcept {
    if (leftovers_.empty() || !streams_.synchronize(leftovers_.front().behind)) return false;
    end_leftover(0);
    return true;
  }
  /// What the copier has timed and not told yet; nothing where it times none.
  [[nodiscard]] carried take_carried() noexcept {
    if constexpr (TimingCopier<Copies>) return copies_.take_carried();
    return {};
  }
  /// Whether there is a file below pinned memory.
  [[nodiscard]] bool files() const noexcept { return tier_.files(); }

  /// The host waits for all copies; whatever was moving stays in its state.
  [[nodiscard]] result<void> synchronize() noexcept { return streams_.synchronize_device(); }

  /// Forgets a block at the end of everything: its copy goes back, but for one that can't be unmapped from its address.
  /// Precondition: synchronized.
  void forget(block& b) noexcept {
    if (unmap_copy(b)) let_copy_go(b);
  }
  /// The same for copies nobody needs.
  void forget_leftovers() noexcept {
    while (!leftovers_.empty()) end_leftover(leftovers_.size() - 1);
    stages_.forget(streams_);
  }

 private:
  using fence = typename Streams::fence;
  static constexpr std::size_t ways = 2;
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

  /// Whether copies in can be told to be over at all: not while device work is captured. One that was queued without
  /// would write to the block's memory when that has been given to others.
  [[nodiscard]] result<void> can_fence() noexcept {
    result<fence> f = streams_.record(copies_.stream_in());
    if (!f) return failure(f.error());
    streams_.release(*f);
    return {};
  }

  [[nodiscard]] result<bool> reached(block& b, bool waiting) noexcept {
    if (!waiting) return streams_.reached(*b.moved);
    result<void> const done = streams_.synchronize(*b.moved);
    return done ? result<bool>(true) : failure(done.error());
  }

  /// leaving → mapped. The copy out may run on, and the block be freed meanwhile: its addresses stay mapped for that
  /// long.
  void stay(block& b, bool keeps_copy) noexcept {
    if (!device_->record_stream(b.begin, copies_.stream_out())) (void)streams_.synchronize(*b.moved);
    b.state = residency::mapped;
    b.contents = true;
    b.paused = false;
    moving_.erase(moving_list::s_iterator_to(b));
    if (!keeps_copy) let_copy_go(b);
  }

  /// arriving → mapped; where its copy is under way still, whoever uses the block next is to wait for that.
  void end_arrival(block& b) noexcept {
    b.state = residency::mapped;
    moving_.erase(moving_list::s_iterator_to(b));
    b.contents = true;
    if (std::exchange(b.outdated, false) || !b.read_only) let_copy_go(b);
    ++seen_.arrivals;
  }

  [[nodiscard]] result<void> queue_departure(block& b, stream last, bool discarding, vacating way) noexcept {
    bool const copying = !discarding && !tier_.holds(b);
    address copy = b.copy;
    if (copying) {
      result<address> const to = tier_.take(b.size, in_place_);
      if (!to) return failure(to.error());
      copy = *to;
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
    b.way = way;
    b.contents = !discarding;
    if (copying) seen_.copied_out += b.size;
    if (hands_over(b) && device_->vacate_behind(b.begin, copies_.stream_out())) {
      b.state = residency::absent;
      ++seen_.departures;
      seen_.absent += b.size;
    } else {
      begin_move(b, residency::leaving);
    }
    return {};
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

  /// Before the memory goes, unless they know. Error: a watcher's; then none thinks so.
  [[nodiscard]] result<void> tell_going(block& b) noexcept {
    if (b.told || b.watched.empty()) return {};
    result<void> heard = b.watched.tell(b.begin, b.size, remapping::going);
    b.told = heard.has_value();
    return heard;
  }
  /// After memory has come. Error: a watcher's; then all think that it is gone.
  [[nodiscard]] result<void> tell_come(block& b) noexcept {
    result<void> heard = b.watched.tell(b.begin, b.size, remapping::come);
    b.told = !heard.has_value() && !b.watched.empty();
    return heard;
  }

  /// An absent block's copy is served in place, if that is wanted and can be; else it may go to the file.
  void rest(block& b) noexcept {
    if constexpr (can_serve_in_place<Device, Host>) {
      if (in_place_ && !b.in_place && b.contents && b.copy != address{}) {
        b.in_place = show_copy(*device_, tier_.host(), b.begin, b.copy).has_value();
        if (b.in_place) seen_.in_place += b.size;
      }
    }
    if (b.in_place) tier_.unkeep(b);
    else tier_.keep(b);
  }
  /// No longer, once the work that may use it there is done. Errors: the driver's; then it is served as before.
  [[nodiscard]] result<void> hide(block& b, stream const* last) noexcept {
    if (!b.in_place) return {};
    result<void> done = finish_work(b.on);
    if (done && last != nullptr) done = finish_work(*last);
    for (std::size_t i = 0; done && i < b.users.size(); ++i) done = finish_work(b.users[i]);
    return done ? unmap_copy(b) : done;
  }
  [[nodiscard]] result<void> unmap_copy(block& b) noexcept {
    if constexpr (can_serve_in_place<Device, Host>) {
      if (!b.in_place) return {};
      if (result<void> done = device_->hide(b.begin); !done) return done;
      b.in_place = false;
      seen_.in_place -= b.size;
    }
    return {};
  }
  /// The host waits for what is queued on a stream.
  [[nodiscard]] result<void> finish_work(stream on) noexcept {
    result<fence> f = streams_.record(on);
    if (!f) return failure(f.error());
    result<void> done = streams_.synchronize(*f);
    streams_.release(*f);
    return done;
  }

  /// Whether a departing block's memory may serve others before the host has seen the copy to be whole: nobody is to be
  /// told first, and the copy is not to be used before that.
  [[nodiscard]] bool hands_over(block const& b) const noexcept {
    return b.way == vacating::leave && b.watched.empty() && !in_place_ && !tier_.files();
  }
  /// The host waits for the copy of an absent block whose memory was handed over.
  [[nodiscard]] result<void> end_copy(block& b) noexcept {
    if (!b.moved) return {};
    result<void> done = streams_.synchronize(*b.moved);
    if (done) end_fence(b);
    return done;
  }

  /// Queues the copies that fill a block whose memory has just come.
  [[nodiscard]] result<void> bring_contents(block& b) noexcept {
    if (!b.contents) return {};
    if (!b.filed) return copies_.copy_in(b.begin, b.copy, b.size);
    for (bytes done = 0; done < b.size; done += tier_.stage_size()) {
      bytes const n = std::min(tier_.stage_size(), b.size - done);
      result<std::size_t> const i = stages_.next(streams_);
      if (!i) return failure(i.error());
      result<void> moved = tier_.read(b, done, tier_.stage(*i), n);
      if (moved) moved = copies_.copy_in(b.begin + done, tier_.stage(*i), n);
      if (moved) moved = stages_.fence_off(*i, streams_, copies_.stream_in());
      if (!moved) return moved;
    }
    return {};
  }

  /// The block has no copy from now on. One that may be under way keeps its host memory until it is over.
  void let_copy_go(block& b) noexcept {
    tier_.unkeep(b);
    tier_.forget_filed(b);
    if (b.moved) {
      leftovers_.push_back({std::move(*b.moved), b.copy, b.size});
      b.moved.reset();
      --fenced_;
    } else if (b.copy != address{}) {
      tier_.give_back(b.copy, b.size);
    }
    b.copy = {};
  }

  void end_leftover(std::size_t i) noexcept {
    leftover& l = leftovers_[i];
    streams_.release(l.behind);
    if (l.copy != address{}) tier_.give_back(l.copy, l.size);
    leftovers_.erase(leftovers_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  /// The copy may be under way, and no fence will tell when it is over. Where the device can't be waited for either,
  /// its host memory is never used again.
  void forsake(address copy, bytes n) noexcept {
    if (streams_.synchronize_device()) tier_.give_back(copy, n);
  }

  Device* device_;
  Streams streams_;
  Copies copies_;
  bool in_place_;
  swap_stats seen_;
  host_tier<Host, Below, block> tier_;
  stages<Streams> stages_;
  moving_list moving_;
  std::vector<leftover> leftovers_;  ///< in their order
  std::size_t fenced_ = 0;           ///< blocks that have a fence
};

}  // namespace gmlake::swap
