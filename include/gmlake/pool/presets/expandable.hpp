#pragma once
/// expandable_pool: a model of PyTorch's allocator with expandable_segments:True, to compare with.
///
/// A stream has one segment for small blocks and one for large: a range of addresses as long as the device's memory
/// and an eighth, backed from its low end by handles of 2 MiB (small) and 20 MiB (large) as it grows. It is cut into
/// blocks in address order:
///
///   | live | free | live |  free  |      unmapped        |
///   0                             ^ the growing end      9/8 device
///
/// A request takes the best fit among its stream's free blocks; a block next to unmapped addresses counts as large as
/// it could grow. Otherwise memory is mapped at the lowest unmapped addresses where the request fits, together with
/// the free block before them. When memory runs out, free blocks are unmapped, whole handles at a time. Source: PyTorch
/// 2.11, c10/cuda/CUDACachingAllocator.cpp, Note [Expandable Segments]. Not modelled: as in `pytorch.hpp`.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "gmlake/backend/metered.hpp"
#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/backend/simulated.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/core/intrusive.hpp"
#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/pool/presets/expandable_segment.hpp"
#include "gmlake/pool/presets/pytorch_blocks.hpp"
#include "gmlake/pool/presets/pytorch_rules.hpp"

namespace gmlake {

struct expandable_options {
  /// Physical memory to hold, in bytes, as PyTorch counts: a request may grow the pool if what it holds and a whole
  /// native segment for the request fit. As handles are larger, it may end up to 18 MiB above.
  bytes limit = std::numeric_limits<bytes>::max();
  /// The device's memory, in bytes: 9/8 of it are the addresses of each segment; less than 2^60.
  bytes device_bytes = 140_GiB;
};

template <PhysicalBackend Backend>
class expandable_pool {
 public:
  explicit expandable_pool(Backend backend, expandable_options const& o = {}) noexcept
      : backend_(std::move(backend)), options_(o) {}
  expandable_pool(expandable_pool const&) = delete;
  expandable_pool& operator=(expandable_pool const&) = delete;

  /// Gives everything back to the backend, memory in live blocks too.
  ~expandable_pool() {
    for (segment_list* list : {&segments_, &leaving_}) {
      for (segment& seg : *list) seg.dismantle(backend_);
      list->clear_and_dispose(std::default_delete<segment>{});
    }
  }

  /// A block of n bytes, aligned to 512, for work on `s`. Logarithmic in the free blocks, unless memory is mapped.
  /// Errors: `invalid_argument` (n can't be rounded), `out_of_memory`, `out_of_addresses`, `out_of_host_memory`, and
  /// what the backend reports.
  [[nodiscard]] result<address> allocate(bytes n, stream s) noexcept {
    if (n > pytorch_rules::largest_request) return failure(errc::invalid_argument, "allocate");
    bytes const size = pytorch_rules::block_size(n);
    std::lock_guard const lock(mutex_);
    if (auto spare = blocks_.ensure_spare(1); !spare) return failure(spare.error());
    if (block* b = best_fit(size, s)) return place(b, size, n);
    auto b = grow_and_retry(size, s);
    if (!b) return report(b.error(), n);
    return place(*b, size, n);
  }

  /// Takes a block back, for its own stream only. Never calls the backend. Errors: `unknown_pointer`, `double_free`.
  [[nodiscard]] result<void> deallocate(address a) noexcept {
    std::lock_guard const lock(mutex_);
    return blocks_.take_back(a);
  }

  [[nodiscard]] pool_stats stats() const noexcept {
    std::lock_guard const lock(mutex_);
    pool_stats s = blocks_.stats();
    s.reserved = usage_.reserved;
    s.mapped = usage_.mapped;
    s.failures = failures_;
    s.driver = backend_.usage();
    return s;
  }

  /// For what the pool has no words for, such as reading a block; not to be called while another thread uses the pool.
  [[nodiscard]] Backend& backend() noexcept { return backend_.wrapped(); }

