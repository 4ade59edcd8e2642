#pragma once
/// Copier over two CUDA streams of its own, which the default stream does not order.
///
/// Host memory is pinned, by whichever of the driver's ways, or the host waits for its copies. A range may be made of
/// many mappings. Another stream's capture is not disturbed, in whatever mode.
///
/// Copies are queued in pieces that wait for the device's gate, which is open but while its memory is mapped
/// (`copy_gate`): a copy engine serves a stream for as long as that has nothing to wait for, and mapping would take a
/// millisecond a handle beside copies out, another's copy of a single number all of their time. Behind hundreds that
/// are under way they are whole, so that who queues them need not wait.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include <cuda.h>

#include "gmlake/backend/cuda_context.hpp"
#include "gmlake/backend/cuda_copy_gate.hpp"
#include "gmlake/backend/gate_keeper.hpp"
#include "gmlake/swap/carried.hpp"
#include "gmlake/swap/copier.hpp"
#include "gmlake/swap/copy_pieces.hpp"
#include "gmlake/swap/cuda_lane_timer.hpp"

namespace gmlake::swap {

struct cuda_copier_options {
  int device = 0;     ///< ordinal
  bool gated = true;  ///< false: copies let nothing in between, as where the link is measured
};

class cuda_copier {
 public:
  /// Returns `result<cuda_copier>`. Errors: `no_driver`, `invalid_argument` (no such device), `driver_failure`.
  [[nodiscard]] static auto open(cuda_copier_options const& options = {}) noexcept {
    using opened = result<cuda_copier>;  // named where the class is complete
    auto context = cuda_context::retain(options.device);
    if (!context) return opened(failure(context.error()));
    cuda_copier copier(*std::move(context));
    CUresult const r = copier.context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      CUresult const first = d.stream_create(&copier.out_, CU_STREAM_NON_BLOCKING);
      return first != CUDA_SUCCESS ? first : d.stream_create(&copier.in_, CU_STREAM_NON_BLOCKING);
    });
    if (r != CUDA_SUCCESS) return opened(cuda_failure(r, "cuStreamCreate"));
    if (options.gated) copier.find_gate(options.device);
    return opened(std::move(copier));
  }

  cuda_copier(cuda_copier&& o) noexcept
      : context_(std::move(o.context_)),
        out_(std::exchange(o.out_, nullptr)),
        in_(std::exchange(o.in_, nullptr)),
        out_timer_(std::exchange(o.out_timer_, {})),
        in_timer_(std::exchange(o.in_timer_, {})),
        gate_(o.gate_),
        keeper_(std::move(o.keeper_)),
        pieces_(o.pieces_) {}
  cuda_copier& operator=(cuda_copier&& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(out_, o.out_);
    std::swap(in_, o.in_);
    std::swap(out_timer_, o.out_timer_);
    std::swap(in_timer_, o.in_timer_);
    std::swap(gate_, o.gate_);
    std::swap(keeper_, o.keeper_);
    std::swap(pieces_, o.pieces_);
    return *this;
  }
  /// What is queued is still done.
  ~cuda_copier() {
    if (out_ == nullptr && in_ == nullptr) return;
    static_cast<void>(context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      out_timer_.close(d);
      in_timer_.close(d);
      for (CUstream s : {out_, in_}) {
        if (s != nullptr) static_cast<void>(d.stream_destroy(s));
      }
      return CUDA_SUCCESS;
    }));
  }

  [[nodiscard]] stream stream_out() const noexcept { return name(out_); }
  [[nodiscard]] stream stream_in() const noexcept { return name(in_); }
  [[nodiscard]] result<void> copy_out(address host, address device, bytes n) noexcept {
    return gate_ != nullptr && kept()
               ? copy(host, device, n, out_, out_timer_, pieces_.next(gate_->closings()), &gate_->word())
               : copy(host, device, n, out_, out_timer_, n, nullptr);
  }
  [[nodiscard]] result<void> copy_in(address device, address host, bytes n) noexcept {
    return copy(device, host, n, in_, in_timer_, copy_pieces::largest,
                gate_ != nullptr ? &gate_->open_word() : nullptr);
  }

  /// What the copies came to that were timed and are over, each once.
  [[nodiscard]] carried take_carried() noexcept {
    carried all;
    static_cast<void>(context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      all = {.out = out_timer_.take(d), .in = in_timer_.take(d)};
      return CUDA_SUCCESS;
    }));
    return all;
  }

 private:
  explicit cuda_copier(cuda_context&& context) noexcept : context_(std::move(context)) {}

  [[nodiscard]] static stream name(CUstream s) noexcept {
    return static_cast<stream>(reinterpret_cast<std::uintptr_t>(s));
  }

  using word = std::atomic<std::uint32_t>;

  /// Commands of one stream that are under way, beyond which copies are queued whole and wait for nothing: as it seems
  /// it takes some thousand, and who queues more waits for the device, with all locks that it holds.
  static constexpr std::uint64_t most_waiting = 512;

  /// The driver tells by the addresses which way it goes. In pieces, each of which waits for the word to be 0; null: as
  /// one that doesn't.
  [[nodiscard]] result<void> copy(address to, address from, bytes n, CUstream on, cuda_lane_timer& timer, bytes piece,
                                  word const* open) noexcept {
    CUresult const r = context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      if (open != nullptr && timer.under_way(d) > most_waiting) open = nullptr;
      bool timed = false;
      for (bytes done = 0, part = 0; done < n; done += part) {
        timer.queued(open != nullptr ? 2 : 1);
        part = open != nullptr && wait_for(d, *open, on) ? std::min(piece, n - done) : n - done;
        if (done == 0) timed = timer.begin(d, n, on);
        CUresult const queued = d.copy_async(to_integer(to + done), to_integer(from + done), part, on);
        if (queued == CUDA_SUCCESS) continue;
        if (done > 0) static_cast<void>(d.stream_synchronize(on));  // nothing of a copy that has failed is under way
        return queued;
      }
      if (timed) timer.end(d, on);
      return CUDA_SUCCESS;
    });
    return to_result(r, "cuMemcpyAsync");
  }

  /// Whether somebody opens the gate where it is stuck.
  [[nodiscard]] bool kept() noexcept {
    if (keeper_ != nullptr) return true;
    try {
      keeper_ = std::make_unique<gate_keeper>(*gate_);
    } catch (std::bad_alloc const&) {
      return false;
    } catch (std::system_error const&) {
      return false;
    }
    return true;
  }
  /// Whether what is queued next waits; where that fails, nothing does from then on, which is slower.
  [[nodiscard]] bool wait_for(cuda_driver const& d, word const& open, CUstream on) noexcept {
    if (gate_ == nullptr) return false;
    auto const at = to_integer(gmlake::to_address(&open));
    if (d.stream_wait_value(on, at, 0, CU_STREAM_WAIT_VALUE_EQ) != CUDA_SUCCESS) gate_ = nullptr;
    return gate_ != nullptr;
  }
  /// None, where the driver's streams can't wait for it.
  void find_gate(int device) noexcept {
    if (context_.driver().stream_wait_value == nullptr || !pin_cuda_copy_gates(context_)) return;
    gate_ = cuda_copy_gate(device);
    static_cast<void>(context_.with_current_beside_captures([&](cuda_driver const& d) noexcept {
      if (wait_for(d, gate_->open_word(), out_)) pieces_ = copy_pieces(gate_->closings());
      return CUDA_SUCCESS;
    }));
  }

  cuda_context context_;
  CUstream out_ = nullptr;
  CUstream in_ = nullptr;
  cuda_lane_timer out_timer_, in_timer_;
  copy_gate* gate_ = nullptr;
  std::unique_ptr<gate_keeper> keeper_;
  copy_pieces pieces_;
};
static_assert(TimingCopier<cuda_copier>);

}  // namespace gmlake::swap
