#include "tests/pool/policy_walks.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE("walks over TLSF beside other policies", Config,
                   walked<tlsf, fixed_chunks, gmlake_limits, wait_before_stitching, lru>,
                   walked<tlsf, granule_chunks, no_stitch, grow_before_waiting, lru>,
                   walked<tlsf, adaptive_chunks, largest_first, wait_before_growing, no_evict>) {
  walk_everywhere<Config>();
}
