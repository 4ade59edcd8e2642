#pragma once
/// From what a program did to the problem of placing it, and back. `problem_of` and `place` do so for one step as the
/// step log gives it; `lifetimes` collects a whole run with its marks, and knows of each buffer in which phase it was
/// born and freed, and in which scope. It must not decide on offsets.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/plan/plan.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// A step as a problem: its buffers, and which request each one is.
struct stepwise {
  problem of;
  std::vector<std::uint32_t> requests;  ///< by buffer
};

/// What is to be placed of a step: not the requests that stay or are empty. O(n).
[[nodiscard]] inline stepwise problem_of(std::span<step_request const> step, instant period, instant stream_gap) {
  stepwise s{{.buffers = {}, .period = period, .stream_gap = stream_gap}, {}};
  for (std::size_t i = 0; i < step.size(); ++i) {
    step_request const& r = step[i];
    bool const lasts = r.death == step_request::stays || r.death <= r.birth;
    if (r.size == 0 || lasts || (period != 0 && r.death - r.birth > period)) continue;
    s.of.buffers.push_back({.lower = r.birth, .upper = r.death, .size = r.size, .stream = r.stream, .fixed = {}});
    s.requests.push_back(static_cast<std::uint32_t>(i));
  }
  return s;
}

/// Writes a solution into the plan whose requests the problem's first buffers are; all others are nowhere. O(n).
inline void place(plan& p, solution const& s, std::span<std::uint32_t const> requests) {
  for (step_request& r : p.requests) r.offset = step_request::nowhere;
  for (std::size_t i = 0; i < requests.size(); ++i) p.requests[requests[i]].offset = s.offsets[i];
  p.height = s.height;
}

/// A buffer's life in a run, in the run's own time.
struct lifetime {
  bytes size = 0;  ///< as placed
  std::uint32_t stream = 0;
  instant birth = 0;
  instant death = step_request::stays;
  std::uint32_t birth_phase = 0;  ///< phases begun until then: the last of so many in `lifetimes::phases`; 0: none yet
  std::uint32_t death_phase = 0;  ///< the same at its death; 0 for one that stays
  std::uint32_t scope = 0;        ///< at birth, likewise in `lifetimes::scopes`; 0: outside of all
};

/// From one mark to the next.
struct phase {
  std::string label;  ///< the mark's
  instant begin = 0;
  std::uint64_t first = 0;  ///< the first buffer born in it or later
};

/// A step of the run, in its own time: a plan's beginning, and where its phases begin but the first.
struct marked_step {
  std::vector<step_request> requests;
  instant period = 0;
  std::vector<instant> boundaries;
};

class lifetimes {
 public:
  /// Adds a buffer, and returns its index. O(1) amortised. Throws only `std::bad_alloc`, as all that adds.
  std::uint32_t allocated(bytes size, std::uint32_t stream) {
    all_.push_back({.size = size, .stream = stream, .birth = now_, .birth_phase = begun(), .scope = scope_});
    ++now_;
    return static_cast<std::uint32_t>(all_.size() - 1);
  }
  void freed(std::uint32_t index) noexcept {
    all_[index].death = now_++;
    all_[index].death_phase = begun();
  }

  /// "enter:<name>" and "leave:<name>" open and close a scope; any other label begins a phase, "step" a step.
  /// Leaving a scope leaves those inside too; one that isn't open is not left.
  void mark(std::string_view label) {
    if (label.starts_with(enter_)) return enter(label.substr(enter_.size()));
    if (label.starts_with(leave_)) return leave(label.substr(leave_.size()));
    if (label == step_) steps_.push_back(phases_.size());
    phases_.push_back({std::string(label), now_, all_.size()});
  }

  [[nodiscard]] std::vector<lifetime> const& all() const noexcept { return all_; }
  [[nodiscard]] std::vector<phase> const& phases() const noexcept { return phases_; }
  /// Full names: "outer/inner".
  [[nodiscard]] std::vector<std::string> const& scopes() const noexcept { return scopes_; }
  /// "step" marks so far. The last one's step may not be complete.
  [[nodiscard]] std::size_t steps() const noexcept { return steps_.size(); }
  [[nodiscard]] instant now() const noexcept { return now_; }

  /// From the k-th "step" mark to the next, or to the end. What was freed more than a period after its birth stays.
  /// O(its requests).
  [[nodiscard]] marked_step step(std::size_t k) const {
    bool const last = k + 1 == steps_.size();
    phase const& from = phases_[steps_[k]];
    instant const end = last ? now_ : phases_[steps_[k + 1]].begin;
    std::uint64_t const until = last ? all_.size() : phases_[steps_[k + 1]].first;
    marked_step s{{}, end - from.begin, {}};
    for (std::uint64_t i = from.first; i < until; ++i) {
      lifetime const& l = all_[i];
      bool const kept = l.death != step_request::stays && l.death - l.birth <= s.period;
      s.requests.push_back({l.size, l.stream, l.birth - from.begin, kept ? l.death - from.begin : step_request::stays});
    }
    for (std::size_t p = steps_[k] + 1; p < (last ? phases_.size() : steps_[k + 1]); ++p) {
      instant const at = phases_[p].begin - from.begin;
      if (at != 0 && at != s.period && (s.boundaries.empty() || s.boundaries.back() != at)) s.boundaries.push_back(at);
    }
    return s;
  }

 private:
  static constexpr std::string_view enter_ = "enter:";
  static constexpr std::string_view leave_ = "leave:";
  static constexpr std::string_view step_ = "step";

  [[nodiscard]] std::uint32_t begun() const noexcept { return static_cast<std::uint32_t>(phases_.size()); }

  void enter(std::string_view name) {
    std::string const full = scope_ == 0 ? std::string(name) : scopes_[scope_ - 1] + "/" + std::string(name);
    auto const [at, fresh] = numbers_.emplace(full, static_cast<std::uint32_t>(scopes_.size() + 1));
    if (fresh) scopes_.push_back(full);
    open_.emplace_back(name, std::exchange(scope_, at->second));
  }
  void leave(std::string_view name) {
    auto const at = std::find_if(open_.rbegin(), open_.rend(), [&](auto const& o) { return o.first == name; });
    if (at == open_.rend()) return;
    scope_ = at->second;
    open_.erase(std::prev(at.base()), open_.end());
  }

  std::vector<lifetime> all_;
  std::vector<phase> phases_;
  std::vector<std::size_t> steps_;  ///< indices of the phases that they begin with
  std::vector<std::string> scopes_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::pair<std::string, std::uint32_t>> open_;  ///< scopes, each with the one around it
  std::uint32_t scope_ = 0;
  instant now_ = 0;
};

}  // namespace gmlake::plan
