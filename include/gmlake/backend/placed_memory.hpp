#pragma once
/// Memory that comes with its address, from `cudaMalloc`, `ncclMemAlloc` or any other allocator, as a backend: a
/// reservation is one allocation, and what is created and mapped in it is that memory. Nothing can be stitched from it.
///
///     lake_pool<placed_memory<nccl_source>> pool(placed_memory(nccl_source{}));

#include <algorithm>
#include <concepts>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/alignment.hpp"

namespace gmlake {

/// Where such memory is from. `allocate(n)`: n bytes, aligned to 512 at least. Errors: `out_of_memory`, its own.
/// `deallocate(at, n)`: what `allocate(n)` gave; must be possible whatever failed before.
template <class S>
concept MemorySource = std::movable<S> && requires(S& s, bytes n, address at) {
  { s.allocate(n) } noexcept -> std::same_as<result<address>>;
  { s.deallocate(at, n) } noexcept -> std::same_as<result<void>>;
};

template <MemorySource Source>
class placed_memory {
 public:
  static constexpr bool reservations_are_memory = true;
  static constexpr bytes default_granule = 2_MiB;

  /// Precondition: the granule is a power of two and at least 512.
  explicit placed_memory(Source source, bytes granule = default_granule) noexcept
      : source_(std::move(source)), granule_(granule) {}

  [[nodiscard]] bytes granularity() const noexcept { return granule_; }
  /// Names what a mapping will show, and takes nothing.
  [[nodiscard]] result<handle> create(bytes) noexcept { return static_cast<handle>(++last_); }
  [[nodiscard]] result<void> release(handle) noexcept { return {}; }

  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    bytes const aligned_to = std::max(alignment, granule_);
    settle();
    try {
      held_.reserve(held_.size() + 2);
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "reserve");
    }
    allocation a{.size = n + slack_};
    result<address> at = source_.allocate(a.size);
    if (at && align_up(*at, aligned_to) + n > *at + a.size) {  // from now on with room to align
      a.at = *at;
      held_.push_back(a);
      settle();
      slack_ = std::max(slack_, aligned_to - block_alignment);
      a.size = n + slack_;
      at = source_.allocate(a.size);
    }
    if (!at) return at;
    a.at = *at;
    a.begin = align_up(*at, aligned_to);
    a.end = a.begin + n;
    held_.push_back(a);
    return a.begin;
  }
  [[nodiscard]] result<void> unreserve(address va, bytes) noexcept {
    auto const a = std::ranges::find(held_, va, &allocation::begin);
    if (a == held_.end()) return failure(errc::invalid_argument, "unreserve");
    if (result<void> done = source_.deallocate(a->at, a->size); !done) return done;
    *a = held_.back();
    held_.pop_back();
    return {};
  }

  [[nodiscard]] result<void> map(address va, bytes n, handle) noexcept { return check(va, n, "map"); }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept { return check(va, n, "unmap"); }
  [[nodiscard]] result<void> set_access(address va, bytes n, access) noexcept { return check(va, n, "set_access"); }

 private:
  static constexpr bytes block_alignment = 512;

  struct allocation {
    address at{};     ///< the source's
    bytes size = 0;   ///< the source's
    address begin{};  ///< what was reserved in it; none where it is of no use
    address end{};
  };

  /// Gives back what turned out to be of no use.
  void settle() noexcept {
    std::erase_if(held_, [this](allocation const& a) {
      return a.begin == address{} && source_.deallocate(a.at, a.size).has_value();
    });
  }

  [[nodiscard]] result<void> check(address va, bytes n, char const* call) const noexcept {
    for (allocation const& a : held_) {
      if (a.begin <= va && va < a.end && n <= a.end - va) return {};
    }
    return failure(errc::invalid_argument, call);
  }

  Source source_;
  bytes granule_;
  bytes slack_ = 0;  ///< asked for beyond what is wanted, as the source does not align to granules
  std::uintptr_t last_ = 0;
  std::vector<allocation> held_;
};

}  // namespace gmlake
