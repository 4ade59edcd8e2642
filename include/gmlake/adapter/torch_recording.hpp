#pragma once
/// What a device's pools do, as it happens: the events for a trace, with what the program tells of its accesses to
/// them, how full the pools were over time, and where everything was at the peak. For `gmlake.record` and
/// `gmlake.report`.
///
/// The series keeps at most so many samples, each the highest values of its events; when they are full, neighbours are
/// joined. A snapshot is taken where the peak has risen by a fiftieth since the last.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "gmlake/adapter/torch_device.hpp"
#include "gmlake/observe/event_log.hpp"
#include "gmlake/trace/recorder.hpp"
#include "gmlake/trace/time_series.hpp"
#include "gmlake/trace/writer.hpp"

namespace gmlake {

class torch_recording;

/// What an operation does with a block, and who records the block's device.
struct torch_access {
  torch_recording* on = nullptr;
  address at{};  ///< where the block begins
  bool reads = false;
  bool writes = false;
};

class torch_recording : public torch_listener {
 public:
  /// Forgets what was recorded and begins with what lives on the device now. Precondition: the device tells nobody yet.
  /// Throws `std::bad_alloc`.
  void start(torch_device& device) {
    {
      std::scoped_lock const lock(mutex_);
      log_ = event_log{};
      untimed_.clear();
      labels_.clear();
      born_.clear();
      series_ = {};
      peak_.reset();
      now_ = {};
      peak_requested_ = snapshot_requested_ = 0;
      peak_event_ = snapshot_event_ = 0;
      starting_ = true;
    }
    device.listen(torch_audience::recording, this);
    bytes reserved = 0;
    device.each_pool([&](torch_pool_id, torch_pool& p) {
      // A block born since is in the log already; one that goes away meanwhile never gets there, nor does its end.
      p.each_live([this](block const& b, stream on) {
        std::scoped_lock const lock(mutex_);
        if (!born_.contains(to_integer(b.begin))) log(b, on);
      });
      reserved += p.stats().reserved.now;
    });
    std::scoped_lock const lock(mutex_);
    now_.reserved = reserved;
    sample();
    starting_ = false;
    born_.clear();
  }

  void mark(std::string_view label) {
    std::scoped_lock const lock(mutex_);
    auto const known = std::ranges::find(labels_, label);
    log_.mark((known != labels_.end() ? *known : labels_.emplace_back(label)).c_str());
  }

  /// An operation of device work has ended: enters its accesses to what is recorded here. Its time counts as 0 until it
  /// is known. Precondition: no other operation ever had this number. Throws `std::bad_alloc`.
  void operation(std::int64_t number, std::span<torch_access const> accesses) {
    std::scoped_lock const lock(mutex_);
    for (torch_access const& a : accesses) {
      if (a.on != this) continue;
      if (a.reads) {
        log_.read(a.at);
        sample();
      }
      if (a.writes) {
        log_.written(a.at);
        sample();
      }
    }
    untimed_.emplace(number, log_.operation());
    sample();
  }
  /// How long it took; not negative. Does nothing for operations that are not in the recording, or have a time.
  void took(std::int64_t number, std::chrono::nanoseconds time) noexcept {
    std::scoped_lock const lock(mutex_);
    auto const known = untimed_.find(number);
    if (known == untimed_.end()) return;
    log_.took(known->second, time);
    untimed_.erase(known);
  }
  /// The host has a copy of the block that begins at `at`. The trace says so only if nothing writes it from here on.
  void host_copy(address at) noexcept {
    std::scoped_lock const lock(mutex_);
    log_.host_copy(at);
    sample();
  }

  /// What was recorded so far, in gmlake's trace format. Linear; throws `std::bad_alloc`.
  [[nodiscard]] std::string text() const {
    std::scoped_lock const lock(mutex_);
    return trace::write(trace::record(log_).value);
  }

  struct picture {
    trace::time_series series;
    std::optional<pool_snapshot> peak;
    bytes peak_requested = 0;
    std::size_t peak_event = 0;
    std::size_t events = 0;
    std::uint64_t allocations = 0;
    std::uint64_t steps = 0;
  };
  [[nodiscard]] picture look() const {
    std::scoped_lock const lock(mutex_);
    picture p{.series = series_,
              .peak = peak_,
              .peak_requested = peak_requested_,
              .peak_event = snapshot_event_,
              .events = log_.events().size()};
    p.series.events = p.events;
    for (logged_event const& e : log_.events()) {
      p.allocations += e.what == logged_event::kind::allocated;
      p.steps += e.what == logged_event::kind::mark && std::string_view(trace::step_label) == e.label;
    }
    return p;
  }

