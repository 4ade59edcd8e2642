#pragma once
/// static_region: one piece of memory, created once and mapped at addresses of its own, whose offsets a plan names.
/// What the peers that plan serve their plans from.
///
/// It knows what is live in it and hands no byte out twice, whatever the plan says: a place that is in use is refused.
/// It decides on no offset but the best fit among gaps that it is asked for.

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/pool/presets/pytorch_rules.hpp"

namespace gmlake {

class static_region {
 public:
  /// A live block.
  struct piece {
    bytes size = 0;       ///< as placed
    bytes requested = 0;  ///< as asked for
  };
  /// Offsets [begin, end).
  struct stretch {
    bytes begin = 0;
    bytes end = 0;
  };

  /// n bytes, a multiple of the granule, as one handle. A failure leaves what `dismantle` could not give back at once.
  /// Errors: the backend's.
  template <PhysicalBackend Backend>
  [[nodiscard]] result<void> create(Backend& backend, bytes n) noexcept {
    size_ = n;
    result<void> const built = build(backend);
    if (!built) (void)dismantle(backend);
    usable_ = built.has_value();
    return built;
  }

  /// Gives everything back, live blocks too; false where a call fails, to be called again.
  template <PhysicalBackend Backend>
  bool dismantle(Backend& backend) noexcept {
    usable_ = false;
    used_.clear();
    if (mapped_) {
      if (!backend.unmap(at_, size_)) return false;
      mapped_ = false;
    }
    if (memory_ != handle{}) {
      if (!backend.release(memory_)) return false;
      memory_ = handle{};
    }
    if (at_ != address{}) {
      if (!backend.unreserve(at_, size_)) return false;
      at_ = address{};
    }
    return true;
  }

  /// Whether places can be taken.
  [[nodiscard]] bool usable() const noexcept { return usable_; }
  [[nodiscard]] bytes size() const noexcept { return size_; }
  /// Physical memory held, and addresses with memory behind them.
  [[nodiscard]] bytes reserved() const noexcept { return memory_ != handle{} ? size_ : 0; }
  [[nodiscard]] bytes mapped() const noexcept { return mapped_ ? size_ : 0; }
  [[nodiscard]] bool covers(address a) const noexcept { return usable_ && a >= at_ && a < at_ + size_; }

  /// The place at `offset`; `address{}` where it is in use, lies outside, or for want of host memory. O(log n).
  [[nodiscard]] address take(bytes offset, bytes size, bytes requested) noexcept {
    if (!usable_ || size > size_ || offset > size_ - size) return {};
    auto const next = used_.lower_bound(offset);
    if (next != used_.end() && next->first < offset + size) return {};
    if (next != used_.begin() && std::prev(next)->first + std::prev(next)->second.size > offset) return {};
    try {
      used_.emplace_hint(next, offset, piece{size, requested});
    } catch (std::bad_alloc const&) {
      return {};
    }
    return at_ + offset;
  }

  /// Takes a block back; nothing where none begins there. Precondition: covered. O(log n).
  [[nodiscard]] std::optional<piece> give(address a) noexcept {
    auto const found = used_.find(a - at_);
    if (found == used_.end()) return std::nullopt;
    piece const p = found->second;
    used_.erase(found);
    return p;
  }

  /// Whether a block may have begun here once and is free now. Precondition: covered.
  [[nodiscard]] bool lies_free(address a) const noexcept {
    bytes const offset = a - at_;
    if (!is_aligned(offset, pytorch_rules::block_rounding)) return false;
    auto const next = used_.upper_bound(offset);
    return next == used_.begin() || std::prev(next)->first + std::prev(next)->second.size <= offset;
  }

  /// The smallest gap of at least n bytes between what is live and `kept`, in any order, which is used up; nothing
  /// where there is none. O(m log m). Throws only `std::bad_alloc`.
  [[nodiscard]] std::optional<bytes> best_gap(bytes n, std::vector<stretch>& kept) const {
    for (auto const& [offset, p] : used_) kept.push_back({offset, offset + p.size});
    std::ranges::sort(kept, {}, &stretch::begin);
    std::optional<bytes> best;
    bytes best_size = std::numeric_limits<bytes>::max();
    bytes at = 0;
    auto const look = [&](bytes upto) {
      if (upto > at && upto - at >= n && upto - at < best_size) best = at, best_size = upto - at;
    };
    for (stretch const& s : kept) {
      look(s.begin);
      at = std::max(at, s.end);
    }
    look(size_);
    return best;
  }

 private:
  template <PhysicalBackend Backend>
  [[nodiscard]] result<void> build(Backend& backend) noexcept {
    auto at = backend.reserve(size_, 0);
    if (!at) return failure(at.error());
    at_ = *at;
    auto memory = backend.create(size_);
    if (!memory) return failure(memory.error());
    memory_ = *memory;
    if (auto mapped = backend.map(at_, size_, memory_); !mapped) return mapped;
    mapped_ = true;
    return backend.set_access(at_, size_, access::read_write);
  }

  address at_{};
  bytes size_ = 0;
  handle memory_{};
  bool mapped_ = false;
  bool usable_ = false;
  std::map<bytes, piece> used_;  ///< by offset
};

}  // namespace gmlake
