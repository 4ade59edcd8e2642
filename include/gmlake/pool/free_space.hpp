#pragma once
/// Free memory, and who may use it when: the lake's free blocks on shelves, one for each stream that freed them last
/// and each area. It finds, carves and takes back blocks; it never asks the device for memory.
///
/// Invariants: a free block that is not parked is on the shelf of its `on` and its range's area; two such neighbours on
/// one shelf are joined, but where their stream's frees are fenced apart and not passed; where several streams are
/// known, a block whose stamp is not known to be passed is in its stream's waiting list, in order of stamps.
///
/// But for one, while a single stream is known: programs often free what they were given last and ask for the same size
/// again, which the split policy would cut out of the same place. So such a block is `fresh`, neither joined nor
/// shelved, until anything else is asked of the free memory.

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/lake/lake.hpp"
#include "gmlake/split/split_policy.hpp"
#include "gmlake/stream/timeline.hpp"

namespace gmlake {

template <PhysicalBackend Backend, StreamPolicy Streams, SplitPolicy Split>
class free_space {
 public:
  free_space(arrears<Backend>& owed, Streams streams) noexcept : lake_(owed), time_(std::move(streams)) {}

  [[nodiscard]] lake<Backend>& home() noexcept { return lake_; }
  [[nodiscard]] lake<Backend> const& home() const noexcept { return lake_; }
  [[nodiscard]] timeline<Streams>& time() noexcept { return time_; }
  [[nodiscard]] timeline<Streams> const& time() const noexcept { return time_; }
  [[nodiscard]] bytes total() const noexcept { return free_; }

  /// The stream's place in the table; its shelves are there afterwards. Error: `out_of_host_memory`.
  [[nodiscard]] result<stream_index> enter(stream s) noexcept {
    if (stream_index const i = time_.if_last(s); i != nobody) [[likely]]
      return i;
    return look_up(s);
  }

  // ---- finding
  // -------------------------------------------------------------------------------------------------------

  /// The split policy's choice on the stream's own shelf, or among what is free for all if that is smaller.
  [[nodiscard]] block* find(stream_index user, area a, bytes n) noexcept {
    shelve_fresh();
    block* const own = index(user, a).find(n);
    if (!time_.shared()) [[likely]]
      return own;
    block* const common = index(nobody, a).find(n);
    if (own == nullptr || common == nullptr) return own != nullptr ? own : common;
    return common->size < own->size || (common->size == own->size && common->begin < own->begin) ? common : own;
  }

  /// The smallest choice on other streams' shelves: among what the user may have at once, or has to wait for. Few are
  /// looked at on each.
  [[nodiscard]] block* find_elsewhere(stream_index user, area a, bytes n, bool waiting) noexcept {
    shelve_fresh();
    block* best = nullptr;
    for (stream_index i = nobody + 1; i < shelves_.size(); ++i) {
      if (i == user) continue;
      block* b = index(i, a).find(n);
      for (int tries = 0; b != nullptr && tries < tries_a_shelf; ++tries, b = index(i, a).next_fit(*b, n)) {
        if (!waiting && !time_.ordered(user, b->on, b->stamp)) continue;
        if (best == nullptr || b->size < best->size) best = b;
        break;
      }
    }
    return best;
  }

  /// Calls `f(block)` for the large blocks of at least `least` bytes that the user may have at once, shelf by shelf, by
  /// falling size on each.
  template <std::invocable<block&> F>
  void each_usable(stream_index user, bytes least, F&& f) {
    shelve_fresh();
    for (auto const& s : shelves_) {
      Split const& split = s->areas[slot(area::large)];
      for (block* b = split.largest(); b != nullptr && b->size >= least; b = split.smaller(*b)) {
        if (time_.ordered(user, b->on, b->stamp)) f(*b);
      }
    }
  }

  /// The same for all large blocks that are free, whatever streams may still use them.
  template <std::invocable<block&> F>
  void each_large(bytes least, F&& f) {
    shelve_fresh();
    for (auto const& s : shelves_) {
      Split const& split = s->areas[slot(area::large)];
      for (block* b = split.largest(); b != nullptr && b->size >= least; b = split.smaller(*b)) f(*b);
    }
  }

