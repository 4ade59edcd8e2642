#pragma once
/// All stitches of a pool: mapped, looked up while idle, unmapped. It makes and ends mappings; which memory a stitch
/// takes from the lake is its caller's business.

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "gmlake/backend/arrears.hpp"
#include "gmlake/core/slab.hpp"
#include "gmlake/evict/eviction_policy.hpp"
#include "gmlake/lake/extent.hpp"
#include "gmlake/lake/lent_memory.hpp"
#include "gmlake/pool/wanted_chunks.hpp"

namespace gmlake {

template <PhysicalBackend Backend, EvictionPolicy Evict>
class stitch_cache {
 public:
  using stitch_list = hooked_list<stitch, &stitch::in_all>;

  stitch_cache(arrears<Backend>& owed, Evict evict) noexcept : owed_(&owed), evict_(std::move(evict)) {}
  stitch_cache(stitch_cache const&) = delete;
  stitch_cache& operator=(stitch_cache const&) = delete;

  [[nodiscard]] stitch_list& all() noexcept { return all_; }
  [[nodiscard]] stitch_list const& all() const noexcept { return all_; }
  [[nodiscard]] idle_stitches const& idle() const noexcept { return idle_; }
  [[nodiscard]] std::size_t live() const noexcept { return live_; }

  /// The smallest idle stitch of n bytes or more that `serves` accepts; so many are tried at most.
  template <std::predicate<stitch&> Serves>
  [[nodiscard]] stitch* find(bytes n, Serves&& serves, int most_tries = 64) noexcept {
    int tries = 0;
    for (auto i = by_size_.lower_bound(n, by_capacity{}); i != by_size_.end() && tries < most_tries; ++i, ++tries) {
      if (serves(*i)) return &*i;
    }
    return nullptr;
  }

  /// An idle stitch that has served the foreseen block of that number and that `serves` accepts; null where there is
  /// none.
  template <std::predicate<stitch&> Serves>
  [[nodiscard]] stitch* find_kept(std::uint64_t as, Serves&& serves) noexcept {
    auto i = by_number_.lower_bound(as, in_turn{});
    for (; i != by_number_.end() && i->foreseen.as == as; ++i) {
      if (serves(*i)) return &*i;
    }
    return nullptr;
  }

  /// Maps the extents' chunks side by side, at an address aligned to `alignment`, with `room` bytes of addresses or as
  /// many as they need. The stitch is in use by nobody yet and not idle either: `serve` or `unmap` must follow. Errors:
  /// the backend's, `out_of_host_memory`; then nothing is left.
  [[nodiscard]] result<stitch*> map(std::span<extent const> extents, bytes alignment, bytes room = 0) noexcept {
    if (!nodes_.reserve(1)) return failure(errc::out_of_host_memory, "stitch");
    room = std::max(room, size_of(extents));
    result<address> const begin = owed_->backend().reserve(room, alignment);
    if (!begin) return failure(begin.error());
    stitch& s = nodes_.acquire();
    s.begin = *begin;
    s.room = room;
    s.base = extents.front().offset;
    if (result<void> done = fill(s, extents); !done) {
      owed_->unreserve(*begin, room);
      nodes_.release(s);
      return failure(done.error());
    }
    all_.push_back(s);
    return &s;
  }

  /// Maps the extents' chunks into a stitch where nothing is mapped. Precondition: they fit its room. Errors as for
  /// `map`; then nothing is mapped.
  [[nodiscard]] result<void> fill(stitch& s, std::span<extent const> extents) noexcept {
    std::unique_ptr<mapped_chunk[]> chunks(new (std::nothrow) mapped_chunk[extents.size()]);
    if (chunks == nullptr) return failure(errc::out_of_host_memory, "stitch");
    bytes mapped = 0;
    result<void> done;
    for (std::size_t i = 0; i < extents.size() && done; ++i) {
      chunks[i].of = extents[i].of;
      done = owed_->backend().map(s.begin + mapped, chunks[i]->size, chunks[i]->memory);
      if (done) mapped += chunks[i]->size;
    }
    if (done) done = owed_->backend().set_access(s.begin, mapped, access::read_write);
    if (!done) {
      if (mapped > 0) owed_->unmap(s.begin, mapped);
      return done;
    }
    s.size = mapped;
    s.count = extents.size();
    s.chunks = std::move(chunks);
    s.vacated = false;
    for (mapped_chunk& c : s.mapped()) c.list(s);
    return {};
  }