 private:
  using segment = expandable_segment;
  using segment_list = hooked_list<segment, &segment::in_list>;
  using store = pytorch_blocks<segment>;
  using block = typename store::block;

  /// The bytes that `b` could have by growing into the unmapped addresses after it.
  [[nodiscard]] static bytes expandable_size(block const& b) noexcept {
    return b.size + (b.next && b.next->state == pytorch_block_state::unmapped ? b.next->size : 0);
  }

  /// Takes the best fit out of its set. In order of size, a block that can grow yields to the next one as long as that
  /// is smaller when both have grown as far as they can (`get_free_block`).
  [[nodiscard]] block* best_fit(bytes size, stream s) noexcept {
    auto& free = blocks_.free(pytorch_rules::is_small(size));
    auto it = free.lower_bound(typename store::fit{s, size}, typename store::by_fit{});
    if (it == free.end() || it->owner != s) return nullptr;
    for (auto next = std::next(it); next != free.end() && next->owner == s; it = next++)
      if (expandable_size(*next) >= expandable_size(*it)) break;
    block* b = &*it;
    free.erase(it);
    return b;
  }

  /// Splits whatever remains, unlike the native rules for large blocks (`should_split`).
  [[nodiscard]] address place(block* b, bytes size, bytes requested) noexcept {
    return blocks_.hand_out(b, size, requested, b->size - size >= pytorch_rules::block_rounding);
  }

  /// A free block in no set of at least `size` bytes; where memory runs short, after all free handles are released.
  [[nodiscard]] result<block*> grow_and_retry(bytes size, stream s) noexcept {
    auto b = grow(size, s);
    if (b || !runs_short(b.error().code)) return b;
    release_cached();
    return grow(size, s);
  }

  /// Maps memory until a run of free and unmapped blocks is one free block that holds `size` bytes
  /// (`try_allocate_expandable_block`). What a failure leaves mapped is free.
  [[nodiscard]] result<block*> grow(bytes size, stream s) noexcept {
    bytes const counted = pytorch_rules::segment_size(size);
    bytes const held = usage_.reserved.now;
    if (counted > options_.limit || held > options_.limit - counted) return failure(errc::out_of_memory, "allocate");
    auto found = find_room(size, s);
    if (!found) return found;
    block* b = *found;
    if (b->state == pytorch_block_state::unmapped)
      if (auto mapped = map(b, std::min(b->size, size)); !mapped) return failure(mapped.error());
    while (b->size < size) {
      block* next = b->next;
      if (auto mapped = map(next, std::min(next->size, size - b->size)); !mapped) return failure(mapped.error());
      b = next;
    }
    blocks_.erase(b);
    return b;
  }

  /// The lowest run of free and unmapped blocks, at most the first of them free before an unmapped one, that together
  /// hold `size` bytes; a new segment where there is none (`find_expandable_block`).
  [[nodiscard]] result<block*> find_room(bytes size, stream s) noexcept {
    auto& unmapped = blocks_.unmapped(pytorch_rules::is_small(size));
    for (auto it = unmapped.lower_bound(s, typename store::by_address{}); it != unmapped.end() && it->owner == s;
         ++it) {
      block* b = &*it;
      if (b->prev && b->prev->state == pytorch_block_state::free) b = b->prev;
      bytes room = 0;
      for (block const* c = b; c && c->state != pytorch_block_state::live && room < size; c = c->next) room += c->size;
      if (room >= size) return b;
    }
    return add_segment(size, s);
  }

  /// A new segment as one unmapped block. Memory can't be mapped for a block larger than that.
  [[nodiscard]] result<block*> add_segment(bytes size, stream s) noexcept {
    bool const small = pytorch_rules::is_small(size);
    bytes const slot =
        align_up(small ? pytorch_rules::small_segment : pytorch_rules::medium_segment, backend_.granularity());
    bytes const n = (options_.device_bytes + options_.device_bytes / 8 + slot - 1) / slot * slot;
    if (size > n) return failure(errc::out_of_memory, "allocate");
    if (auto spare = blocks_.ensure_spare(1); !spare) return failure(spare.error());
    std::unique_ptr<segment> seg(new (std::nothrow) segment(slot, usage_));
    if (!seg) return failure(errc::out_of_host_memory, "allocate");
    if (auto reserved = seg->reserve(backend_, n); !reserved) return failure(reserved.error());
    segments_.push_back(*seg);
    block* b = blocks_.make(seg->at(), n, s, small);
    b->segment = seg.release();
    b->state = pytorch_block_state::unmapped;
    blocks_.insert(b);
    return b;
  }