  /// Calls `f(block)` for all blocks of at least `least` bytes, small ones too, that the user may have at once.
  template <std::invocable<block&> F>
  void each_free(stream_index user, bytes least, F&& f) {
    shelve_fresh();
    for (auto const& s : shelves_) {
      for (Split const& split : s->areas) {
        for (block* b = split.largest(); b != nullptr && b->size >= least; b = split.smaller(*b)) {
          if (time_.ordered(user, b->on, b->stamp)) f(*b);
        }
      }
    }
  }

  /// Whether the user may have all of [begin, begin + n) at once, which begins on chunk `c` and may go on beyond it.
  [[nodiscard]] bool usable(stream_index user, chunk& c, address begin, bytes n) noexcept {
    address const end = begin + n;
    for (block* b = &lake<Backend>::block_at(c, begin);; b = b->next) {
      if (b->state != block_state::free || b->parked || !time_.ordered(user, b->on, b->stamp)) return false;
      if (b->end() >= end) return true;
    }
  }

  /// Whether all of [begin, begin + n), which begins on chunk `c`, is free, whatever streams may still use it.
  [[nodiscard]] static bool is_free(chunk& c, address begin, bytes n) noexcept {
    address const end = begin + n;
    for (block* b = &lake<Backend>::block_at(c, begin); b != nullptr; b = b->next) {
      if (b->state != block_state::free || b->parked) return false;
      if (b->end() >= end) return true;
    }
    return false;
  }

  /// The last stamp that `user` has to wait for before it may have [begin, begin + n), which is free; 0: for none.
  [[nodiscard]] tick awaited(stream_index user, chunk& c, address begin, bytes n) noexcept {
    address const end = begin + n;
    tick last = 0;
    for (block* b = &lake<Backend>::block_at(c, begin);; b = b->next) {
      if (!time_.ordered(user, b->on, b->stamp)) last = std::max(last, b->stamp);
      if (b->end() >= end) return last;
    }
  }

  /// What `user` does next comes after all that may still use [begin, begin + n), which is free. Errors: the stream
  /// policy's; it may wait for some of that then.
  [[nodiscard]] result<void> wait_for(stream_index user, chunk& c, address begin, bytes n) noexcept {
    address const end = begin + n;
    for (block* b = &lake<Backend>::block_at(c, begin);; b = b->next) {
      if (result<void> done = time_.wait(user, b->on, b->stamp); !done || b->end() >= end) return done;
    }
  }

  /// How many blocks [begin, begin + n) touches, from chunk `c` on.
  [[nodiscard]] static std::size_t count(chunk& c, address begin, bytes n) noexcept {
    address const end = begin + n;
    std::size_t blocks = 1;
    for (block* b = &lake<Backend>::block_at(c, begin); b->end() < end; b = b->next) ++blocks;
    return blocks;
  }

  // ---- taking
  // --------------------------------------------------------------------------------------------------------

  /// The fresh block as a live one, if it is what the split policy would choose and cut; null where not.
  [[nodiscard]] block* take_fresh(stream_index user, area a, bytes n) noexcept {
    block* const b = fresh_;
    if (b == nullptr || b->size != n || b->on != user || b->in->kind != a) return nullptr;
    fresh_ = nullptr;
    latest_ = b;
    free_ -= n;
    b->state = block_state::live;
    return b;
  }

  /// Takes [begin, begin + n) out of the free block `b`, as a block in the given state; the rest stays on its shelf.
  /// Precondition: two block nodes reserved.
  [[nodiscard]] block& carve(block& b, address begin, bytes n, block_state as) noexcept {
    free_ -= n;
    if (n == b.size) {
      unshelve(b);
      b.state = as;
      latest_ = &b;
      return b;
    }
    Split& split = index_of(b);
    auto const resize = [&split](block& kept, address at, bytes size) noexcept { split.resize(kept, at, size); };
    if (begin != b.begin) {
      block& before = lake_.split_front(b, begin - b.begin, resize);
      split.insert(before);
      if (b.waiting) wait_list(b).insert(wait_list(b).iterator_to(b), before), before.waiting = true;
    }
    if (n == b.size) unshelve(b);
    block& taken = n == b.size ? b : lake_.split_front(b, n, resize);
    taken.state = as;
    latest_ = &taken;
    return taken;
  }

