#pragma once
/// Remembers what was handed out and taken back, in order, with marks between, and what a program tells of its
/// accesses: what `trace::record` turns into a trace. When host memory runs out or the log is full it stops, and says
/// so.

#include <chrono>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/observe/no_observer.hpp"

namespace gmlake {

struct event_log_options {
  std::size_t most = std::numeric_limits<std::size_t>::max();  ///< events, 48 bytes each
};

struct logged_event {
  enum class kind : std::uint8_t { allocated, deallocated, mark, read, written, operation, host_copy };

  address at{};
  bytes requested = 0;  ///< of an operation: the nanoseconds that it took
  bytes size = 0;
  stream on{};
  char const* label = nullptr;  ///< of a mark
  kind what = kind::allocated;
};

class event_log : public no_observer {
 public:
  explicit event_log(event_log_options o = {}) noexcept : options_(o) {}

  void allocated(block_event const& b) noexcept {
    append({b.at, b.requested, b.size, b.on, nullptr, logged_event::kind::allocated});
  }
  void deallocated(block_event const& b) noexcept {
    append({b.at, b.requested, b.size, b.on, nullptr, logged_event::kind::deallocated});
  }
  /// Marks a place in the log, such as "step". `label` is a string literal, or outlives the log.
  void mark(char const* label) noexcept { append({{}, 0, 0, {}, label, logged_event::kind::mark}); }

  /// The operation of device work under way reads the block that begins at `at`, or writes it.
  void read(address at) noexcept { append({at, 0, 0, {}, nullptr, logged_event::kind::read}); }
  void written(address at) noexcept { append({at, 0, 0, {}, nullptr, logged_event::kind::written}); }
  /// The host has a copy of the block that begins at `at`, which nobody writes from here on.
  void host_copy(address at) noexcept { append({at, 0, 0, {}, nullptr, logged_event::kind::host_copy}); }
  /// The operation ends that has the accesses since the last one. Returns its place among the events, where it may be
  /// given its time once that is known; what the log has not taken has none.
  std::size_t operation() noexcept {
    append({{}, 0, 0, {}, nullptr, logged_event::kind::operation});
    return stopped_ ? nowhere : events_.size() - 1;
  }
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  /// Precondition: `place` is what `operation` has returned since the log was empty; `time` is not negative.
  void took(std::size_t place, std::chrono::nanoseconds time) noexcept {
    if (place != nowhere) events_[place].requested = static_cast<bytes>(time.count());
  }

  [[nodiscard]] std::vector<logged_event> const& events() const noexcept { return events_; }
  /// Whether events were lost at the end.
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  void clear() noexcept {
    events_.clear();
    stopped_ = false;
  }

 private:
  void append(logged_event const& e) noexcept {
    if (stopped_ || (stopped_ = events_.size() >= options_.most)) return;
    try {
      events_.push_back(e);
    } catch (std::bad_alloc const&) {
      stopped_ = true;
    }
  }

  event_log_options options_;
  std::vector<logged_event> events_;
  bool stopped_ = false;
};
static_assert(Observer<event_log>);

}  // namespace gmlake
