#pragma once
/// What PyTorch's memory viewer shows: the history of allocations and of memory mapped, with the callers' contexts, and
/// those of the blocks that live.
///
/// Memory appears where the viewer's user sees it: a chunk at its home, and while a stitch serves a block, at the
/// stitch and not at home. So what is mapped adds up to what is reserved. A free is entered before the pool has the
/// block back and an allocation after the pool has given it out, so entries for one address are in their true order.

#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/ApproximateClock.h>

#include "gmlake/adapter/torch_device.hpp"

namespace gmlake {

/// One device's. Its `torch_listener` part is called under a pool's lock.
class torch_history final : public torch_listener {
 public:
  using entry = c10::cuda::CUDACachingAllocator::TraceEntry;
  using context = std::shared_ptr<c10::GatheredContext>;
  using level = c10::cuda::CUDACachingAllocator::RecordContext;
  using tracker = c10::cuda::CUDACachingAllocator::AllocatorTraceTracker;

  struct options {
    bool enabled = false;
    c10::cuda::CUDACachingAllocator::CreateContextFn recorder = nullptr;
    std::size_t most = 1;
    level when = level::NEVER;
    std::unordered_set<int> skipped;  ///< actions
  };

  explicit torch_history(c10::DeviceIndex device) noexcept : device_(device) {}

  [[nodiscard]] c10::DeviceIndex device() const noexcept { return device_; }
  /// Whether anybody wants to know of events. The only thing that is asked while nobody does.
  [[nodiscard]] bool active() const noexcept { return active_.load(std::memory_order_acquire); }

  void configure(options const& o, bool clear) {
    std::scoped_lock const lock(mutex_);
    options_ = o;
    when_.store(o.enabled ? o.when : level::NEVER);
    if (clear || !o.enabled) {
      entries_.clear();
      next_ = 0;
    }
    if (!o.enabled) {
      contexts_.clear();
      mapped_.clear();
    }
    update();
  }
  void track(tracker t) {
    std::scoped_lock const lock(mutex_);
    trackers_.push_back(std::move(t));
    update();
  }
  [[nodiscard]] bool recording() const {
    std::scoped_lock const lock(mutex_);
    return options_.enabled;
  }

  /// The caller's context, if it is wanted for that much. To be called with no lock held: it may need Python's.
  [[nodiscard]] context gather(level wanted) const {
    if (when_.load() < wanted) return nullptr;
    return options_.recorder();
  }

  void append(entry::Action what, std::size_t at, std::size_t n, void* on, c10::MempoolId_t pool, context c = nullptr) {
    std::scoped_lock const lock(mutex_);
    if (what == entry::ALLOC && when_.load() >= level::STATE) contexts_[at] = c;
    if (what == entry::FREE_REQUESTED) contexts_.erase(at);
    if (what == entry::SEGMENT_MAP && c != nullptr) mapped_[at] = c;
    if (what == entry::SEGMENT_UNMAP) mapped_.erase(at);
    bool const keeps = what == entry::ALLOC || what == entry::SEGMENT_MAP ? when_.load() >= level::ALLOC : true;
    entry e(what, device_, at, n, on, pool, c10::getApproximateTime(), keeps ? std::move(c) : nullptr,
            compile_context(), metadata_);
    for (tracker const& t : trackers_) t(e);
    if (!options_.enabled || options_.skipped.contains(static_cast<int>(what))) return;
    if (entries_.size() < options_.most) {
      entries_.push_back(std::move(e));
      return;
    }
    entries_[next_++ % entries_.size()] = std::move(e);
  }

  /// The context of the live block at `at`, and of the memory that was mapped there. @{
  [[nodiscard]] context context_of(std::size_t at) const {
    std::scoped_lock const lock(mutex_);
    auto const found = contexts_.find(at);
    return found != contexts_.end() ? found->second : nullptr;
  }
  [[nodiscard]] context context_of_memory(std::size_t at) const {
    std::scoped_lock const lock(mutex_);
    auto const found = mapped_.find(at);
    return found != mapped_.end() ? found->second : nullptr;
  }
  /// @}