  /// Unmaps the chunks of a stitch that serves a block; its addresses stay. Precondition: no device work uses them any
  /// more. On failure it stays as it is.
  [[nodiscard]] result<void> vacate(stitch& s) noexcept {
    if (s.count > 0) {
      if (result<void> done = owed_->backend().unmap(s.begin, s.size); !done) return done;
      let_chunks_go(s);
    }
    s.vacated = true;
    return {};
  }

  /// Maps `by` in the place of the chunks number `at`, in ascending order, each as large as the one before. The stitch
  /// serves nobody, or is vacated. Precondition: no device work uses its addresses any more. Errors: the backend's;
  /// then some are replaced, or nothing is mapped any more (`count` tells).
  [[nodiscard]] result<void> replace(stitch& s, std::span<std::size_t const> at, std::span<chunk* const> by) noexcept {
    for (std::size_t k = 0; k < at.size();) {
      std::size_t end = k + 1;
      while (end < at.size() && at[end] == at[end - 1] + 1) ++end;
      if (result<void> done = replace_run(s, at[k], by.subspan(k, end - k)); !done) return done;
      k = end;
    }
    return {};
  }

  /// Maps memory that is not the lake's side by side into a vacated stitch. Errors: `out_of_addresses` where it has no
  /// room for all; the backend's; then nothing is mapped.
  [[nodiscard]] result<void> show(stitch& s, std::span<lent_memory const> pieces) noexcept {
    bytes total = 0;
    for (lent_memory const& piece : pieces) total += piece.size;
    if (total > s.room) return failure(errc::out_of_addresses, "show");
    bytes mapped = 0;
    result<void> done;
    for (std::size_t i = 0; i < pieces.size() && done; ++i) {
      done = owed_->backend().map(s.begin + mapped, pieces[i].size, pieces[i].memory);
      if (done) mapped += pieces[i].size;
    }
    if (done) done = owed_->backend().set_access(s.begin, mapped, access::read_write);
    if (!done) {
      if (mapped > 0) owed_->unmap(s.begin, mapped);
      return done;
    }
    s.lent = mapped;
    return {};
  }
  /// Unmaps what was shown. Precondition: no device work uses it any more. On failure it stays as it is.
  [[nodiscard]] result<void> hide(stitch& s) noexcept {
    if (result<void> done = owed_->backend().unmap(s.begin, s.lent); !done) return done;
    s.lent = 0;
    return {};
  }

  /// The block of a vacated stitch was freed: its addresses go back.
  void discard(stitch& s) noexcept {
    --live_;
    unmap(s);
  }

  /// The stitch serves `b` from now on.
  void serve(stitch& s, block& b) noexcept {
    s.serves = &b;
    b.view = &s;
    note_wants(s);
    ++live_;
  }

  /// An idle stitch leaves the cache, to serve a block.
  void wake(stitch& s) noexcept {
    by_size_.erase(size_index::s_iterator_to(s));
    if (s.foreseen.as != 0) by_number_.erase(number_index::s_iterator_to(s));
    evict_.erase(s);
    --idle_.count;
    idle_.mappings -= s.count;
    idle_.addresses -= s.size;
  }

  /// Its block was freed, with the given stamp: the mapping stays, for another of its size.
  void rest(stitch& s, tick stamp) noexcept {
    s.serves = nullptr;
    s.vacated = false;
    note_wants(s);
    s.last_use = stamp;
    --live_;
    put_back(s);
  }
  /// One that was woken serves nobody after all.
  void put_back(stitch& s) noexcept {
    by_size_.insert(s);
    if (s.foreseen.as != 0) by_number_.insert(s);
    evict_.insert(s);
    ++idle_.count;
    idle_.mappings += s.count;
    idle_.addresses += s.size;
  }

  /// The one to be unmapped because there are too many; null where there are not.
  [[nodiscard]] stitch* victim() const noexcept { return evict_.victim(idle_); }
  /// The one to be unmapped if any must be; null where none is idle.
  [[nodiscard]] stitch* next_victim() const noexcept { return evict_.next(); }

  /// Unmaps an idle stitch. Precondition: no device work uses its addresses any more. On failure it stays as it is.
  [[nodiscard]] result<void> evict(stitch& s) noexcept {
    if (result<void> done = owed_->backend().unmap(s.begin, s.size); !done) return done;
    wake(s);
    drop(s);
    return {};
  }

