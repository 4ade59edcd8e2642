/// Walks over the presets; `policy_walks.hpp` has those over other combinations.

#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE("walks over the default lake") { walk_everywhere<lake_config<borrowed_device, simulated_streams>>(); }

TEST_CASE("walks over the default lake where all work runs in host order") {
  walk_everywhere<lake_config<borrowed_device>>();
}

TEST_CASE("walks over GMLake's algorithm") { walk_everywhere<gmlake_config<borrowed_device, simulated_streams>>(); }
