#pragma once
/// Announces PyTorch's operators to the pagers of the devices whose memory they use, and tells these how long each ran.
///
/// A time counts from when the device gets to an operator until it is past it. What the operator's stream waits for
/// meanwhile, as memory for its results may be on its way out, is left out: a schedule that took it for work would make
/// room for it, and so make it longer. So is, where the device was idle, what the host took to launch the operator:
/// kernels may have run meanwhile, so such a time is a guess. While anything may be captured, nothing is timed: the
/// events would become the graph's, and asking for others might break the capture off.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "gmlake/adapter/torch_errors.hpp"
#include "gmlake/adapter/torch_operators.hpp"
#include "gmlake/adapter/torch_process.hpp"
#include "gmlake/adapter/torch_waits.hpp"

namespace gmlake {

class torch_paging final : public torch_operator_watcher, private torch_wait_watcher {
 public:
  /// Lives as long as the process.
  [[nodiscard]] static torch_paging& get() {
    static auto& one = *new torch_paging;
    return one;
  }

  /// Tells all times, for which the host waits.
  void settle() {
    unless_captured const asked(true);
    std::scoped_lock const lock(mutex_);
    tell(true);
  }

  void begins(std::vector<torch_operand> const& uses) override {
    running& now = this->now();
    now = {};
    announce(now, uses);
    if (now.device < 0 || !now.pager->timed(now.on) || capturing()) return;
    now.first = recorded(now.device, now.on);
    now.began = clock::now();
    torch_wait_watcher::of_thread() = this;
  }
  void made(std::vector<torch_operand> const& results) override { announce(now(), results); }
  void ends() noexcept override {
    torch_wait_watcher::of_thread() = nullptr;
    running now = std::exchange(this->now(), {});
    if (now.device < 0) return;
    try {
      if (now.first != nullptr && capturing()) discard(now);
      unless_captured const asked(now.first != nullptr);
      bool const idle = now.first != nullptr && is_over(now.first);
      auto const took = clock::now() - now.began;
      cudaEvent_t const last = now.first != nullptr ? recorded(now.device, now.on) : nullptr;
      std::int64_t const number = now.pager->end_operation(now.on);
      if (last == nullptr) return;
      std::scoped_lock const lock(mutex_);
      clock::duration const launching = idle ? took : clock::duration{};
      under_way_.push_back({now.pager, number, now.device, now.first, last, std::move(now.waits), launching});
      tell(false);
    } catch (...) {
      // For want of memory, or because the device has failed, which the operator's caller learns: its time isn't told.
    }
  }

 private:
  using clock = std::chrono::steady_clock;
  /// Its stream waits for others' work.
  struct waiting {
    cudaEvent_t begin = nullptr, end = nullptr;
  };
  /// This thread's operator.
  struct running {
    torch_swapper* pager = nullptr;
    int device = -1;
    stream on{};
    cudaEvent_t first = nullptr;
    clock::time_point began;
    std::vector<waiting> waits;
  };
  struct timing {
    torch_swapper* pager;
    std::int64_t number;
    int device;
    cudaEvent_t first, last;
    std::vector<waiting> waits;
    clock::duration launching;  ///< what of the time the device may have waited for the host
  };

  [[nodiscard]] static running& now() noexcept {
    static thread_local running one;
    return one;
  }

  /// Of several devices' memory, the first one's pager counts the operator.
  static void announce(running& now, std::vector<torch_operand> const& all) {
    std::vector<swap::block_use> uses;
    uses.reserve(all.size());
    for (auto next = all.begin(); next != all.end();) {
      int const device = next->device;
      bool lingers = false;
      uses.clear();
      for (; next != all.end() && next->device == device; ++next) {
        uses.push_back({to_address(next->begin), next->reads, next->writes});
        lingers = lingers || next->lingers;
      }
      torch_device* const d = torch_process::get().opened(device);
      torch_swapper* const pager = d != nullptr ? d->swapper() : nullptr;
      if (pager == nullptr || !pager->paging()) continue;
      cudaStream_t const s = c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
      stream const on = static_cast<stream>(reinterpret_cast<std::uintptr_t>(s));
      if (now.device < 0) {
        now.pager = pager;
        now.device = device;
        now.on = on;
      }
      result<void> const done = d->use(*pager, uses, lingers, on);
      if (done) continue;
      TORCH_CHECK_WITH(OutOfMemoryError, done.error().code != errc::out_of_memory,
                       "CUDA out of memory. What an operator uses does not fit into the limit of ",
                       in_units(d->limit().limit()), ".");
      TORCH_CHECK(false, describe(done.error()));
    }
  }

