#pragma once
/// A GPU that exists only as clocks: what a program's kernels, copies, events and driver calls come to together, in
/// time, without a device and the same on every run.
///
/// One clock is the host's, and each stream has one: those that compute, copies out, copies in. A stream's tells when
/// all that is queued on it will be done. What the host does takes the host's time; what it queues begins once the host
/// has queued it and what lies before it on the stream is done. One kernel runs at a time; one of another stream may
/// fill the time that it waits. Nothing slows anything down otherwise: kernels run beside copies, and the two
/// directions beside each other, at full rate.
///
/// `emulated_streams`, `emulated_copier` and `emulated_driver` are what pools take. They share the GPU, which outlives
/// them.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/backend/simulated.hpp"
#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/stream/stream_policy.hpp"
#include "gmlake/swap/carried.hpp"
#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/copier.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::bench {

/// What things take; by default about what they do on an H200 while copies fill the link.
struct emulated_costs {
  swap::time launch{25'000};  ///< the host: an operation, framework and all
  /// The host: any call that a pool makes of the driver; access to several handles takes so long, and counts, for each;
  /// mapping them takes nothing.
  swap::time driver_call{80'000};
  /// The host: access to a handle, while anything is copied out that does not let it in between
  /// (`bench/results/h200-notes.md`).
  swap::time access_beside_copy_out{1'000'000};
  /// Copies out let it in between pieces of that size, and wait for it then (`copy_gate`); 0: they don't.
  bytes piece = 8_MiB;
  swap::time between{20'000};  ///< what the lane loses by one
  swap::time copy{2'000};      ///< the host: queueing one
  swap::time record{1'500};    ///< the host: an event
  swap::time query{1'000};     ///< the host: asking whether one is over
  swap::time wait{1'000};      ///< the host: making a stream wait for one
  swap::channel link{.out = {.latency = swap::time(5'000)}, .in = {.latency = swap::time(5'000)}};
};

class emulated_gpu {
 public:
  /// All others compute too; 16 at the most.
  static constexpr stream compute{1}, copies_out{2}, copies_in{3};

  explicit emulated_gpu(emulated_costs const& costs) noexcept : costs_(costs) {}
  emulated_gpu(emulated_gpu const&) = delete;
  emulated_gpu& operator=(emulated_gpu const&) = delete;
  ~emulated_gpu() = default;

  [[nodiscard]] emulated_costs const& costs() const noexcept { return costs_; }
  /// The host's clock.
  [[nodiscard]] swap::time now() const noexcept { return host_; }
  [[nodiscard]] std::uint64_t driver_calls() const noexcept { return driver_calls_; }
  /// Times that the host waited for an event which was not over.
  [[nodiscard]] std::uint64_t host_waits() const noexcept { return host_waits_; }

  /// Times that the host asked whether an event was over.
  [[nodiscard]] std::uint64_t queries() const noexcept { return queries_; }

  void launch(swap::time kernel, stream on = compute) {
    host_ += costs_.launch;
    swap::time& end = end_of(on);
    end = run(std::max(end, host_), kernel) + kernel;
  }
  void copy_out(bytes n) noexcept {
    host_ += costs_.copy;
    swap::time const took = costs_.link.out.time_of(n);
    queue(copies_out, took);
    swap::time const end = end_of(copies_out);
    if (!outs_.empty() && outs_.back().end == end - took) outs_.back().end = end;
    else outs_.push_back({end - took, end});
  }
  void copy_in(bytes n) noexcept {
    host_ += costs_.copy;
    queue(copies_in, costs_.link.in.time_of(n));
  }
  void call_driver() noexcept {
    host_ += costs_.driver_call;
    ++driver_calls_;
  }

  /// Access to a handle's addresses.
  void set_access() noexcept {
    call_driver();
    while (!outs_.empty() && outs_.front().end <= host_) outs_.pop_front();
    if (outs_.empty() || outs_.front().begin > host_) return;
    if (costs_.piece == 0) {
      host_ += costs_.access_beside_copy_out;
      return;
    }
    swap::time const piece = costs_.link.out.time_of(costs_.piece);
    host_ += std::min(outs_.front().end - host_, piece - (host_ - outs_.front().begin) % piece);
    // Who waits for a copy that is queued already takes it to be over as soon as before.
    outs_.back().end += costs_.between;
    end_of(copies_out) += costs_.between;
  }

  /// When what is queued on s so far will be done.
  [[nodiscard]] swap::time record(stream s) noexcept {
    host_ += costs_.record;
    return std::max(host_, end_of(s));
  }
  [[nodiscard]] bool reached(swap::time event) noexcept {
    ++queries_;
    host_ += costs_.query;
    return event <= host_;
  }
  void wait(stream s, swap::time event) noexcept {
    host_ += costs_.wait;
    end_of(s) = std::max(end_of(s), event);
  }
  void synchronize(swap::time event) noexcept {
    if (event <= host_) return;
    host_ = event;
    ++host_waits_;
  }
  /// When what is queued on s will be done.
  [[nodiscard]] swap::time end(stream s) noexcept { return end_of(s); }
  /// The host is idle until then.
  void idle_until(swap::time t) noexcept { host_ = std::max(host_, t); }
  /// Of one stream; not counted among the host's waits.
  void finish(stream s) noexcept { idle_until(end_of(s)); }
  void finish_all() noexcept {
    for (swap::time const end : ends_) idle_until(end);
  }

 private:
  struct span {
    swap::time begin, end;
  };

  [[nodiscard]] swap::time& end_of(stream s) noexcept { return ends_[static_cast<std::size_t>(s) % ends_.size()]; }
  void queue(stream s, swap::time work) noexcept { end_of(s) = std::max(end_of(s), host_) + work; }

  /// When a kernel begins that may from `ready` on.
  [[nodiscard]] swap::time run(swap::time ready, swap::time kernel) {
    std::erase_if(gaps_, [&](span const& g) { return g.end <= host_; });  // nothing is queued in the past
    for (auto g = gaps_.begin(); g != gaps_.end(); ++g) {
      swap::time const begin = std::max(ready, g->begin);
      if (begin + kernel > g->end) continue;
      span const rest{begin + kernel, g->end};
      g->end = begin;
      if (rest.begin < rest.end) gaps_.insert(std::next(g), rest);
      return begin;
    }
    swap::time const begin = std::max(ready, busy_until_);
    if (begin > busy_until_) gaps_.push_back({busy_until_, begin});
    busy_until_ = begin + kernel;
    return begin;
  }

  emulated_costs costs_;
  swap::time host_{};
  std::array<swap::time, 16> ends_{};  ///< by stream
  std::vector<span> gaps_;             ///< in order, of the device that computes: no kernel runs then
  std::deque<span> outs_;              ///< in order: something is copied out
  swap::time busy_until_{};            ///< it
  std::uint64_t driver_calls_ = 0;
  std::uint64_t host_waits_ = 0;
  std::uint64_t queries_ = 0;
};

class emulated_streams {
 public:
  struct fence {
    swap::time at{};
  };

  explicit emulated_streams(emulated_gpu& gpu) noexcept : gpu_(&gpu) {}

  [[nodiscard]] bool concurrent() const noexcept { return true; }
  [[nodiscard]] result<fence> record(stream s) noexcept { return fence{gpu_->record(s)}; }
  [[nodiscard]] result<bool> reached(fence& f) noexcept { return gpu_->reached(f.at); }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    gpu_->wait(s, f.at);
    return {};
  }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept {
    gpu_->synchronize(f.at);
    return {};
  }
  [[nodiscard]] result<void> synchronize_device() noexcept {
    gpu_->finish_all();
    return {};
  }
  void release(fence& /*done*/) noexcept {}

 private:
  emulated_gpu* gpu_;
};
static_assert(StreamPolicy<emulated_streams>);

class emulated_copier {
 public:
  explicit emulated_copier(emulated_gpu& gpu) noexcept : gpu_(&gpu) {}

  [[nodiscard]] stream stream_out() const noexcept { return emulated_gpu::copies_out; }
  [[nodiscard]] stream stream_in() const noexcept { return emulated_gpu::copies_in; }
  [[nodiscard]] result<void> copy_out(address /*host*/, address /*device*/, bytes n) noexcept {
    gpu_->copy_out(n);
    timed_.out.add(n, gpu_->costs().link.out.time_of(n));
    return {};
  }
  [[nodiscard]] result<void> copy_in(address /*device*/, address /*host*/, bytes n) noexcept {
    gpu_->copy_in(n);
    timed_.in.add(n, gpu_->costs().link.in.time_of(n));
    return {};
  }
  /// As a step's copies are all alike, whether they are over makes no difference.
  [[nodiscard]] swap::carried take_carried() noexcept { return std::exchange(timed_, {}); }

 private:
  emulated_gpu* gpu_;
  swap::carried timed_;
};
static_assert(swap::TimingCopier<emulated_copier>);

/// The rules of the simulated backend, without a limit of its own, in the GPU's time.
class emulated_driver {
 public:
  explicit emulated_driver(emulated_gpu& gpu) noexcept
      : gpu_(&gpu), rules_({.capacity = simulated_options::unlimited}) {}

  [[nodiscard]] bytes granularity() const noexcept { return rules_.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept { return called().create(n); }
  [[nodiscard]] result<void> release(handle h) noexcept { return called().release(h); }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept { return called().reserve(n, alignment); }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept { return called().unreserve(va, n); }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    ++mapped_;
    return rules_.map(va, n, h);
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept { return called().unmap(va, n); }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    for (; mapped_ > 0; --mapped_) gpu_->set_access();
    return rules_.set_access(va, n, a);
  }

  [[nodiscard]] std::chrono::nanoseconds now() const noexcept { return gpu_->now(); }

 private:
  [[nodiscard]] simulated& called() noexcept {
    gpu_->call_driver();
    return rules_;
  }

  emulated_gpu* gpu_;
  simulated rules_;
  int mapped_ = 0;  ///< handles since access was set last, which takes a time for each; mapping takes next to none
};
static_assert(PhysicalBackend<emulated_driver> && ClockedBackend<emulated_driver>);

}  // namespace gmlake::bench
