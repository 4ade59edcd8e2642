#pragma once
/// pytorch_pool: a model of PyTorch's native caching allocator, to compare with.
///
/// Each segment is one backend handle at addresses of its own, and stays cached until memory runs out. A request takes
/// the best fit among its stream's free blocks, splits it where enough would remain, or brings a new segment:
///
///   block        pool    new segment             split where there remain
///   <= 1 MiB     small   2 MiB                   512 bytes or more
///   < 10 MiB     large   20 MiB                  more than 1 MiB
///   else         large   rounded up to 2 MiB     more than 1 MiB
///
/// A stream is never served from another's segment. Of equally good blocks PyTorch takes the lowest, and `cudaMalloc`
/// places each segment below those before: recorded peaks are met exactly so, and missed by up to 1.4% with segments
/// that rise. A backend has an order of its own, so here the newest segment counts as the lowest. Source: PyTorch 2.11,
/// c10/cuda/CUDACachingAllocator.cpp, `DeviceCachingAllocator`, default settings. Not modelled: graphs' private pools,
/// splitting limits, events (the caller deallocates when the block may be reused).

#include <cstdint>
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
#include "gmlake/pool/presets/pytorch_blocks.hpp"
#include "gmlake/pool/presets/pytorch_rules.hpp"

namespace gmlake {

struct pytorch_options {
  /// Physical memory that the pool may hold, in bytes.
  bytes limit = std::numeric_limits<bytes>::max();
};

/// A pool's present bytes.
struct pytorch_usage {
  bytes requested = 0;
  bytes live = 0;
  bytes reserved = 0;
  bytes mapped = 0;
};

template <PhysicalBackend Backend>
class pytorch_pool {
 public:
  explicit pytorch_pool(Backend backend, pytorch_options const& o = {}) noexcept
      : backend_(std::move(backend)), options_(o) {}
  pytorch_pool(pytorch_pool const&) = delete;
  pytorch_pool& operator=(pytorch_pool const&) = delete;

  /// Gives everything back to the backend, memory in live blocks too.
  ~pytorch_pool() {
    for (segment_list* list : {&segments_, &leaving_}) {
      for (segment& s : *list) dismantle(s);
      list->clear_and_dispose(std::default_delete<segment>{});
    }
  }

  /// A block of n bytes, aligned to 512, for work on `s`. Logarithmic in the free blocks, unless a segment is created.
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
    s.reserved = reserved_;
    s.mapped = mapped_;
    s.failures = failures_;
    s.driver = backend_.usage();
    return s;
  }

  /// The gauges of `stats()` as they are now, without the rest.
  [[nodiscard]] pytorch_usage usage() const noexcept {
    std::lock_guard const lock(mutex_);
    return {blocks_.requested(), blocks_.live_bytes(), reserved_.now, mapped_.now};
  }

  /// Releases every segment in which nothing is live (`emptyCache`).
  void empty_cache() noexcept {
    std::lock_guard const lock(mutex_);
    release_cached();
  }

  /// What is held beyond a new limit stays until it is released.
  void set_limit(bytes limit) noexcept {
    std::lock_guard const lock(mutex_);
    options_.limit = limit;
  }

  /// For what the pool has no words for, such as reading a block; not to be called while another thread uses the pool.
  [[nodiscard]] Backend& backend() noexcept { return backend_.wrapped(); }

 private:
  /// One `cudaMalloc`. Its fields say what of it the backend holds, so that a release that failed can be resumed.
  struct segment {
    address at{};
    bytes size = 0;
    handle memory{};
    bool mapped = false;
    list_hook in_list;
  };
  using segment_list = hooked_list<segment, &segment::in_list>;
  using store = pytorch_blocks<segment>;
  using block = typename store::block;

  /// Takes the smallest free block that serves the request, of equals the first, out of its set (`get_free_block`).
  [[nodiscard]] block* best_fit(bytes size, stream s) noexcept {
    auto& free = blocks_.free(pytorch_rules::is_small(size));
    auto const it = free.lower_bound(typename store::fit{s, size}, typename store::by_fit{});
    if (it == free.end() || it->owner != s) return nullptr;
    block* b = &*it;
    free.erase(it);
    return b;
  }

  [[nodiscard]] address place(block* b, bytes size, bytes requested) noexcept {
    bytes const rest = b->size - size;
    bool const split = b->small ? rest >= pytorch_rules::block_rounding : rest > pytorch_rules::small_limit;
    return blocks_.hand_out(b, size, requested, split);
  }

