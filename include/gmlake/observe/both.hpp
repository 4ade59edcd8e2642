#pragma once
/// Two observers as one: `both<counters, event_log>`.

#include <utility>

#include "gmlake/observe/counters.hpp"

namespace gmlake {

template <Observer First, Observer Second>
class both {
 public:
  both() = default;
  both(First first, Second second) noexcept : first_(std::move(first)), second_(std::move(second)) {}

  [[nodiscard]] First& first() noexcept { return first_; }
  [[nodiscard]] Second& second() noexcept { return second_; }

  void allocated(block_event const& b) noexcept { first_.allocated(b), second_.allocated(b); }
  void deallocated(block_event const& b) noexcept { first_.deallocated(b), second_.deallocated(b); }
  void created(address a, bytes n) noexcept { first_.created(a, n), second_.created(a, n); }
  void released(address a, bytes n) noexcept { first_.released(a, n), second_.released(a, n); }
  void stitched(stitch_event const& s) noexcept { first_.stitched(s), second_.stitched(s); }
  void reused(stitch_event const& s) noexcept { first_.reused(s), second_.reused(s); }
  void evicted(stitch_event const& s) noexcept { first_.evicted(s), second_.evicted(s); }
  void failed(memory_account const& a) noexcept { first_.failed(a), second_.failed(a); }

  [[nodiscard]] pool_stats const& seen() const noexcept
    requires CountingObserver<First>
  {
    return first_.seen();
  }

 private:
  First first_;
  Second second_;
};
static_assert(CountingObserver<both<counters, no_observer>>);

}  // namespace gmlake
