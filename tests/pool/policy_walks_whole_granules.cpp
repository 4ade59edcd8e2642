#include "tests/pool/policy_walks.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE("walks over whole granules beside other policies", Config,
                   walked<whole_granules<best_fit>, fixed_chunks, no_stitch, wait_before_growing, no_evict>,
                   walked<whole_granules<best_fit>, granule_chunks, largest_first, wait_before_stitching, lru>,
                   walked<whole_granules<best_fit>, adaptive_chunks, gmlake_limits, grow_before_waiting, lru>) {
  walk_everywhere<Config>();
}
