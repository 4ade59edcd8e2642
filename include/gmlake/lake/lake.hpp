#pragma once
/// The lake: home addresses, the chunks mapped there and the blocks that tile them. It knows neither streams nor
/// policies; whoever changes a block's state keeps the shelves in step.
///
/// Invariants: in each range the blocks tile [begin, begin + grown); every chunk lies in its range, is mapped at its
/// home, and points to the block that holds its first byte; every block but a hole lies on chunks end to end, and
/// points to the chunk that holds its own first byte.

#include <algorithm>
#include <cassert>
#include <utility>

#include "gmlake/backend/arrears.hpp"
#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/core/slab.hpp"
#include "gmlake/lake/block.hpp"
#include "gmlake/lake/chunk.hpp"
#include "gmlake/lake/range.hpp"

namespace gmlake {

template <PhysicalBackend Backend>
class lake {
 public:
  using range_list = hooked_list<range, &range::in_all>;
  using hole_list = hooked_list<block, &block::in_list>;

  explicit lake(arrears<Backend>& owed) noexcept : owed_(&owed) {}
  lake(lake const&) = delete;
  lake& operator=(lake const&) = delete;

  [[nodiscard]] range_list const& ranges() const noexcept { return ranges_; }
  [[nodiscard]] range_list& ranges() noexcept { return ranges_; }
  /// Addresses that chunks have left, to be filled again.
  [[nodiscard]] hole_list& holes() noexcept { return holes_; }
  [[nodiscard]] bytes reserved() const noexcept { return reserved_; }
  [[nodiscard]] std::size_t chunk_count() const noexcept { return chunks_.used(); }

  /// Makes sure of n block nodes, so that what follows can't fail for want of them.
  [[nodiscard]] bool reserve_blocks(std::size_t n) noexcept { return blocks_.reserve(n); }
  [[nodiscard]] block& acquire_block() noexcept { return blocks_.acquire(); }
  void release_block(block& b) noexcept { blocks_.release(b); }

  /// Reserves addresses for homes: a multiple of the granule. Errors: `out_of_addresses`, `out_of_host_memory`.
  [[nodiscard]] result<range*> open_range(bytes size, area kind) noexcept {
    if (!range_nodes_.reserve(1)) return failure(errc::out_of_host_memory, "reserve");
    result<address> const at = backend().reserve(size, 0);
    if (!at) return failure(at.error());
    range& r = range_nodes_.acquire();
    r.begin = *at;
    r.size = size;
    r.kind = kind;
    ranges_.push_back(r);
    return &r;
  }

  /// Gives back a range that holds no chunk, and so no block.
  void close_range(range& r) noexcept {
    assert(r.first_chunk == nullptr && r.first == nullptr);
    owed_->unreserve(r.begin, r.size);
    ranges_.erase(range_list::s_iterator_to(r));
    range_nodes_.release(r);
  }

  /// Creates a chunk of n bytes at the end of `r` and returns it as a taken block of its own.
  /// Precondition: it fits. Errors: the backend's; then nothing has changed.
  [[nodiscard]] result<block*> extend(range& r, bytes n) noexcept {
    assert(r.grown + n <= r.size);
    if (!chunks_.reserve(1) || !blocks_.reserve(1)) return failure(errc::out_of_host_memory, "create");
    result<handle> const memory = create_at(r.grown_end(), n);
    if (!memory) return failure(memory.error());
    block& b = blocks_.acquire();
    b.begin = r.grown_end();
    b.size = n;
    b.state = block_state::taken;
    b.in = &r;
    b.previous = r.last;
    (r.last != nullptr ? r.last->next : r.first) = &b;
    r.last = &b;
    r.grown += n;
    adopt(b, *memory, r.last_chunk);
    return &b;
  }