  /// Takes [begin, begin + n), which lies on chunk `c` and its neighbours and may be several free blocks, and adds the
  /// blocks to the chain that `tail` ends; returns its new end. Precondition: nodes reserved, two and one a block.
  [[nodiscard]] block** take(chunk& c, address begin, bytes n, block** tail) noexcept {
    shelve_fresh();
    address const end = begin + n;
    for (block* b = &lake<Backend>::block_at(c, begin); begin < end;) {
      address const upto = b->end() < end ? b->end() : end;
      block& taken = carve(*b, begin, upto - begin, block_state::taken);
      *tail = &taken;
      tail = &taken.next_taken;
      begin = upto;
      b = taken.next;
    }
    latest_ = nullptr;  // the caller may make one of them
    *tail = nullptr;
    return tail;
  }

  // ---- giving back
  // -----------------------------------------------------------------------------------------------------

  /// A block in no other use becomes free, for `on` at once and for others once they have passed its stamp.
  void give_back(block& b, stream_index on, tick stamp) noexcept {
    shelve_fresh();
    b.state = block_state::free;
    b.requested = 0;
    b.on = on;
    b.stamp = stamp;
    b.parked = false;
    free_ += b.size;
    if (&b == latest_ && !time_.shared() && b.in->kind != area::own) fresh_ = &b;
    else join(b);
  }

  /// Joins and shelves the fresh block, as all that looks for free memory by its neighbours or shelves does first.
  void shelve_fresh() noexcept {
    if (fresh_ != nullptr) join(*std::exchange(fresh_, nullptr));
  }

  /// Keeps a freed block, or a stitch's, off the shelves until all its recorded uses are done with.
  void park(block& b, stream_index on, tick stamp) noexcept {
    b.state = block_state::free;
    b.requested = 0;
    b.on = on;
    b.stamp = stamp;
    b.parked = true;
    parked_.push_back(b);
  }

  /// Calls `finish(block, stream, stamp)` for the parked blocks whose uses are all known to be done.
  template <class Finish>
  void unpark(Finish&& finish) noexcept {
    for (auto i = parked_.begin(); i != parked_.end();) {
      block& b = *i++;
      bool done = true;
      for (use const* u = b.recorded; u != nullptr; u = u->next) done = done && time_.passed(u->on, u->stamp);
      if (done) leave_parking(b, b.on, b.stamp, finish);
    }
  }

  /// Makes `user` wait on the device for all other streams' frees, and their recorded uses, so far, and puts all that
  /// they held on its shelves, joined. Returns whether there was any. Streams that can't be waited for now keep theirs.
  /// On failure some may have come over already.
  template <class Finish>
  [[nodiscard]] result<bool> gather(stream_index user, Finish&& finish) noexcept {
    shelve_fresh();
    bool any = false;
    for (auto i = parked_.begin(); i != parked_.end();) {
      block& b = *i++;
      result<void> done = time_.wait(user, b.on, b.stamp);
      for (use const* u = b.recorded; done && u != nullptr; u = u->next) done = time_.wait(user, u->on, u->stamp);
      if (!done) {
        if (done.error().code == errc::not_supported) continue;
        return failure(done.error());
      }
      leave_parking(b, user, time_.stamp(user), finish);
      any = true;
    }
    for (stream_index i = nobody + 1; i < shelves_.size(); ++i) {
      if (i == user) continue;
      for (Split& split : shelves_[i]->areas) {
        if (split.largest() == nullptr) continue;
        if (result<void> done = time_.wait(user, i, time_.latest(i)); !done) {
          if (done.error().code == errc::not_supported) break;
          return failure(done.error());
        }
        tick const stamp = time_.stamp(user);
        while (block* const b = split.largest()) {
          unshelve(*b);
          b->on = user;
          b->stamp = stamp;
          join(*b);
        }
        any = true;
      }
    }
    return any;
  }

  /// Joins blocks whose stamps have come to be passed with free neighbours on other shelves.
  void settle() noexcept {
    if (!time_.shared()) return;
    for (stream_index i = 0; i < shelves_.size(); ++i) {
      waiting_list& waiting = shelves_[i]->waiting;
      while (!waiting.empty() && time_.passed(i, waiting.front().stamp)) {
        block& b = waiting.front();
        unshelve(b);
        join(b);
      }
    }
  }

  /// Takes [begin, begin + n), all of it free, off the shelves as one block. It begins on chunk `c`.
  /// Precondition: two block nodes reserved and one a block that it touches.
  [[nodiscard]] block& isolate(chunk& c, address begin, bytes n) noexcept {
    block* chain = nullptr;
    (void)take(c, begin, n, &chain);
    while (chain->next_taken != nullptr) {
      chain->next_taken = chain->next_taken->next_taken;
      chain->stamp = std::max(chain->stamp, chain->next->stamp);
      lake_.absorb_next(*chain);
    }
    return *chain;
  }

