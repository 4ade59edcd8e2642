#pragma once
/// What a pool that plans can say about its plans in numbers.

#include <cstdint>

namespace gmlake {

/// What plans have done, as counts of requests and events.
struct plan_stats {
  std::uint64_t made = 0;       ///< plans
  std::uint64_t placed = 0;     ///< requests served by a plan
  std::uint64_t squeezed = 0;   ///< requests off the plan that were served from planned memory
  std::uint64_t displaced = 0;  ///< planned requests whose place was in use
  std::uint64_t astray = 0;     ///< requests that no plan foresaw, while one was followed
  std::uint64_t followed = 0;   ///< times that a plan was taken up
  std::uint64_t left = 0;       ///< times that one was given up before its time
};

}  // namespace gmlake
