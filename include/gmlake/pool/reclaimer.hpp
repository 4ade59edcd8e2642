#pragma once
/// Gives memory and addresses back to the device: idle stitches over budget or in the way, and chunks that are wholly
/// free. Only what no device work can still be using, as far as the host knows, ever leaves; of a pinned pool, nothing.

#include <algorithm>
#include <optional>

#include "gmlake/pool/pool_parts.hpp"

namespace gmlake {

template <PoolConfig Config>
class reclaimer {
 public:
  using parts = pool_parts<Config>;

  explicit reclaimer(parts& p) noexcept : p_(&p) {}

  /// Unmaps idle stitches while the eviction policy names one. Those whose last use is not known to be over are left
  /// for another time.
  [[nodiscard]] result<void> keep_budget() noexcept {
    if (p_->options.pinned) return {};
    while (stitch* const s = p_->stitches.victim()) {
      result<bool> const over = p_->space.time().learn_all_passed(s->last_use);
      if (!over) return failure(over.error());
      if (!*over) return {};
      if (result<void> done = evict(*s); !done) return done;
    }
    return {};
  }

  /// Unmaps every idle stitch whose last use is over, and what is mapped of those vacated. Returns whether there was
  /// any.
  [[nodiscard]] result<bool> evict_idle() noexcept {
    bool any = false;
    if (p_->options.pinned) return any;
    for (auto i = p_->stitches.all().begin(); i != p_->stitches.all().end();) {
      stitch& s = *i++;
      if (!evictable(s)) continue;
      if (result<void> done = evict(s); !done) return failure(done.error());
      any = true;
    }
    return any;
  }

  /// Releases wholly free chunks of at least `wanted` bytes together, as far as there are any, and the idle stitches
  /// that map them; `only` those of one area. Returns the bytes released.
  [[nodiscard]] result<bytes> release(bytes wanted, std::optional<area> only = {}) noexcept {
    bytes marked = 0;
    if (p_->options.pinned) return bytes{0};
    for (range& r : p_->space.home().ranges()) {
      if (only && r.kind != *only) continue;
      for (chunk* c = r.first_chunk; c != nullptr && marked < wanted; c = c->next) {
        if (!releasable(*c)) continue;
        marked += c->size;
        if (c->stitches == 0) continue;
        if (result<void> done = evict_on(*c); !done) return failure(done.error());
      }
    }
    bytes released = 0;
    for (auto i = p_->space.home().ranges().begin(); i != p_->space.home().ranges().end();) {
      range& r = *i++;
      if (only && r.kind != *only) continue;
      for (chunk* c = r.first_chunk; c != nullptr && released < wanted;) {
        chunk& here = *c;
        c = c->next;
        if (here.stitches > 0 || !releasable(here)) continue;
        bytes const size = here.size;
        if (result<void> done = release(here); !done) return failure(done.error());
        released += size;
      }
      if (r.first == nullptr) p_->space.home().close_range(r);
    }
    return released;
  }

 private:
  /// Whether all of the chunk is free, and all work on it known to be over.
  [[nodiscard]] bool releasable(chunk const& c) const noexcept {
    for (block const* b = c.first;; b = b->next) {
      if (b->state != block_state::free || b->parked || !p_->space.time().passed(b->on, b->stamp)) return false;
      if (b->end() >= c.end()) return true;
    }
  }

  /// Whether nobody has the memory mapped there by this stitch, and no device work uses its addresses.
  [[nodiscard]] bool evictable(stitch const& s) const noexcept {
    if (s.vacated) return s.count > 0 && p_->space.time().passed(s.behind, s.behind_stamp);
    return s.serves == nullptr && p_->space.time().all_passed(s.last_use);
  }

  [[nodiscard]] result<void> evict(stitch& s) noexcept {
    stitch_event const gone{s.begin, s.size, s.count};
    if (result<void> done = s.vacated ? p_->stitches.vacate(s) : p_->stitches.evict(s); !done) return done;
    p_->observer.evicted(gone);
    return {};
  }

  [[nodiscard]] result<void> evict_on(chunk const& c) noexcept {
    for (auto i = p_->stitches.all().begin(); i != p_->stitches.all().end() && c.stitches > 0;) {
      stitch& s = *i++;
      if (!evictable(s)) continue;
      if (std::ranges::find(s.mapped(), &c, &mapped_chunk::of) == s.mapped().end()) continue;
      if (result<void> done = evict(s); !done) return done;
    }
    return {};
  }

  [[nodiscard]] result<void> release(chunk& c) noexcept {
    if (!p_->space.home().reserve_blocks(2 + p_->space.count(c, c.home, c.size))) {
      return failure(errc::out_of_host_memory, "release");
    }
    address const home = c.home;
    bytes const size = c.size;
    block& b = p_->space.isolate(c, c.home, c.size);
    if (result<void> done = p_->space.home().vacate(b); !done) {
      p_->space.give_back(b, b.on, b.stamp);
      return done;
    }
    if (p_->options.shared != nullptr) p_->options.shared->give(size);
    p_->observer.released(home, size);
    return {};
  }

  parts* p_;
};

}  // namespace gmlake