  /// Whether any device's work may be.
  [[nodiscard]] static bool capturing() {
    bool any = false;
    torch_process::get().each_device([&](torch_device& d) { any = any || d.paused(); });
    return any;
  }

  /// That it isn't is no error that a later call should find.
  [[nodiscard]] static bool is_over(cudaEvent_t e) {
    cudaError_t const r = cudaEventQuery(e);
    if (r == cudaErrorNotReady) static_cast<void>(cudaGetLastError());
    return r == cudaSuccess;
  }

  void waits(stream on) noexcept override {
    running& now = this->now();
    if (on != now.on) return;
    try {
      now.waits.push_back({recorded(now.device, on), nullptr});
    } catch (...) {
      now.first = nullptr;  // its time isn't told
    }
  }
  void waited(stream on) noexcept override {
    running& now = this->now();
    if (on != now.on || now.first == nullptr) return;
    try {
      now.waits.back().end = recorded(now.device, on);
    } catch (...) {
      now.first = nullptr;
    }
  }

  /// Another thread may begin to capture at any time, which calls of this thread's are not to break off.
  struct unless_captured {
    explicit unless_captured(bool asks) {
      if (asks) relaxed.emplace(cudaStreamCaptureModeRelaxed);
    }
    std::optional<c10::cuda::CUDAStreamCaptureModeGuard> relaxed;
  };

  /// A capture has begun since the operator did: its time isn't told.
  void discard(running& now) {
    std::scoped_lock const lock(spare_mutex_);
    auto& spare = spare_[static_cast<std::size_t>(now.device)];
    spare.push_back(std::exchange(now.first, nullptr));
    for (auto const& w : now.waits) {
      for (cudaEvent_t const e : {w.begin, w.end}) {
        if (e != nullptr) spare.push_back(e);
      }
    }
  }

  [[nodiscard]] cudaEvent_t recorded(int device, stream on) {
    c10::cuda::CUDAGuard const guard(static_cast<c10::DeviceIndex>(device));
    cudaEvent_t e = nullptr;
    {
      std::scoped_lock const lock(spare_mutex_);
      auto& spare = spare_[static_cast<std::size_t>(device)];
      if (!spare.empty()) {
        e = spare.back();
        spare.pop_back();
      }
    }
    if (e == nullptr) C10_CUDA_CHECK(cudaEventCreate(&e));
    C10_CUDA_CHECK(cudaEventRecord(e, reinterpret_cast<cudaStream_t>(to_integer(on))));
    return e;
  }

  [[nodiscard]] static std::chrono::nanoseconds between(cudaEvent_t begin, cudaEvent_t end) {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return std::chrono::nanoseconds(static_cast<std::int64_t>(1e6 * static_cast<double>(milliseconds)));
  }

  /// Those that are known, or all.
  void tell(bool wait) {
    for (; !under_way_.empty(); under_way_.pop_front()) {
      timing const& t = under_way_.front();
      if (wait) C10_CUDA_CHECK(cudaEventSynchronize(t.last));
      else if (!is_over(t.last)) return;
      std::chrono::nanoseconds const whole = between(t.first, t.last);
      // The host launches while the device waits.
      std::chrono::nanoseconds waited{};
      for (auto const& w : t.waits) waited += between(w.begin, w.end);
      auto const launching = std::chrono::duration_cast<std::chrono::nanoseconds>(t.launching);
      t.pager->took(t.number, {std::max(whole - std::max(waited, launching), std::min(whole, shortest)),
                               launching > std::chrono::nanoseconds::zero()});
      std::scoped_lock const lock(spare_mutex_);
      auto& spare = spare_[static_cast<std::size_t>(t.device)];
      spare.insert(spare.end(), {t.first, t.last});
      for (auto const& w : t.waits) spare.insert(spare.end(), {w.begin, w.end});
    }
  }

  static constexpr std::chrono::nanoseconds shortest{3'000};  ///< a kernel's, where only that much is known

  std::mutex mutex_;
  std::deque<timing> under_way_;
  std::mutex spare_mutex_;  ///< taken last: pools' locks may be held
  std::array<std::vector<cudaEvent_t>, torch_process::most_devices> spare_;
};

}  // namespace gmlake
