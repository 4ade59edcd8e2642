#pragma once
/// Which planner a pool has: the one of "gmlake/pool/planner.hpp", which such pools' users include, or none, at no
/// cost.

#include <type_traits>

#include "gmlake/pool/pool_config.hpp"

namespace gmlake {

template <PoolConfig Config>
class planner;

/// For pools that don't plan.
struct no_planner {
  template <class... Ignored>
  explicit no_planner(Ignored&&...) noexcept {}
};

template <PoolConfig Config>
using planner_of = std::conditional_t<Config::planning::enabled, planner<Config>, no_planner>;

}  // namespace gmlake