  /// A new segment as one block in no set; where memory runs short, after all cached segments are released (`malloc`).
  [[nodiscard]] result<block*> grow_and_retry(bytes size, stream s) noexcept {
    auto b = grow(size, s);
    if (b || !runs_short(b.error().code)) return b;
    release_cached();
    return grow(size, s);
  }

  [[nodiscard]] result<block*> grow(bytes size, stream s) noexcept {
    bytes const wanted = pytorch_rules::segment_size(size);
    bytes const granule = backend_.granularity();
    if (!fits_aligned(wanted, granule)) return failure(errc::invalid_argument, "allocate");
    bytes const n = align_up(wanted, granule);
    if (n > options_.limit || reserved_.now > options_.limit - n) return failure(errc::out_of_memory, "allocate");
    if (auto spare = blocks_.ensure_spare(2); !spare) return failure(spare.error());
    std::unique_ptr<segment> seg(new (std::nothrow) segment);
    if (!seg) return failure(errc::out_of_host_memory, "allocate");
    seg->size = n;
    if (auto built = build(*seg); !built) {
      if (!dismantle(*seg)) leaving_.push_back(*seg.release());
      return failure(built.error());
    }
    segments_.push_back(*seg);
    block* b = blocks_.make(seg->at, n, s, pytorch_rules::is_small(size));
    b->rank = --last_rank_;
    b->segment = seg.release();
    return b;
  }

  /// Where a step fails, `dismantle` undoes those before it.
  [[nodiscard]] result<void> build(segment& seg) noexcept {
    auto at = backend_.reserve(seg.size, 0);
    if (!at) return failure(at.error());
    seg.at = *at;
    auto memory = backend_.create(seg.size);
    if (!memory) return failure(memory.error());
    seg.memory = *memory;
    reserved_.add(seg.size);
    if (auto mapped = backend_.map(seg.at, seg.size, seg.memory); !mapped) return mapped;
    seg.mapped = true;
    mapped_.add(seg.size);
    return backend_.set_access(seg.at, seg.size, access::read_write);
  }

  /// Gives back what the backend still holds of a segment; false where a call fails, to be called again.
  bool dismantle(segment& seg) noexcept {
    if (seg.mapped) {
      if (!backend_.unmap(seg.at, seg.size)) return false;
      seg.mapped = false;
      mapped_.sub(seg.size);
    }
    if (seg.memory != handle{}) {
      if (!backend_.release(seg.memory)) return false;
      seg.memory = handle{};
      reserved_.sub(seg.size);
    }
    if (seg.at != address{}) {
      if (!backend_.unreserve(seg.at, seg.size)) return false;
      seg.at = address{};
    }
    return true;
  }

  /// Releases every segment that is one free block (`release_cached_blocks`), and what could not be released before.
  void release_cached() noexcept {
    for (auto it = leaving_.begin(); it != leaving_.end();) {
      segment& seg = *it++;
      if (dismantle(seg)) unlink(leaving_, seg);
    }
    for (bool const small : {false, true}) {
      auto& free = blocks_.free(small);
      for (auto it = free.begin(); it != free.end();) {
        block& b = *it++;
        if (b.whole_segment()) release(b);
      }
    }
  }

  /// Releases a free block's whole segment. It stays as it was where the backend won't unmap it.
  void release(block& b) noexcept {
    segment& seg = *b.segment;
    bool const gone = dismantle(seg);
    if (seg.mapped) return;
    blocks_.erase(&b);
    blocks_.forget(&b);
    if (gone) return unlink(segments_, seg);
    segments_.erase(segments_.iterator_to(seg));
    leaving_.push_back(seg);
  }

  static void unlink(segment_list& list, segment& seg) noexcept {
    list.erase_and_dispose(list.iterator_to(seg), std::default_delete<segment>{});
  }

  [[nodiscard]] unexpected report(error e, bytes requested) noexcept {
    if (runs_short(e.code)) {
      ++failures_;
      e.account = blocks_.account(requested, reserved_.now, options_.limit);
    }
    return failure(e);
  }

  mutable std::mutex mutex_;  ///< over everything below
  metered<Backend> backend_;
  pytorch_options options_;
  store blocks_;
  segment_list segments_;
  segment_list leaving_;  ///< without a block: building or releasing them failed half-way
  std::uint64_t last_rank_ = std::numeric_limits<std::uint64_t>::max();  ///< of the newest segment; they fall
  gauge reserved_;
  gauge mapped_;
  std::uint64_t failures_ = 0;
};
static_assert(Pool<pytorch_pool<simulated>>);

}  // namespace gmlake
