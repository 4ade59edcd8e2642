#pragma once
/// Collects the lifetimes of a live pool's blocks, with the phases and scopes that its user marks: from there a plan
/// can be made ahead of the next run. Blocks handed out before it began are left out.
///
///     pool.observe([](auto& o) { o.second().mark("enter:layer.0"); });
///
/// When host memory runs out it stops, and says so.

#include <cstdint>
#include <new>
#include <string_view>
#include <unordered_map>

#include "gmlake/observe/no_observer.hpp"
#include "gmlake/plan/lifetimes.hpp"

namespace gmlake {

class lifetime_log : public no_observer {
 public:
  void allocated(block_event const& b) noexcept {
    attempt([&] {
      std::uint32_t const on = streams_.emplace(b.on, static_cast<std::uint32_t>(streams_.size())).first->second;
      live_.insert_or_assign(b.at, lives_.allocated(b.size, on));
    });
  }
  void deallocated(block_event const& b) noexcept {
    auto const born = live_.find(b.at);
    if (stopped_ || born == live_.end()) return;
    lives_.freed(born->second);
    live_.erase(born);
  }
  /// As plan::lifetimes::mark.
  void mark(std::string_view label) noexcept {
    attempt([&] { lives_.mark(label); });
  }

  /// Streams are numbered by their first mention.
  [[nodiscard]] plan::lifetimes const& lifetimes() const noexcept { return lives_; }
  /// Whether events were lost at the end.
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  void clear() noexcept { *this = lifetime_log{}; }

 private:
  template <class Action>
  void attempt(Action&& action) noexcept {
    if (stopped_) return;
    try {
      action();
    } catch (std::bad_alloc const&) {
      stopped_ = true;
    }
  }

  plan::lifetimes lives_;
  std::unordered_map<address, std::uint32_t> live_;
  std::unordered_map<stream, std::uint32_t> streams_;
  bool stopped_ = false;
};
static_assert(Observer<lifetime_log>);

}  // namespace gmlake
