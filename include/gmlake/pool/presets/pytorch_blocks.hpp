#pragma once
/// The blocks of a PyTorch allocator, free and live, with its way to split and coalesce them; both models use it.
///
/// A segment is a range of addresses cut into blocks that are linked in address order. A block is live (found by its
/// address), free (ordered by stream, size, segment and address) or unmapped (ordered by stream and address, without
/// memory behind it; expandable segments only). Neighbours that are both free or both unmapped are always coalesced.
/// Segments are their pool's to make and release; nothing here calls a backend or locks.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "gmlake/core/address_map.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/core/error.hpp"
#include "gmlake/core/intrusive.hpp"
#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/observe/stats.hpp"
#include "gmlake/pool/presets/pytorch_rules.hpp"

namespace gmlake {

enum class pytorch_block_state : std::uint8_t { free, live, unmapped };

/// Whether an error means that there is too little memory, so that releasing some may help.
[[nodiscard]] constexpr bool runs_short(errc c) noexcept {
  return c == errc::out_of_memory || c == errc::out_of_addresses;
}

/// A piece of a `Segment`. Blocks of at most `pytorch_rules::small_limit` bytes come from segments of their own.
template <class Segment>
struct pytorch_block {
  address at{};
  bytes size = 0;
  bytes requested = 0;     ///< while live
  stream owner{};          ///< only this stream is ever served from it
  std::uint64_t rank = 0;  ///< the segment's place among all: of blocks equal in size, the least rank goes first
  Segment* segment = nullptr;
  pytorch_block* prev = nullptr;  ///< the neighbours in the segment
  pytorch_block* next = nullptr;
  pytorch_block_state state = pytorch_block_state::free;
  bool small = false;
  set_hook in_order;  ///< free or unmapped: in the set for it

  [[nodiscard]] address end() const noexcept { return at + size; }
  [[nodiscard]] bool whole_segment() const noexcept { return prev == nullptr && next == nullptr; }
};

template <class Segment>
class pytorch_blocks {
 public:
  using block = pytorch_block<Segment>;

  /// A search key: the least block of a stream that holds `size` bytes.
  struct fit {
    stream owner;
    bytes size;
  };
  struct by_fit {
    bool operator()(block const& a, block const& b) const noexcept {
      if (a.owner != b.owner) return a.owner < b.owner;
      if (a.size != b.size) return a.size < b.size;
      return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
    }
    bool operator()(block const& a, fit const& k) const noexcept {
      return a.owner != k.owner ? a.owner < k.owner : a.size < k.size;
    }
  };
  struct by_address {
    bool operator()(block const& a, block const& b) const noexcept {
      return a.owner != b.owner ? a.owner < b.owner : a.at < b.at;
    }
    bool operator()(block const& a, stream s) const noexcept { return a.owner < s; }
  };
  using free_set = hooked_set<block, &block::in_order, by_fit>;
  using unmapped_set = hooked_set<block, &block::in_order, by_address>;

  pytorch_blocks() noexcept = default;
  pytorch_blocks(pytorch_blocks const&) = delete;
  pytorch_blocks& operator=(pytorch_blocks const&) = delete;

  [[nodiscard]] free_set& free(bool small) noexcept { return free_[small]; }
  [[nodiscard]] unmapped_set& unmapped(bool small) noexcept { return unmapped_[small]; }

  /// Makes the next n calls of `make` and `split`, and one of `hand_out`, unable to fail. Errors: `out_of_host_memory`.
  [[nodiscard]] result<void> ensure_spare(std::size_t n) noexcept {
    if (!live_.reserve_one()) return failure(errc::out_of_host_memory, "allocate");
    return spare_count_ >= n ? result<void>{} : grow_nodes();
  }

  /// A free block in no set, alone in its segment. Precondition: `ensure_spare`.
  [[nodiscard]] block* make(address at, bytes size, stream owner, bool small) noexcept {
    block* b = spare_;
    spare_ = b->next;
    --spare_count_;
    b->at = at;
    b->size = size;
    b->owner = owner;
    b->rank = 0;
    b->segment = nullptr;
    b->prev = b->next = nullptr;
    b->state = pytorch_block_state::free;
    b->small = small;
    return b;
  }

  /// Forgets a block that is in no set.
  void forget(block* b) noexcept {
    b->next = spare_;
    spare_ = b;
    ++spare_count_;
  }

  /// Cuts `b` after `size` bytes; the new block, in the same state and in no set, is what follows. `b` is in no set
  /// either. Precondition: `ensure_spare`.
  [[nodiscard]] block* split(block* b, bytes size) noexcept {
    block* rest = make(b->at + size, b->size - size, b->owner, b->small);
    rest->rank = b->rank;
    rest->segment = b->segment;
    rest->state = b->state;
    rest->prev = b;
    rest->next = b->next;
    if (rest->next) rest->next->prev = rest;
    b->next = rest;
    b->size = size;
    return rest;
  }

