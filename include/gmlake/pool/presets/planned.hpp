#pragma once
/// `planned`: the lake with plans in front: steps that repeat are planned by themselves, in the background. With
/// `plan::plan_at_once` instead, replays are the same each time.

#include "gmlake/plan/plan_at_once.hpp"
#include "gmlake/plan/plan_in_background.hpp"
#include "gmlake/pool/planner.hpp"
#include "gmlake/pool/presets/lake.hpp"

namespace gmlake {

template <PhysicalBackend Backend, StreamPolicy Streams = one_stream,
          plan::PlanningPolicy Planning = plan::plan_in_background>
using planned_config = typename lake_config<Backend, Streams>::template with_planning<Planning>;

template <PhysicalBackend Backend, StreamPolicy Streams = one_stream,
          plan::PlanningPolicy Planning = plan::plan_in_background>
using planned_pool = basic_pool<planned_config<Backend, Streams, Planning>>;
static_assert(Pool<planned_pool<simulated>>);

}  // namespace gmlake