  // ---- listening

  void allocated(block_event const& b) noexcept override {
    std::scoped_lock const lock(mutex_);
    log_.allocated(b);
    if (starting_) note_born(b.at);
    grow(b.requested, b.size);
  }
  void deallocated(block_event const& b) noexcept override {
    std::scoped_lock const lock(mutex_);
    if (starting_ && born_.erase(to_integer(b.at)) == 0) return;
    log_.deallocated(b);
    now_.requested -= std::min(now_.requested, b.requested);
    now_.live -= std::min(now_.live, b.size);
    sample();
  }
  void created(address, bytes n) noexcept override {
    std::scoped_lock const lock(mutex_);
    now_.reserved += n;
  }
  void released(address, bytes n) noexcept override {
    std::scoped_lock const lock(mutex_);
    now_.reserved -= std::min(now_.reserved, n);
  }
  void served(torch_device& device) noexcept override {
    {
      std::scoped_lock const lock(mutex_);
      if (starting_ || now_.requested < peak_requested_ ||
          peak_requested_ <= snapshot_requested_ + snapshot_requested_ / snapshot_share) {
        return;
      }
    }
    try {
      pool_snapshot all;
      device.each_pool([&](torch_pool_id, torch_pool& p) {
        pool_snapshot one = p.snapshot();
        std::ranges::move(one.chunks, std::back_inserter(all.chunks));
        std::ranges::move(one.blocks, std::back_inserter(all.blocks));
        std::ranges::move(one.stitches, std::back_inserter(all.stitches));
      });
      std::scoped_lock const lock(mutex_);
      peak_ = std::move(all);
      snapshot_requested_ = peak_requested_;
      snapshot_event_ = peak_event_;
    } catch (std::bad_alloc const&) {
      // The map stays the last one that fitted.
    }
  }

 private:
  static constexpr std::size_t most_samples = 4000;
  static constexpr bytes snapshot_share = 50;

  void log(block const& b, stream on) {
    log_.allocated({b.begin, b.requested, b.size, on, &b});
    if (starting_) note_born(b.begin);
    grow(b.requested, b.size);
  }

  void grow(bytes requested, bytes size) noexcept {
    now_.requested += requested;
    now_.live += size;
    if (now_.requested > peak_requested_) {
      peak_requested_ = now_.requested;
      peak_event_ = log_.events().empty() ? 0 : log_.events().size() - 1;
    }
    sample();
  }

  void note_born(address at) noexcept {
    try {
      born_.insert(to_integer(at));
    } catch (std::bad_alloc const&) {
      // Then it may be logged twice, and the second time counts as a leak.
    }
  }

  void sample() noexcept {
    if (log_.events().empty()) return;
    std::size_t const event = log_.events().size() - 1;
    trace::time_series& s = series_;
    try {
      if (event / s.events_per_sample >= s.samples.size()) {
        while (event / s.events_per_sample >= most_samples) halve();
        s.samples.resize(event / s.events_per_sample + 1);
      }
    } catch (std::bad_alloc const&) {
      return;
    }
    trace::time_series::sample& highest = s.samples.back();
    highest.requested = std::max(highest.requested, now_.requested);
    highest.live = std::max(highest.live, now_.live);
    highest.reserved = std::max(highest.reserved, now_.reserved);
  }

  void halve() noexcept {
    auto& all = series_.samples;
    for (std::size_t i = 0; i < all.size(); i += 2) {
      trace::time_series::sample joined = all[i];
      if (i + 1 < all.size()) {
        joined.requested = std::max(joined.requested, all[i + 1].requested);
        joined.live = std::max(joined.live, all[i + 1].live);
        joined.reserved = std::max(joined.reserved, all[i + 1].reserved);
      }
      all[i / 2] = joined;
    }
    all.resize((all.size() + 1) / 2);
    series_.events_per_sample *= 2;
  }

  mutable std::mutex mutex_;
  event_log log_;
  std::unordered_map<std::int64_t, std::size_t> untimed_;  ///< operations' places in the log, by number
  std::deque<std::string> labels_;                         ///< where the log's marks point
  std::unordered_set<std::uintptr_t> born_;
  bool starting_ = false;
  trace::time_series series_;
  trace::time_series::sample now_;
  bytes peak_requested_ = 0;
  std::size_t peak_event_ = 0;
  std::optional<pool_snapshot> peak_;
  bytes snapshot_requested_ = 0;
  std::size_t snapshot_event_ = 0;
};

}  // namespace gmlake
