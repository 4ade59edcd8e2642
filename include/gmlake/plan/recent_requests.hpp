#pragma once
/// A program's last few requests, by which the place in a plan is found where it is now.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "gmlake/plan/track.hpp"

namespace gmlake::plan {

class recent_requests {
 public:
  /// So many are remembered.
  static constexpr std::uint32_t most = 16;
  /// So far ahead a program that has left something out is looked for by two requests alone.
  static constexpr std::uint32_t near = 8;

  void push(bytes size, std::uint32_t stream) noexcept {
    std::shift_left(keys_.begin(), keys_.end(), 1);
    keys_.back() = track::key(size, stream);
  }
  void clear() noexcept { keys_ = {}; }
  /// As if they had been those of `t` before request `next`, and in a plan that repeats, those of the step before.
  void follow(track const& t, std::uint32_t next) noexcept {
    std::span<track::step const> const steps = t.steps();
    std::size_t at = next;
    for (std::size_t i = most; i-- > 0;) {
      at = (at == 0 ? steps.size() : at) - 1;
      keys_[i] = track::key(steps[at].size, steps[at].stream);
    }
  }

  /// The request of `t` that the last one is, from `from` on and then from the first: by the last `track::run`. Else
  /// `track::none`.
  [[nodiscard]] std::uint32_t find_in(track const& t, std::uint32_t from) const noexcept {
    return t.find(track::hash(std::span(keys_).template last<track::run>()), from);
  }
  /// Whether the last one is request `at` of `t`, by itself.
  [[nodiscard]] bool is(track const& t, std::uint32_t at) const noexcept {
    return track::key(t.steps()[at].size, t.steps()[at].stream) == keys_[most - 1];
  }

  /// The request of `t` that the last one is, not far from `next`, which the first of the last `off` requests should
  /// have been: where as many others came in their place, or with the one before it, the nearest from `next` on. Else
  /// `track::none`.
  [[nodiscard]] std::uint32_t realigned(track const& t, std::uint32_t next, std::uint32_t off) const noexcept {
    std::span<track::step const> const steps = t.steps();
    auto const key_of = [&](std::size_t i) { return track::key(steps[i].size, steps[i].stream); };
    bool new_step = off < steps.size();
    for (std::uint32_t i = 0; new_step && i < off && i < most; ++i)
      new_step = key_of(off - 1 - i) == keys_[most - 1 - i];
    if (new_step) return track::none;  // it may be: that is not told by so few
    if (off > 1 && next + off - 1 < steps.size() && key_of(next + off - 1) == keys_[most - 1]) return next + off - 1;
    if (off < 2 || keys_[most - 1] == keys_[most - 2]) return track::none;
    for (std::size_t at = next + 1; at < std::min<std::size_t>(next + near, steps.size()); ++at) {
      if (key_of(at) == keys_[most - 1] && key_of(at - 1) == keys_[most - 2]) return static_cast<std::uint32_t>(at);
    }
    return track::none;
  }

  /// The request of `t` that the last one is, if `t`'s step has just begun: all since its first are as in the plan, and
  /// `track::run` at least. Else `track::none`.
  [[nodiscard]] std::uint32_t beginning_of(track const& t) const noexcept {
    std::uint32_t const at = find_in(t, 0);
    if (at >= most) return track::none;
    std::span<track::step const> const steps = t.steps();
    for (std::uint32_t back = 0; back <= at; ++back) {
      track::step const& s = steps[at - back];
      if (keys_[most - 1 - back] != track::key(s.size, s.stream)) return track::none;
    }
    return at;
  }

 private:
  std::array<std::uint64_t, most> keys_{};  ///< the eldest first
};

}  // namespace gmlake::plan
