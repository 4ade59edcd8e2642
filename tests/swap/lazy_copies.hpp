#pragma once
/// Copies that take their time: they are queued, and done one by one, in order on each stream, when a test says so,
/// when somebody asks whether one is done, or waits for it. So a pool that takes memory away too early, or lets a
/// consumer go ahead of its data, corrupts what a test checks. A copier and a stream policy that share their queues;
/// copies and fences can be made to fail.

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "gmlake/stream/stream_policy.hpp"
#include "gmlake/swap/carried.hpp"
#include "gmlake/swap/channel.hpp"

namespace gmlake::test {

class copy_queues {
 public:
  static constexpr stream out{101};
  static constexpr stream in{102};

  struct copy {
    address to{}, from{};
    bytes size = 0;
  };

  /// Whether the next call of a kind fails; null: never.
  std::function<bool()> copy_fails, record_fails, reached_fails, wait_fails;
  /// How many copies of a stream are done when somebody asks for a fence on it; null: none.
  std::function<std::size_t()> at_a_look;
  /// Whether a stream that waits for a copy has it done there and then; if not, nobody may look at what it copies.
  bool done_when_awaited = true;
  /// What copies are said to be timed at; 0: none is timed.
  std::uint64_t bytes_per_second = 0;

  [[nodiscard]] bool queue(stream on, copy const& c) {
    if (copy_fails && copy_fails()) return false;
    pending(on).push_back(c);
    ++queued(on);
    return true;
  }
  [[nodiscard]] std::uint64_t& queued(stream on) { return queued_[slot(on)]; }
  [[nodiscard]] std::uint64_t done(stream on) { return queued(on) - pending(on).size(); }
  [[nodiscard]] std::deque<copy>& pending(stream on) { return pending_[slot(on)]; }

  /// Does the next `n` copies of a stream.
  void work(stream on, std::size_t n) {
    auto& all = pending(on);
    for (; n > 0 && !all.empty(); --n) {
      std::memcpy(to_pointer(all.front().to), to_pointer(all.front().from), all.front().size);
      all.pop_front();
    }
  }
  void work_until(stream on, std::uint64_t count) {
    if (done(on) < count) work(on, count - done(on));
  }

 private:
  [[nodiscard]] static std::size_t slot(stream on) { return on == out ? 0 : on == in ? 1 : 2; }

  std::array<std::deque<copy>, 3> pending_;
  std::array<std::uint64_t, 3> queued_{};
};

class lazy_copier {
 public:
  explicit lazy_copier(std::shared_ptr<copy_queues> queues) noexcept : queues_(std::move(queues)) {}

  [[nodiscard]] stream stream_out() const noexcept { return copy_queues::out; }
  [[nodiscard]] stream stream_in() const noexcept { return copy_queues::in; }
  [[nodiscard]] result<void> copy_out(address host, address device, bytes n) noexcept {
    return queue(copy_queues::out, {host, device, n}, timed_.out);
  }
  [[nodiscard]] result<void> copy_in(address device, address host, bytes n) noexcept {
    return queue(copy_queues::in, {device, host, n}, timed_.in);
  }
  [[nodiscard]] swap::carried take_carried() noexcept { return std::exchange(timed_, {}); }

 private:
  [[nodiscard]] result<void> queue(stream on, copy_queues::copy const& c, swap::lane_load& timed) noexcept {
    if (!queues_->queue(on, c)) return failure(errc::driver_failure, "copy: injected");
    if (std::uint64_t const rate = queues_->bytes_per_second; rate > 0) {
      timed.add(c.size, swap::lane{.bytes_per_second = rate}.time_of(c.size));
    }
    return {};
  }

  std::shared_ptr<copy_queues> queues_;
  swap::carried timed_;
};
static_assert(swap::TimingCopier<lazy_copier>);

/// The tests' own work runs in host order: only copies are ever pending.
class lazy_streams {
 public:
  struct fence {
    stream on{};
    std::uint64_t count = 0;
  };

  explicit lazy_streams(std::shared_ptr<copy_queues> queues) noexcept : queues_(std::move(queues)) {}

  [[nodiscard]] bool concurrent() const noexcept { return true; }
  [[nodiscard]] result<fence> record(stream s) noexcept {
    if (queues_->record_fails && queues_->record_fails()) return failure(errc::driver_failure, "record: injected");
    return fence{s, queues_->queued(s)};
  }
  [[nodiscard]] result<bool> reached(fence& f) noexcept {
    if (queues_->reached_fails && queues_->reached_fails()) return failure(errc::driver_failure, "reached: injected");
    if (queues_->at_a_look) queues_->work(f.on, queues_->at_a_look());
    return queues_->done(f.on) >= f.count;
  }
  [[nodiscard]] result<void> wait(stream, fence& f) noexcept {
    if (queues_->wait_fails && queues_->wait_fails()) return failure(errc::driver_failure, "wait: injected");
    if (queues_->done_when_awaited) queues_->work_until(f.on, f.count);
    return {};
  }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept {
    if (queues_->wait_fails && queues_->wait_fails()) return failure(errc::driver_failure, "synchronize: injected");
    queues_->work_until(f.on, f.count);
    return {};
  }
  [[nodiscard]] result<void> synchronize_device() noexcept {
    for (stream s : {copy_queues::out, copy_queues::in}) queues_->work_until(s, queues_->queued(s));
    return {};
  }
  void release(fence&) noexcept {}

 private:
  std::shared_ptr<copy_queues> queues_;
};
static_assert(StreamPolicy<lazy_streams>);

}  // namespace gmlake::test