  /// While one lives, memory that this thread's calls map or unmap is put down to its context.
  class cause {
   public:
    explicit cause(context c) noexcept : before_(std::exchange(current(), std::move(c))) {}
    cause(cause const&) = delete;
    cause& operator=(cause const&) = delete;
    ~cause() { current() = std::move(before_); }

    [[nodiscard]] static context& current() {
      static thread_local context one;
      return one;
    }

   private:
    context before_;
  };
  /// Oldest first.
  [[nodiscard]] std::vector<entry> entries() const {
    std::scoped_lock const lock(mutex_);
    std::vector<entry> all;
    all.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) all.push_back(entries_[(next_ + i) % entries_.size()]);
    return all;
  }

  /// This thread's, for its entries. @{
  static void push_compile_context(std::string const& name) { compile_contexts().push_back(name); }
  static void pop_compile_context() {
    if (!compile_contexts().empty()) compile_contexts().pop_back();
  }
  /// @}
  void set_metadata(std::string const& text) {
    std::scoped_lock const lock(mutex_);
    metadata_ = text;
  }
  [[nodiscard]] std::string metadata() const {
    std::scoped_lock const lock(mutex_);
    return metadata_;
  }

  // ---- listening: memory that moves

  void allocated(block_event const& b) noexcept override { move(b, entry::SEGMENT_UNMAP, entry::SEGMENT_MAP); }
  void deallocated(block_event const& b) noexcept override { move(b, entry::SEGMENT_MAP, entry::SEGMENT_UNMAP); }
  void created(address home, bytes n) noexcept override { enter(entry::SEGMENT_MAP, home, n, stream{}); }
  void released(address home, bytes n) noexcept override { enter(entry::SEGMENT_UNMAP, home, n, stream{}); }

 private:
  void update() { active_.store(options_.enabled || !trackers_.empty(), std::memory_order_release); }

  [[nodiscard]] static std::vector<std::string>& compile_contexts() {
    static thread_local std::vector<std::string> all;
    return all;
  }
  [[nodiscard]] static std::string compile_context() {
    return compile_contexts().empty() ? "N/A" : compile_contexts().back();  // as PyTorch has it
  }

  /// A stitch's memory is at home, or at the stitch.
  void move(block_event const& b, entry::Action at_home, entry::Action at_stitch) noexcept {
    if (b.placed == nullptr || b.placed->view == nullptr) return;
    if (at_stitch == entry::SEGMENT_UNMAP) enter(at_stitch, b.at, b.size, b.on);
    for (block const* t = b.placed->next_taken; t != nullptr; t = t->next_taken) {
      enter(at_home, t->begin, t->size, b.on);
    }
    if (at_stitch == entry::SEGMENT_MAP) enter(at_stitch, b.at, b.size, b.on);
  }

  void enter(entry::Action what, address at, bytes n, stream on) noexcept {
    if (!active()) return;
    try {
      context c = what == entry::SEGMENT_UNMAP && when_.load() < level::ALL ? nullptr : cause::current();
      append(what, to_integer(at), n, reinterpret_cast<void*>(to_integer(on)), {0, 0}, std::move(c));
    } catch (std::bad_alloc const&) {
      // History may have holes; memory may not.
    }
  }

  c10::DeviceIndex device_;
  mutable std::mutex mutex_;
  options options_;
  std::atomic<bool> active_{false};
  std::atomic<level> when_{level::NEVER};
  std::vector<tracker> trackers_;
  std::vector<entry> entries_;
  std::size_t next_ = 0;                               ///< where the oldest entry is, once there are as many as may be
  std::unordered_map<std::size_t, context> contexts_;  ///< of live blocks
  std::unordered_map<std::size_t, context> mapped_;    ///< of memory
  std::string metadata_;
};

}  // namespace gmlake