  /// [at, at + n) as one block off the shelves, if it lies in the lake and `is_free(chunk, at, n)`; null where not.
  /// Linear in the chunks. Error: `out_of_host_memory`.
  template <class IsFree>
  [[nodiscard]] result<block*> isolate_at(address at, bytes n, IsFree&& is_free) noexcept {
    for (range& r : lake_.ranges()) {
      if (at < r.begin || at >= r.grown_end()) continue;
      chunk* c = r.first_chunk;
      while (c != nullptr && c->end() <= at) c = c->next;
      if (c == nullptr || c->home > at || n > r.grown_end() - at || !is_free(*c, at, n)) return nullptr;
      if (!lake_.reserve_blocks(2 + count(*c, at, n))) return failure(errc::out_of_host_memory, "allocate_at");
      return &isolate(*c, at, n);
    }
    return nullptr;
  }

  /// The largest free block, for reports.
  [[nodiscard]] bytes largest() const noexcept {
    bytes most = 0;
    if (fresh_ != nullptr) {
      most = fresh_->size;
      for (block const* n : {fresh_->previous, fresh_->next}) most += joins(*fresh_, n, fresh_->on) ? n->size : 0;
    }
    for (auto const& s : shelves_) {
      for (Split const& split : s->areas) {
        if (block const* const b = split.largest(); b != nullptr && b->size > most) most = b->size;
      }
    }
    return most;
  }

  /// Null where there is none.
  [[nodiscard]] block const* fresh() const noexcept { return fresh_; }

  /// Walks the shelves: null, or the invariant that is broken. `free`: the bytes that ought to be on them, but for the
  /// fresh block's.
  [[nodiscard]] char const* find_fault(bytes free) const noexcept {
    if (fresh_ != nullptr) free -= fresh_->size;
    for (stream_index i = 0; i < shelves_.size(); ++i) {
      for (std::size_t kind = 0; kind < 2; ++kind) {
        Split const& split = shelves_[i]->areas[kind];
        for (block* b = split.largest(); b != nullptr; b = split.smaller(*b)) {
          if (b->state != block_state::free || b->parked || b->on != i) return "a shelf holds its stream's free blocks";
          if (slot(b->in->kind) != kind) return "a shelf holds its area's blocks";
          if (time_.shared() && !b->waiting && !time_.passed(i, b->stamp)) return "younger blocks wait";
          if (b->size > free) return "shelves hold what is free";
          free -= b->size;
        }
      }
      tick before = 0;
      for (block const& b : shelves_[i]->waiting) {
        if (!b.waiting || b.on != i || b.stamp < before) return "blocks wait in order of their stamps";
        before = b.stamp;
      }
    }
    return free == 0 ? nullptr : "shelves hold all that is free";
  }

 private:
  using waiting_list = hooked_list<block, &block::by_age>;
  struct shelf {
    std::array<Split, 2> areas;
    waiting_list waiting;
  };
  /// Blocks looked at on another stream's shelf before it is given up, where the first ones can't be used yet.
  static constexpr int tries_a_shelf = 16;

  [[nodiscard]] static std::size_t slot(area a) noexcept { return a == area::small ? 1 : 0; }
  [[nodiscard]] Split& index(stream_index i, area a) noexcept { return shelves_[i]->areas[slot(a)]; }
  [[nodiscard]] Split& index_of(block& b) noexcept { return index(b.on, b.in->kind); }
  [[nodiscard]] waiting_list& wait_list(block& b) noexcept { return shelves_[b.on]->waiting; }

  [[nodiscard]] result<stream_index> look_up(stream s) noexcept {
    result<stream_index> i = time_.index_of(s);
    if (!i || *i < shelves_.size()) [[likely]]
      return i;
    try {
      while (shelves_.size() <= *i) shelves_.push_back(std::make_unique<shelf>());
    } catch (std::bad_alloc const&) {
      time_.forget_last();
      return failure(errc::out_of_host_memory, "stream table");
    }
    if (*i == nobody + 2) begin_waiting();
    return i;
  }

