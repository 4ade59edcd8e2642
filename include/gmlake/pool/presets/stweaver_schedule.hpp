#pragma once
/// stweaver_schedule: a plan as `stweaver` goes through it. It says which planned request one that comes stands for,
/// and which places the plan will need for how long. It must not know what is live.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gmlake/plan/plan.hpp"
#include "gmlake/pool/presets/static_region.hpp"

namespace gmlake {

class stweaver_schedule {
 public:
  stweaver_schedule() = default;
  /// O(n log n). Throws only `std::bad_alloc`.
  explicit stweaver_schedule(plan::plan p) : plan_(std::move(p)), in_order_(plan_.requests.size()) {
    std::iota(in_order_.begin(), in_order_.end(), std::uint32_t{0});
    std::ranges::stable_sort(in_order_, {}, [this](std::uint32_t i) { return plan_.requests[i].size; });
    for (std::uint32_t i = 0; i < in_order_.size(); ++i) {
      queue& q = by_size_.try_emplace(plan_.requests[in_order_[i]].size, queue{i, i, i}).first->second;
      q.end = i + 1;
    }
  }

  [[nodiscard]] bool at_end() const noexcept { return position_ >= plan_.requests.size(); }
  [[nodiscard]] plan::plan const& plan() const noexcept { return plan_; }

  void restart() noexcept {
    position_ = 0;
    for (auto& [size, q] : by_size_) q.next = q.begin;
  }

  /// Takes note of a request, and gives the planned one that it stands for: the k-th of its size for the k-th. Null:
  /// there is none. O(1).
  [[nodiscard]] plan::step_request const* pass(bytes size) noexcept {
    ++position_;
    auto const found = by_size_.find(size);
    if (found == by_size_.end() || found->second.next == found->second.end) return nullptr;
    return &plan_.requests[in_order_[found->second.next++]];
  }

  /// The planned request in the place of the one that has just passed. Null: the plan is at its end.
  [[nodiscard]] plan::step_request const* in_place() const noexcept {
    return position_ == 0 || position_ > plan_.requests.size() ? nullptr : &plan_.requests[position_ - 1];
  }

  /// Adds the places of requests born in [from, until). O(log n) and their number.
  void add_planned(plan::instant from, plan::instant until, std::vector<static_region::stretch>& to) const {
    auto r = std::ranges::lower_bound(plan_.requests, from, {}, &plan::step_request::birth);
    for (; r != plan_.requests.end() && r->birth < until; ++r) {
      if (r->offset != plan::step_request::nowhere) to.push_back({r->offset, r->offset + r->size});
    }
  }

 private:
  /// [begin, end) of `in_order_`.
  struct queue {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint32_t next;
  };

  gmlake::plan::plan plan_;
  std::vector<std::uint32_t> in_order_;  ///< of size, and of birth
  std::unordered_map<bytes, queue> by_size_;
  std::size_t position_ = 0;  ///< requests of the plan's time so far
};

}  // namespace gmlake
