#pragma once
/// expandable_segment: a range of addresses that handles of one size back, slot by slot.
///
/// A slot holds a handle or none, and maps it or not. Every step is written down in its slot, so that what a failing
/// call left behind is used or released by the next operation there, and nothing leaks. Which slots to map is the
/// pool's decision. Source: PyTorch 2.11, c10/cuda/CUDACachingAllocator.cpp, `ExpandableSegment`.

#include <new>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/intrusive.hpp"
#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/observe/stats.hpp"

namespace gmlake {

/// Physical memory held and addresses backed, over all segments of a pool; in bytes.
struct expandable_usage {
  gauge reserved;
  gauge mapped;
};

class expandable_segment {
 public:
  /// `slot` bytes a handle, a multiple of the backend's granule; the usage is the pool's and outlives the segment.
  expandable_segment(bytes slot, expandable_usage& usage) noexcept : slot_(slot), usage_(usage) {}

  [[nodiscard]] address at() const noexcept { return at_; }
  [[nodiscard]] bytes size() const noexcept { return size_; }
  [[nodiscard]] bytes slot() const noexcept { return slot_; }

  /// Takes the addresses; n is a multiple of `slot()`. Errors: the backend's.
  template <PhysicalBackend Backend>
  [[nodiscard]] result<void> reserve(Backend& backend, bytes n) noexcept {
    auto at = backend.reserve(n, 0);
    if (!at) return failure(at.error());
    at_ = *at;
    size_ = n;
    return {};
  }

  /// Backs the slots [first, last), none of which is in use: creates all handles, maps them, then sets access once.
  /// A failure leaves none of them in use. Errors: `out_of_host_memory`, the backend's.
  template <PhysicalBackend Backend>
  [[nodiscard]] result<void> map(Backend& backend, std::size_t first, std::size_t last) noexcept {
    try {
      if (slots_.size() < last) slots_.resize(last);
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "allocate");
    }
    auto done = try_map(backend, first, last);
    if (!done)
      for (std::size_t i = first; i < last; ++i) (void)clear(backend, i);
    return done;
  }

  /// Unmaps and releases the slots [first, last) in order, up to the first that the backend won't unmap; returns how
  /// many are unmapped.
  template <PhysicalBackend Backend>
  [[nodiscard]] std::size_t unmap(Backend& backend, std::size_t first, std::size_t last) noexcept {
    for (std::size_t i = first; i < last; ++i) {
      (void)clear(backend, i);
      if (slots_[i].mapped) return i - first;
    }
    return last - first;
  }

  /// Gives everything back to the backend; false where a call fails, to be called again.
  template <PhysicalBackend Backend>
  bool dismantle(Backend& backend) noexcept {
    bool all = true;
    for (std::size_t i = 0; i < slots_.size(); ++i) all = clear(backend, i) && all;
    if (!all || at_ == address{}) return all;
    if (!backend.unreserve(at_, size_)) return false;
    at_ = address{};
    return true;
  }

  list_hook in_list;  ///< the pool's

 private:
  struct slot_state {
    handle memory{};
    bool mapped = false;
  };

  [[nodiscard]] address slot_at(std::size_t i) const noexcept { return at_ + i * slot_; }

  template <PhysicalBackend Backend>
  [[nodiscard]] result<void> try_map(Backend& backend, std::size_t first, std::size_t last) noexcept {
    for (std::size_t i = first; i < last; ++i) {
      if (slots_[i].memory != handle{}) continue;
      auto memory = backend.create(slot_);
      if (!memory) return failure(memory.error());
      slots_[i].memory = *memory;
      usage_.reserved.add(slot_);
    }
    for (std::size_t i = first; i < last; ++i) {
      if (slots_[i].mapped) continue;
      if (auto mapped = backend.map(slot_at(i), slot_, slots_[i].memory); !mapped) return mapped;
      slots_[i].mapped = true;
      usage_.mapped.add(slot_);
    }
    return backend.set_access(slot_at(first), (last - first) * slot_, access::read_write);
  }

  /// Unmaps and releases one slot, as far as the backend lets it; true where it is empty.
  template <PhysicalBackend Backend>
  [[nodiscard]] bool clear(Backend& backend, std::size_t i) noexcept {
    slot_state& s = slots_[i];
    if (s.mapped) {
      if (!backend.unmap(slot_at(i), slot_)) return false;
      s.mapped = false;
      usage_.mapped.sub(slot_);
    }
    if (s.memory != handle{}) {
      if (!backend.release(s.memory)) return false;
      s.memory = handle{};
      usage_.reserved.sub(slot_);
    }
    return true;
  }

  address at_{};
  bytes size_ = 0;
  bytes slot_;
  expandable_usage& usage_;
  std::vector<slot_state> slots_;
};

}  // namespace gmlake
