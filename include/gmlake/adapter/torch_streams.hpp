#pragma once
/// PyTorch's streams as the pools may use them: not while a capture may be under way, and never those that PyTorch did
/// not make. Such a stream may be destroyed at any time, without a word, and recording on it would then crash in the
/// driver. Memory freed on it serves that stream again, as PyTorch's own allocator has it, and others once the host has
/// waited for the whole device. Each wait on the device is told to the thread's `torch_wait_watcher`.

#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "gmlake/adapter/torch_waits.hpp"
#include "gmlake/stream/one_stream.hpp"
#include "gmlake/stream/pausable.hpp"

namespace gmlake {

/// The streams that were not made by PyTorch, as far as they have come by. Thread-safe; only grows, and when it is full
/// further ones are taken for PyTorch's.
class torch_foreign_streams {
 public:
  void add(stream s) noexcept {
    if (contains(s)) return;
    for (std::atomic<std::uintptr_t>& place : all_) {
      std::uintptr_t there = place.load(std::memory_order_relaxed);
      bool const empty = there == 0 || there == gone;
      if (empty && place.compare_exchange_strong(there, to_integer(s))) break;
      if (there == to_integer(s)) break;  // another thread was faster
    }
    any_.store(true, std::memory_order_release);
  }
  /// Its owner has told that it is about to be destroyed, and it may be recorded on until then.
  void remove(stream s) noexcept {
    for (std::atomic<std::uintptr_t>& place : all_) {
      std::uintptr_t there = to_integer(s);
      if (place.compare_exchange_strong(there, gone)) return;
    }
  }
  [[nodiscard]] bool contains(stream s) const noexcept {
    if (!any_.load(std::memory_order_acquire)) return false;
    for (std::atomic<std::uintptr_t> const& place : all_) {
      std::uintptr_t const there = place.load(std::memory_order_relaxed);
      if (there == 0) return false;
      if (there == to_integer(s)) return true;
    }
    return false;
  }

 private:
  static constexpr std::uintptr_t gone = ~std::uintptr_t{0};  ///< no stream's

  std::atomic<bool> any_{false};
  std::array<std::atomic<std::uintptr_t>, 256> all_{};
};

template <StreamPolicy Streams>
class torch_streams : public pausable<Streams> {
 public:
  using typename pausable<Streams>::fence;
  using typename pausable<Streams>::pauses;

  /// Precondition: `foreign` outlives the policy.
  torch_streams(Streams streams, std::shared_ptr<pauses const> count, torch_foreign_streams const& foreign) noexcept
      : pausable<Streams>(std::move(streams), std::move(count)), foreign_(&foreign) {}

  [[nodiscard]] bool foreign(stream s) const noexcept { return foreign_->contains(s); }
  [[nodiscard]] result<fence> record(stream s) noexcept {
    if (foreign(s)) return failure(errc::not_supported, "record: a stream that PyTorch did not make");
    return pausable<Streams>::record(s);
  }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    torch_wait_watcher* const told = torch_wait_watcher::of_thread();
    if (told != nullptr) told->waits(s);
    result<void> done = pausable<Streams>::wait(s, f);
    if (told != nullptr) told->waited(s);
    return done;
  }

 private:
  torch_foreign_streams const* foreign_;
};
static_assert(SelectiveStreamPolicy<torch_streams<one_stream>>);

}  // namespace gmlake
