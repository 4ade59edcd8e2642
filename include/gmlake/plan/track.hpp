#pragma once
/// A plan brought to addresses, in the form in which it is followed: who comes next and where it goes, in which order
/// places become free, and where in the plan a run of requests is found again. It knows what should be, nothing of what
/// is.
///
/// Built once, in O(n log n); afterwards only read.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "gmlake/core/types.hpp"
#include "gmlake/plan/plan.hpp"

namespace gmlake::plan {

/// A run of addresses that a stretch of a plan's offsets stands for.
struct segment {
  address at{};
  bytes size = 0;
  bytes offset = 0;  ///< where it begins in the plan's space
};

class track {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// So many requests in a row tell a place in the plan.
  static constexpr std::size_t run = 4;

  /// One request, as it is compared with what comes.
  struct step {
    address at{};  ///< where it goes; none: not planned
    bytes size = 0;
    std::uint32_t stream = 0;
    std::uint32_t spot = none;  ///< which of the distinct addresses
    instant birth = 0;
  };
  /// A place becomes free.
  struct end {
    instant when = 0;  ///< in the step, also for one that was born in the step before
    std::uint32_t request = 0;
  };
  /// Another stream's last use of a request's memory before it.
  struct earlier_use {
    std::uint32_t stream = 0;
    std::uint32_t end = 0;  ///< which
  };

  /// `segments` hold the plan's space in order of offsets; what lies in none of them is not planned.
  track(plan source, std::span<segment const> segments) : plan_(std::move(source)) {
    for (step_request const& r : plan_.requests) {
      steps_.push_back({place(r, segments), r.size, r.stream, none, r.birth});
    }
    number_spots();
    order_ends();
    find_earlier_uses();
    index_runs();
  }

  [[nodiscard]] plan const& source() const noexcept { return plan_; }
  [[nodiscard]] std::span<step const> steps() const noexcept { return steps_; }
  [[nodiscard]] std::span<end const> ends() const noexcept { return ends_; }
  [[nodiscard]] std::size_t spots() const noexcept { return spots_; }

  /// The spot at an address, or `none`.
  [[nodiscard]] std::uint32_t spot_at(address at) const noexcept {
    for (std::size_t i = home(at);; i = (i + 1) & mask_) {
      if (by_address_[i].at == at) return by_address_[i].spot;
      if (by_address_[i].spot == none) return none;
    }
  }

  [[nodiscard]] std::span<earlier_use const> before(std::uint32_t request) const noexcept {
    if (first_use_.empty()) return {};
    return std::span(uses_).subspan(first_use_[request], first_use_[request + 1] - first_use_[request]);
  }

  [[nodiscard]] static std::uint64_t key(bytes size, std::uint32_t stream) noexcept {
    return fingerprint(0, size, stream);
  }
  /// Of `run` keys, the oldest first.
  [[nodiscard]] static std::uint64_t hash(std::span<std::uint64_t const, run> keys) noexcept {
    std::uint64_t h = 0;
    for (std::uint64_t k : keys) h = (h + k) * 0x9e3779b97f4a7c15, h ^= h >> 29;
    return h;
  }

  /// The request with which such a run ends: the first from `from` on, else the first of all, else `none`.
  [[nodiscard]] std::uint32_t find(std::uint64_t hash_of_run, std::uint32_t from) const noexcept {
    auto const at = std::lower_bound(runs_.begin(), runs_.end(), run_end{hash_of_run, from});
    if (at != runs_.end() && at->hash == hash_of_run) return at->request;
    auto const first = std::lower_bound(runs_.begin(), runs_.end(), run_end{hash_of_run, 0});
    return first != runs_.end() && first->hash == hash_of_run ? first->request : none;
  }

 private:
  struct address_slot {
    address at{};
    std::uint32_t spot = none;
  };
  struct run_end {
    std::uint64_t hash = 0;
    std::uint32_t request = 0;
    [[nodiscard]] bool operator<(run_end const& o) const noexcept {
      return hash != o.hash ? hash < o.hash : request < o.request;
    }
  };

  [[nodiscard]] static address place(step_request const& r, std::span<segment const> segments) noexcept {
    if (r.offset == step_request::nowhere || r.death == step_request::stays) return {};
    auto const after = std::ranges::upper_bound(segments, r.offset, {}, &segment::offset);
    if (after == segments.begin()) return {};
    segment const& s = *std::prev(after);
    bytes const within = r.offset - s.offset;
    return within < s.size && r.size <= s.size - within ? s.at + within : address{};
  }

