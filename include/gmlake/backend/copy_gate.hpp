#pragma once
/// A gate that copies wait at, on the device, before they begin: a word of host memory that has to be 0.
///
/// Beside a copy that keeps one of the device's copy engines busy, the driver's call that gives access to a handle
/// waits for that engine's time slice to end, a millisecond, as it needs the same one (`bench/results/h200-notes.md`).
/// With the gate closed it waits for no more than the piece that is being copied. Whoever maps memory closes the gate
/// for as long as its call takes; copies are queued in pieces that wait for it (`swap::cuda_copier`). Even where it is
/// open, waiting for it lets others' copies in between, which wait for all that is ready else.
///
/// Another thread's call may keep the mapping one waiting until the copies are done, which the gate would keep from
/// beginning: so somebody has to open one that stays closed while copies wait for it (`gate_keeper`). That the gate is
/// open when somebody takes it for closed costs time and nothing else.

#include <atomic>
#include <cstdint>
#include <utility>

namespace gmlake {

class copy_gate {
 public:
  /// Keeps it closed while it lives.
  class closure {
   public:
    closure() noexcept = default;
    explicit closure(copy_gate& g) noexcept : gate_(&g) {
      ++g.closings_;
      if (g.closed_by_++ > 0) return;
      ++g.changes_;
      g.word_ = 1;
    }
    closure(closure&& o) noexcept : gate_(std::exchange(o.gate_, nullptr)) {}
    closure& operator=(closure&&) = delete;
    ~closure() {
      if (gate_ == nullptr || --gate_->closed_by_ > 0) return;
      ++gate_->changes_;
      gate_->word_ = 0;
    }

   private:
    copy_gate* gate_ = nullptr;
  };

  copy_gate() noexcept = default;
  copy_gate(copy_gate const&) = delete;
  copy_gate& operator=(copy_gate const&) = delete;
  ~copy_gate() = default;

  /// From any thread, also while others have it closed.
  [[nodiscard]] closure close() noexcept { return closure(*this); }
  /// How often it has been closed so far.
  [[nodiscard]] std::uint64_t closings() const noexcept { return closings_; }
  /// What copies wait for to be 0.
  [[nodiscard]] std::atomic<std::uint32_t> const& word() const noexcept { return word_; }
  /// The same, for copies that only let others in between: nobody closes it.
  [[nodiscard]] std::atomic<std::uint32_t> const& open_word() const noexcept { return open_; }

  /// How often it has become closed, or open again.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  /// Opens it if it is closed, and has been since it had changed so often, until nobody closes it any more. Whether it
  /// did.
  bool open_if_closed_since(std::uint64_t changes) noexcept {
    bool const stuck = word_ != 0 && changes_ == changes;
    if (stuck) word_ = 0;
    return stuck;
  }

 private:
  std::atomic<std::uint32_t> word_{0};
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint32_t> closed_by_{0};
  std::atomic<std::uint64_t> closings_{0};
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace gmlake