  /// Backs the first n bytes of an unmapped block, rounded up to whole slots, and coalesces them as a free block
  /// (`map_block`).
  [[nodiscard]] result<void> map(block* b, bytes n) noexcept {
    if (auto spare = blocks_.ensure_spare(2); !spare) return spare;
    segment& seg = *b->segment;
    std::size_t const first = (b->at - seg.at()) / seg.slot();
    std::size_t const count = (n + seg.slot() - 1) / seg.slot();
    if (auto mapped = seg.map(backend_, first, first + count); !mapped) return mapped;
    blocks_.erase(b);
    if (count * seg.slot() < b->size) blocks_.insert(blocks_.split(b, count * seg.slot()));
    b->state = pytorch_block_state::free;
    blocks_.coalesce(b);
    blocks_.insert(b);
    return {};
  }

  /// Releases every handle in which no block is live (`release_cached_blocks`), segments that are empty then, and what
  /// could not be released before.
  void release_cached() noexcept {
    for (auto it = leaving_.begin(); it != leaving_.end();) {
      segment& seg = *it++;
      if (seg.dismantle(backend_)) unlink(leaving_, seg);
    }
    for (bool const small : {false, true}) {
      auto& free = blocks_.free(small);
      for (auto it = free.begin(); it != free.end();) {
        block& b = *it++;
        unmap(&b);
      }
    }
  }

  /// Unmaps the whole slots within a free block; what lies before and after them stays free (`unmap_block`).
  void unmap(block* b) noexcept {
    segment& seg = *b->segment;
    bytes const begin = b->at - seg.at();
    std::size_t const first = (begin + seg.slot() - 1) / seg.slot();
    std::size_t const last = (begin + b->size) / seg.slot();
    if (first >= last || !blocks_.ensure_spare(2)) return;
    bytes const n = seg.unmap(backend_, first, last) * seg.slot();
    if (n == 0) return;
    blocks_.erase(b);
    if (bytes const before = first * seg.slot() - begin; before > 0) {
      block* rest = blocks_.split(b, before);
      blocks_.insert(b);
      b = rest;
    }
    if (b->size > n) blocks_.insert(blocks_.split(b, n));
    b->state = pytorch_block_state::unmapped;
    blocks_.coalesce(b);
    if (b->whole_segment()) return remove(b);
    blocks_.insert(b);
  }

  /// Gives back the segment of an unmapped block in no set that is all of it.
  void remove(block* b) noexcept {
    segment& seg = *b->segment;
    blocks_.forget(b);
    if (seg.dismantle(backend_)) return unlink(segments_, seg);
    segments_.erase(segments_.iterator_to(seg));
    leaving_.push_back(seg);
  }

  static void unlink(segment_list& list, segment& seg) noexcept {
    list.erase_and_dispose(list.iterator_to(seg), std::default_delete<segment>{});
  }

  [[nodiscard]] unexpected report(error e, bytes requested) noexcept {
    if (runs_short(e.code)) {
      ++failures_;
      e.account = blocks_.account(requested, usage_.reserved.now, options_.limit);
    }
    return failure(e);
  }

  mutable std::mutex mutex_;  ///< over everything below
  metered<Backend> backend_;
  expandable_options const options_;
  expandable_usage usage_;
  store blocks_;
  segment_list segments_;
  segment_list leaving_;  ///< without a block: the backend failed to take them back whole
  std::uint64_t failures_ = 0;
};
static_assert(Pool<expandable_pool<simulated>>);

}  // namespace gmlake