  /// Unmaps a stitch that serves nobody and is not idle.
  void unmap(stitch& s) noexcept {
    if (bytes const mapped = mapped_at(s); mapped > 0) owed_->unmap(s.begin, mapped);
    drop(s);
  }

  /// Bytes mapped from a stitch's beginning on, of the lake's chunks or lent.
  [[nodiscard]] static bytes mapped_at(stitch const& s) noexcept { return s.lent > 0 ? s.lent : s.size; }

  /// Unmaps everything, whatever state it is in; failures are passed over.
  void release_all() noexcept {
    by_size_.clear();
    by_number_.clear();
    while (!all_.empty()) {
      stitch& s = all_.front();
      if (s.serves == nullptr) evict_.erase(s);
      unmap(s);
    }
    idle_ = {};
    live_ = 0;
  }

 private:
  struct by_capacity {
    [[nodiscard]] bool operator()(stitch const& a, stitch const& b) const noexcept {
      return a.capacity() != b.capacity() ? a.capacity() < b.capacity() : a.begin < b.begin;
    }
    [[nodiscard]] bool operator()(stitch const& a, bytes n) const noexcept { return a.capacity() < n; }
    [[nodiscard]] bool operator()(bytes n, stitch const& b) const noexcept { return n < b.capacity(); }
  };
  struct in_turn {
    [[nodiscard]] bool operator()(stitch const& a, stitch const& b) const noexcept {
      return a.foreseen.as != b.foreseen.as ? a.foreseen.as < b.foreseen.as : a.begin < b.begin;
    }
    [[nodiscard]] bool operator()(stitch const& a, std::uint64_t as) const noexcept { return a.foreseen.as < as; }
    [[nodiscard]] bool operator()(std::uint64_t as, stitch const& b) const noexcept { return as < b.foreseen.as; }
  };
  using size_index = hooked_set<stitch, &stitch::by_size, by_capacity>;
  using number_index = hooked_set<stitch, &stitch::by_number, in_turn>;

  [[nodiscard]] static bytes size_of(std::span<extent const> extents) noexcept {
    bytes size = 0;
    for (extent const& e : extents) size += e.of->size;
    return size;
  }

  /// The same for chunks side by side, from number `first` on.
  [[nodiscard]] result<void> replace_run(stitch& s, std::size_t first, std::span<chunk* const> by) noexcept {
    Backend& backend = owed_->backend();
    address begin = s.begin;
    for (std::size_t i = 0; i < first; ++i) begin = begin + s.chunks[i]->size;
    bytes run = 0;
    for (std::size_t i = 0; i < by.size(); ++i) run += s.chunks[first + i]->size;
    if (result<void> done = backend.unmap(begin, run); !done) return done;
    bytes mapped = 0;
    result<void> done;
    for (std::size_t i = 0; i < by.size() && done; ++i) {
      done = backend.map(begin + mapped, by[i]->size, by[i]->memory);
      if (!done) break;
      mapped += by[i]->size;
      s.chunks[first + i].unlist();
      s.chunks[first + i].of = by[i];
      s.chunks[first + i].list(s);
    }
    if (done) done = backend.set_access(begin, run, access::read_write);
    if (!done) lose(s, begin + mapped, begin + run);
    return done;
  }

  /// Unmaps what is mapped: all but [gap, gap_end).
  void lose(stitch& s, address gap, address gap_end) noexcept {
    address at = s.begin;
    for (std::size_t i = 0; i < s.count; ++i) {
      if (at < gap || at >= gap_end) owed_->unmap(at, s.chunks[i]->size);
      at = at + s.chunks[i]->size;
    }
    let_chunks_go(s);
  }

  void let_chunks_go(stitch& s) noexcept {
    for (mapped_chunk& c : s.mapped()) c.unlist();
    s.chunks.reset();
    s.count = 0;
    s.size = 0;
  }

  void drop(stitch& s) noexcept {
    let_chunks_go(s);
    owed_->unreserve(s.begin, s.room);
    all_.erase(stitch_list::s_iterator_to(s));
    nodes_.release(s);
  }

  arrears<Backend>* owed_;
  Evict evict_;
  slab<stitch> nodes_;
  stitch_list all_;
  size_index by_size_;
  number_index by_number_;
  idle_stitches idle_;
  std::size_t live_ = 0;
};

}  // namespace gmlake
