/// Random departures from regular steps, and that the plan is found again once they are over.

#include "tests/pool/planned_walks.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using planned_here = planned_config<borrowed_device, simulated_streams, plan_briefly>;
using planned_in_order = planned_config<borrowed_device, one_stream, plan_briefly>;
using planned_later = planned_config<borrowed_device, simulated_streams, plan_on_demand>;

}  // namespace

TEST_CASE("a program may depart from its plan in any way") { walk_off_plans<planned_here>(); }

TEST_CASE("the same where all work runs in host order") { walk_off_plans<planned_in_order>(); }

TEST_CASE("the same where plans take their time") { walk_off_plans<planned_later>(); }