  /// Coalesces `b`, which is in no set, with its neighbours of the same state (`try_merge_blocks`).
  void coalesce(block* b) noexcept {
    if (block* p = b->prev; p && p->state == b->state) {
      erase(p);
      b->at = p->at;
      b->size += p->size;
      b->prev = p->prev;
      if (b->prev) b->prev->next = b;
      forget(p);
    }
    if (block* n = b->next; n && n->state == b->state) {
      erase(n);
      b->size += n->size;
      b->next = n->next;
      if (b->next) b->next->prev = b;
      forget(n);
    }
  }

  /// Enters a free or unmapped block into the set for it, and takes it out.
  void insert(block* b) noexcept {
    if (b->state == pytorch_block_state::free) free_[b->small].insert(*b);
    else unmapped_[b->small].insert(*b);
  }
  void erase(block* b) noexcept {
    if (b->state == pytorch_block_state::free) free_[b->small].erase(free_set::s_iterator_to(*b));
    else unmapped_[b->small].erase(unmapped_set::s_iterator_to(*b));
  }

  /// Makes a free block, which is in no set, live; what lies beyond `size` is split off first if `split_rest`.
  /// Precondition: `ensure_spare(1)`.
  address hand_out(block* b, bytes size, bytes requested, bool split_rest) noexcept {
    if (split_rest) insert(split(b, size));
    b->state = pytorch_block_state::live;
    b->requested = requested;
    live_.insert(b->at, *b);
    requested_.add(requested);
    live_bytes_.add(b->size);
    ++allocations_;
    return b->at;
  }

  /// Makes the live block at `a` free again and coalesces it. Errors: `double_free`, `unknown_pointer`.
  [[nodiscard]] result<void> take_back(address a) noexcept {
    block* const b = live_.extract(a);
    if (b == nullptr) return failure(lies_free(a) ? errc::double_free : errc::unknown_pointer, "deallocate");
    requested_.sub(b->requested);
    live_bytes_.sub(b->size);
    ++deallocations_;
    b->state = pytorch_block_state::free;
    coalesce(b);
    insert(b);
    return {};
  }

  /// Of live blocks, as asked for and as rounded.
  [[nodiscard]] bytes requested() const noexcept { return requested_.now; }
  [[nodiscard]] bytes live_bytes() const noexcept { return live_bytes_.now; }

  /// The part of the statistics that is known here.
  [[nodiscard]] pool_stats stats() const noexcept {
    pool_stats s;
    s.requested = requested_;
    s.live = live_bytes_;
    s.allocations = allocations_;
    s.deallocations = deallocations_;
    return s;
  }

  /// What a failed request reports; linear in the free blocks.
  [[nodiscard]] memory_account account(bytes requested, bytes reserved, bytes limit) const noexcept {
    memory_account m{.requested = requested,
                     .reserved = reserved,
                     .live = live_bytes_.now,
                     .free = reserved - live_bytes_.now,
                     .largest_contiguous = 0,
                     .limit = limit};
    for (free_set const& set : free_)
      for (block const& b : set) m.largest_contiguous = std::max(m.largest_contiguous, b.size);
    return m;
  }

 private:
  static constexpr std::size_t nodes_a_slab = 256;

  [[nodiscard]] result<void> grow_nodes() noexcept {
    try {
      slabs_.push_back(std::make_unique<block[]>(nodes_a_slab));
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "allocate");
    }
    for (std::size_t i = 0; i < nodes_a_slab; ++i) forget(&slabs_.back()[i]);
    return {};
  }

  /// Whether `a` is the start of a free block, or was one's before it coalesced: it may lie anywhere in a free block.
  /// Linear in the free blocks; only errors come here.
  [[nodiscard]] bool lies_free(address a) const noexcept {
    if (!is_aligned(a, pytorch_rules::block_rounding)) return false;
    for (free_set const& set : free_)
      for (block const& b : set)
        if (b.at <= a && a < b.end()) return true;
    return false;
  }

  std::vector<std::unique_ptr<block[]>> slabs_;
  block* spare_ = nullptr;
  std::size_t spare_count_ = 0;
  std::array<free_set, 2> free_;          ///< the large pool's, the small pool's
  std::array<unmapped_set, 2> unmapped_;  ///< the same
  address_map<block> live_;
  gauge requested_;
  gauge live_bytes_;
  std::uint64_t allocations_ = 0;
  std::uint64_t deallocations_ = 0;
};

}  // namespace gmlake