  void unshelve(block& b) noexcept {
    index_of(b).erase(b);
    stop_waiting(b);
  }
  void stop_waiting(block& b) noexcept {
    if (!b.waiting) return;
    wait_list(b).erase(waiting_list::s_iterator_to(b));
    b.waiting = false;
  }
  void start_waiting(block& b) noexcept {
    if (!time_.shared() || time_.passed(b.on, b.stamp)) return;
    waiting_list& waiting = wait_list(b);
    auto at = waiting.end();
    while (at != waiting.begin() && std::prev(at)->stamp > b.stamp) --at;
    waiting.insert(at, b);
    b.waiting = true;
  }

  /// Whether free neighbours can become one: on one shelf, or where one of them is free for all. What `user` gives back
  /// free for all, as growth does, does not come under another stream's stamp; nothing comes under that of a stream
  /// whose frees are fenced apart, since others wait for each of them by itself.
  [[nodiscard]] bool joins(block const& b, block const* n, stream_index user) const noexcept {
    if (n == nullptr || n->state != block_state::free || n->parked) return false;
    if (n->on == b.on) return n->stamp == b.stamp || !time_.apart(b.on);
    bool const mine = time_.passed(b.on, b.stamp), its = time_.passed(n->on, n->stamp);
    return (its && (mine || !time_.apart(b.on))) || (mine && n->on == user && !time_.apart(user));
  }

  /// Puts a free block on its shelf, joined with its neighbours where that is allowed; the larger node survives. Memory
  /// that is free for all comes under the stamp of what it joins. There may be several on a side: those whose stamps
  /// are passed, but not settled yet, join one another only here.
  void join(block& b) noexcept {
    latest_ = nullptr;
    stream_index const user = b.on;
    if (time_.shared() && time_.passed(b.on, b.stamp)) b.on = nobody;
    block* whole = &b;
    bool shelved = false;
    for (bool left = true;;) {
      block* const n = left ? whole->previous : whole->next;
      if (!joins(*whole, n, user)) {
        if (!left) break;
        left = false;
        continue;
      }
      block const& younger = time_.passed(n->on, n->stamp) ? *whole : *n;
      tick const stamp = n->on == whole->on ? std::max(n->stamp, whole->stamp) : younger.stamp;
      stream_index const on = younger.on;
      block& kept = n->size > whole->size ? *n : *whole;
      block& gone = &kept == n ? *whole : *n;
      bool const kept_shelved = &kept == n || shelved;
      if (&gone == n || shelved) unshelve(gone);
      if (kept_shelved && kept.on != on) unshelve(kept);
      shelved = kept_shelved && kept.on == on;
      if (shelved) stop_waiting(kept);
      Split& split = index(on, kept.in->kind);
      auto const reshelve = [&split](block& k, address at, bytes size) noexcept { split.resize(k, at, size); };
      if (kept.next == &gone) shelved ? lake_.absorb_next(kept, reshelve) : lake_.absorb_next(kept);
      else shelved ? lake_.absorb_previous(kept, reshelve) : lake_.absorb_previous(kept);
      kept.on = on;
      kept.stamp = stamp;
      whole = &kept;
    }
    if (!shelved) index_of(*whole).insert(*whole);
    if (!whole->waiting) start_waiting(*whole);
  }

  /// A second stream has come: what the first has freed may have to be kept from it.
  void begin_waiting() noexcept {
    shelve_fresh();
    for (range& r : lake_.ranges()) {
      for (block* b = r.first; b != nullptr; b = b->next) {
        if (b->state != block_state::free || b->parked || b->waiting || time_.passed(b->on, b->stamp)) continue;
        wait_list(*b).push_back(*b);
        b->waiting = true;
      }
    }
    for (auto const& s : shelves_) {
      s->waiting.sort([](block const& a, block const& b) { return a.stamp < b.stamp; });
    }
  }

  template <class Finish>
  void leave_parking(block& b, stream_index on, tick stamp, Finish&& finish) noexcept {
    parked_.erase(waiting_list::s_iterator_to(b));
    b.parked = false;
    finish(b, on, stamp);
  }

  lake<Backend> lake_;
  timeline<Streams> time_;
  std::vector<std::unique_ptr<shelf>> shelves_;
  waiting_list parked_;
  block* fresh_ = nullptr;
  block const* latest_ = nullptr;  ///< carved with no change of the free memory since
  bytes free_ = 0;                 ///< on shelves, or fresh
};

}  // namespace gmlake