  /// Creates a chunk of n bytes at the beginning of a hole and returns it as a taken block of its own.
  /// Precondition: the hole is no smaller. Errors: the backend's; then nothing has changed.
  [[nodiscard]] result<block*> fill(block& hole, bytes n) noexcept {
    assert(hole.state == block_state::hole && n <= hole.size);
    if (!chunks_.reserve(1) || !blocks_.reserve(1)) return failure(errc::out_of_host_memory, "create");
    result<handle> const memory = create_at(hole.begin, n);
    if (!memory) return failure(memory.error());
    if (hole.size == n) holes_.erase(hole_list::s_iterator_to(hole));
    block& b = hole.size == n ? hole : split_front(hole, n);
    b.state = block_state::taken;
    chunk* before = nullptr;
    for (block* p = b.previous; p != nullptr && before == nullptr; p = p->previous) {
      if (p->first_chunk == nullptr) continue;
      before = p->first_chunk;
      while (before->next != nullptr && before->next->home < b.begin) before = before->next;
    }
    adopt(b, *memory, before);
    return &b;
  }

  /// Releases the chunk that `b` covers exactly and leaves a hole, joined with holes beside it; b is stale afterwards.
  /// Precondition: b is on no shelf and no stitch maps the chunk. On failure the chunk is as it was.
  [[nodiscard]] result<void> vacate(block& b) noexcept {
    chunk& c = *b.first_chunk;
    assert(c.first == &b && c.home == b.begin && c.size == b.size && c.stitches == 0);
    if (result<void> done = backend().unmap(c.home, c.size); !done) return done;
    owed_->release(c.memory);
    range& r = *b.in;
    (c.previous != nullptr ? c.previous->next : r.first_chunk) = c.next;
    (c.next != nullptr ? c.next->previous : r.last_chunk) = c.previous;
    reserved_ -= c.size;
    chunks_.release(c);
    b.first_chunk = nullptr;
    b.state = block_state::hole;
    if (b.next != nullptr && b.next->state == block_state::hole) {
      holes_.erase(hole_list::s_iterator_to(*b.next));
      absorb_next(b);
    }
    if (b.previous != nullptr && b.previous->state == block_state::hole) absorb_next(*b.previous);
    else holes_.push_back(b);
    trim_end(r);
    return {};
  }

  /// Sets a block's extent where no shelf has to hear of it.
  struct in_place {
    void operator()(block& b, address begin, bytes size) const noexcept {
      b.begin = begin;
      b.size = size;
    }
  };

  /// Cuts the first n bytes off `b` as a block of their own, in the same state; `b` keeps the rest, by `resize`, and so
  /// its place on a shelf. Precondition: 0 < n < b.size, a node reserved.
  template <class Resize = in_place>
  block& split_front(block& b, bytes n, Resize resize = {}) noexcept {
    assert(n > 0 && n < b.size);
    block& front = blocks_.acquire();
    front.begin = b.begin;
    front.size = n;
    front.in = b.in;
    front.stamp = b.stamp;
    front.on = b.on;
    front.state = b.state;
    front.first_chunk = b.first_chunk;
    front.previous = b.previous;
    front.next = &b;
    (b.previous != nullptr ? b.previous->next : b.in->first) = &front;
    b.previous = &front;
    resize(b, front.end(), b.size - n);
    if (b.first_chunk != nullptr) {
      claim(front, front.first_chunk, front.begin, front.end());
      while (b.first_chunk->end() <= b.begin) b.first_chunk = b.first_chunk->next;
    }
    return front;
  }

  /// `b` takes over its right neighbour, whose node is released; `b` grows by `resize`. The caller has taken the
  /// neighbour off its shelf, and sees to stamps.
  template <class Resize = in_place>
  void absorb_next(block& b, Resize resize = {}) noexcept {
    block& gone = *b.next;
    claim(b, gone.first_chunk, gone.begin, gone.end());
    b.next = gone.next;
    (gone.next != nullptr ? gone.next->previous : b.in->last) = &b;
    resize(b, b.begin, b.size + gone.size);
    blocks_.release(gone);
  }