  [[nodiscard]] std::size_t home(address at) const noexcept {
    return static_cast<std::size_t>((to_integer(at) * 0x9E3779B97F4A7C15u) >> 32) & mask_;
  }

  void number_spots() {
    mask_ = std::bit_ceil(2 * steps_.size() + 2) - 1;
    by_address_.resize(mask_ + 1);
    for (step& s : steps_) {
      if (s.at == address{}) continue;
      std::size_t i = home(s.at);
      while (by_address_[i].spot != none && by_address_[i].at != s.at) i = (i + 1) & mask_;
      if (by_address_[i].spot == none) by_address_[i] = {s.at, static_cast<std::uint32_t>(spots_++)};
      s.spot = by_address_[i].spot;
    }
  }

  void order_ends() {
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].at == address{}) continue;
      instant const death = plan_.requests[i].death;
      ends_.push_back({plan_.repeats && death >= plan_.period ? death - plan_.period : death, i});
    }
    std::ranges::sort(ends_, {}, &end::when);
  }

  /// Runs through the step twice, the first time to know what the step before leaves, and keeps for each stream which
  /// end came last where.
  void find_earlier_uses() {
    bool const one_stream = std::ranges::all_of(steps_, [&](step const& s) { return s.stream == steps_[0].stream; });
    if (one_stream) return;
    std::map<std::uint32_t, std::map<bytes, std::uint32_t>> last;  // by stream: from each offset on, the last end + 1
    for (step const& s : steps_) last.try_emplace(s.stream, std::map<bytes, std::uint32_t>{{0, 0}});
    for (int lap = 0; lap < 2; ++lap) {
      uses_.clear();
      first_use_.assign(1, 0);
      std::uint32_t e = 0;
      for (std::uint32_t i = 0; i < steps_.size(); ++i) {
        while (e < ends_.size() && ends_[e].when <= steps_[i].birth) note_end(last, e++);
        if (steps_[i].at != address{}) note_uses(last, i);
        first_use_.push_back(uses_.size());
      }
      while (e < ends_.size()) note_end(last, e++);
    }
  }
  using last_ends = std::map<std::uint32_t, std::map<bytes, std::uint32_t>>;

  void note_end(last_ends& last, std::uint32_t e) {
    step_request const& r = plan_.requests[ends_[e].request];
    std::map<bytes, std::uint32_t>& over = last.at(r.stream);
    bytes const high = r.offset + r.size;
    std::uint32_t const beyond = std::prev(over.upper_bound(high))->second;
    over.insert_or_assign(high, beyond);
    over.erase(over.lower_bound(r.offset), over.find(high));
    over.emplace(r.offset, e + 1);
  }
  void note_uses(last_ends const& last, std::uint32_t i) {
    step_request const& r = plan_.requests[i];
    for (auto const& [stream, over] : last) {
      if (stream == r.stream) continue;
      std::uint32_t latest = 0;
      for (auto at = std::prev(over.upper_bound(r.offset)); at != over.end() && at->first < r.offset + r.size; ++at) {
        latest = later(latest, at->second, r.birth);
      }
      if (latest != 0) uses_.push_back({stream, latest - 1});
    }
  }
  /// Of two ends (+ 1; 0: none), the one that comes last before `now`, going back into the step before.
  [[nodiscard]] std::uint32_t later(std::uint32_t a, std::uint32_t b, instant now) const noexcept {
    if (a == 0 || b == 0) return std::max(a, b);
    bool const a_now = ends_[a - 1].when <= now;
    bool const b_now = ends_[b - 1].when <= now;
    if (a_now != b_now) return a_now ? a : b;
    return std::max(a, b);
  }

  void index_runs() {
    if (steps_.size() < run) return;
    std::uint64_t keys[run] = {};
    auto const shift = [&](std::size_t i) {
      std::shift_left(keys, keys + run, 1);
      keys[run - 1] = key(steps_[i].size, steps_[i].stream);
    };
    std::size_t const before = plan_.repeats ? run - 1 : 0;
    for (std::size_t i = steps_.size() - before; i < steps_.size(); ++i) shift(i);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      shift(i);
      if (i + before + 1 >= run) runs_.push_back({hash(keys), static_cast<std::uint32_t>(i)});
    }
    std::sort(runs_.begin(), runs_.end());
  }

  plan plan_;
  std::vector<step> steps_;
  std::vector<end> ends_;
  std::vector<address_slot> by_address_;
  std::size_t mask_ = 0;
  std::size_t spots_ = 0;
  std::vector<earlier_use> uses_;
  std::vector<std::size_t> first_use_;  ///< into `uses_`, one more than steps; empty: one stream
  std::vector<run_end> runs_;
};

}  // namespace gmlake::plan
