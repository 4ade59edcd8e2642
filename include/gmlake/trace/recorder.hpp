#pragma once
/// Turns what a pool's `event_log` saw into a trace, so that any program that embeds a pool can be replayed:
///
///     basic_pool<lake_config<Backend>::with_observer<both<counters, event_log>>> pool(...);
///     ...
///     std::string const text = pool.observe([](auto& o) { return trace::write(trace::record(o.second()).value); });
///
/// The trace keeps the readers' invariant (see parse_result.hpp): what the log holds in halves is left out and counted,
/// and a host's copy of what is written later on is none.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gmlake/observe/event_log.hpp"
#include "gmlake/trace/event.hpp"
#include "gmlake/trace/parse_result.hpp"

namespace gmlake::trace {

struct recording {
  trace value;
  std::uint64_t unborn = 0;  ///< frees of blocks handed out before the log began; left out
  std::uint64_t strays = 0;  ///< accesses and copies of what is no block's beginning; left out
  std::uint64_t broken = 0;  ///< copies that the host was said to have of what was written later; left out
  bool cut = false;          ///< the log stopped before the end, or held more than a trace can: the rest is missing
};

/// Numbers allocations and streams from 0, in order of their first mention. Labels become printable.
class recorder {
 public:
  void take(logged_event const& e) {
    switch (e.what) {
      case logged_event::kind::allocated: return allocate(e);
      case logged_event::kind::deallocated: return deallocate(e);
      case logged_event::kind::mark: return append({.id = label(e.label), .kind = event_kind::mark});
      case logged_event::kind::read: return use(e, event_kind::read);
      case logged_event::kind::written: return use(e, event_kind::write);
      case logged_event::kind::host_copy: return use(e, event_kind::host_copy);
      case logged_event::kind::operation: return operation(e);
    }
  }

  /// The recorder is empty afterwards.
  [[nodiscard]] recording finish() {
    leave_out_broken();
    recording done = std::move(done_);
    *this = recorder{};
    return done;
  }

 private:
  struct birth {
    std::uint32_t id;
    bytes size;
  };

  void append(event const& e) {
    if (!done_.cut) done_.value.events.push_back(e);
  }

  void allocate(logged_event const& e) {
    trace& t = done_.value;
    done_.cut =
        done_.cut || t.allocations == std::numeric_limits<std::uint32_t>::max() || e.requested > max_size - requested_;
    if (done_.cut) return;
    requested_ += e.requested;
    live_.insert_or_assign(to_integer(e.at), birth{t.allocations, e.requested});
    append({.size = e.requested, .id = t.allocations++, .stream = number(e.on)});
  }

  void deallocate(logged_event const& e) {
    auto const born = live_.find(to_integer(e.at));
    if (born == live_.end()) {
      done_.unborn += done_.cut ? 0 : 1;
      return;
    }
    requested_ -= born->second.size;
    append({.id = born->second.id, .kind = event_kind::deallocate});
    live_.erase(born);
  }

  void use(logged_event const& e, event_kind what) {
    if (done_.cut) return;
    auto const born = live_.find(to_integer(e.at));
    if (born == live_.end()) {
      ++done_.strays;
      return;
    }
    std::uint32_t const id = born->second.id;
    if (what == event_kind::host_copy && !copies_.emplace(id, done_.value.events.size()).second) return;
    if (what == event_kind::write) {
      if (auto const copy = copies_.find(id); copy != copies_.end()) {
        broken_.push_back(copy->second);
        copies_.erase(copy);
      }
    }
    append({.id = id, .kind = what});
  }

  void operation(logged_event const& e) {
    done_.cut = done_.cut || e.requested > max_time - time_;
    if (done_.cut) return;
    time_ += e.requested;
    append({.size = e.requested, .kind = event_kind::operation});
  }

  void leave_out_broken() {
    done_.broken = broken_.size();
    if (broken_.empty()) return;
    std::ranges::sort(broken_, std::greater{});
    std::size_t index = 0;
    std::erase_if(done_.value.events, [&](event const&) {
      bool const gone = !broken_.empty() && broken_.back() == index;
      ++index;
      if (gone) broken_.pop_back();
      return gone;
    });
  }

  std::uint32_t number(stream s) {
    return streams_.emplace(to_integer(s), static_cast<std::uint32_t>(streams_.size())).first->second;
  }

  std::uint32_t label(char const* name) {
    std::string printable(std::string_view(name != nullptr && *name != '\0' ? name : "mark").substr(0, longest_label));
    for (char& c : printable) {
      if (c < 0x20 || c >= 0x7f) c = '?';
    }
    auto const [found, fresh] = labels_.emplace(printable, static_cast<std::uint32_t>(labels_.size()));
    if (fresh) done_.value.labels.push_back(printable);
    return found->second;
  }

  static constexpr std::size_t longest_label = max_line_length - 2;  ///< behind "m,"

  recording done_;
  std::unordered_map<std::uintptr_t, birth> live_;         ///< by address
  bytes requested_ = 0;                                    ///< of all that live
  std::uint64_t time_ = 0;                                 ///< of all operations
  std::unordered_map<std::uint32_t, std::size_t> copies_;  ///< the host's, by id: the index of the event
  std::vector<std::size_t> broken_;                        ///< events to be left out
  std::unordered_map<std::uintptr_t, std::uint32_t> streams_;
  std::map<std::string, std::uint32_t> labels_;
};

/// Linear in the events. Throws only for want of host memory.
[[nodiscard]] inline recording record(event_log const& log) {
  recorder r;
  for (logged_event const& e : log.events()) r.take(e);
  recording done = r.finish();
  done.cut = done.cut || log.stopped();
  return done;
}

}  // namespace gmlake::trace