  /// The same with the left neighbour.
  template <class Resize = in_place>
  void absorb_previous(block& b, Resize resize = {}) noexcept {
    block& gone = *b.previous;
    claim(b, gone.first_chunk, gone.begin, gone.end());
    b.first_chunk = gone.first_chunk;
    b.previous = gone.previous;
    (gone.previous != nullptr ? gone.previous->next : b.in->first) = &b;
    resize(b, gone.begin, b.size + gone.size);
    blocks_.release(gone);
  }

  /// The block that holds `a`, which lies on chunk `from`. Linear in the blocks on the chunk.
  [[nodiscard]] static block& block_at(chunk& from, address a) noexcept {
    block* b = from.first;
    while (b->end() <= a) b = b->next;
    return *b;
  }

  /// Releases every chunk and every range, whatever state they are in, and forgets all blocks. Failures are passed
  /// over: this is for destruction, perhaps after the driver has shut down.
  void release_all() noexcept {
    holes_.clear();
    while (!ranges_.empty()) {
      range& r = ranges_.front();
      for (chunk* c = r.first_chunk; c != nullptr;) {
        chunk& gone = *c;
        c = c->next;
        owed_->unmap(gone.home, gone.size);
        owed_->release(gone.memory);
        chunks_.release(gone);
      }
      for (block* b = r.first; b != nullptr;) {
        block& gone = *b;
        b = b->next;
        blocks_.release(gone);
      }
      owed_->unreserve(r.begin, r.size);
      ranges_.pop_front();
      range_nodes_.release(r);
    }
    reserved_ = 0;
  }

 private:
  [[nodiscard]] Backend& backend() noexcept { return owed_->backend(); }

  /// Physical memory, mapped and accessible at `at`, or nothing.
  [[nodiscard]] result<handle> create_at(address at, bytes n) noexcept {
    result<handle> memory = backend().create(n);
    if (!memory) return memory;
    result<void> done = backend().map(at, n, *memory);
    if (done) {
      done = backend().set_access(at, n, access::read_write);
      if (!done) owed_->unmap(at, n);
    }
    if (!done) {
      owed_->release(*memory);
      return failure(done.error());
    }
    return memory;
  }

  /// Enters a new chunk beneath `b`, after `before` in its range.
  void adopt(block& b, handle memory, chunk* before) noexcept {
    chunk& c = chunks_.acquire();
    range& r = *b.in;
    c.memory = memory;
    c.home = b.begin;
    c.size = b.size;
    c.first = &b;
    c.in = &r;
    c.previous = before;
    c.next = before != nullptr ? before->next : r.first_chunk;
    (before != nullptr ? before->next : r.first_chunk) = &c;
    (c.next != nullptr ? c.next->previous : r.last_chunk) = &c;
    b.first_chunk = &c;
    reserved_ += c.size;
  }

  /// Makes `owner` the first block of the chunks that begin in [low, high), given the chunk beneath `low`.
  static void claim(block& owner, chunk* from, address low, address high) noexcept {
    for (chunk* c = from; c != nullptr && c->home < high; c = c->next) {
      if (c->home >= low) c->first = &owner;
    }
  }

  /// A hole at the end of a range is given up, so that growth starts there again.
  void trim_end(range& r) noexcept {
    block& last = *r.last;
    if (last.state != block_state::hole) return;
    holes_.erase(hole_list::s_iterator_to(last));
    r.grown -= last.size;
    r.last = last.previous;
    (last.previous != nullptr ? last.previous->next : r.first) = nullptr;
    blocks_.release(last);
  }

  arrears<Backend>* owed_;
  range_list ranges_;
  hole_list holes_;
  slab<block> blocks_;
  slab<chunk> chunks_;
  slab<range> range_nodes_;
  bytes reserved_ = 0;
};

}  // namespace gmlake
