#include "tests/pool/policy_walks.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE("walks over best fit beside other policies", Config,
                   walked<best_fit, fixed_chunks, largest_first, grow_before_waiting, lru>,
                   walked<best_fit, granule_chunks, gmlake_limits, wait_before_growing, no_evict>,
                   walked<best_fit, adaptive_chunks, no_stitch, wait_before_stitching, lru>) {
  walk_everywhere<Config>();
}
