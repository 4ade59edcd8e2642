/// The walks off plans over other policies than the lake's: each value of split, growth, stitching, waiting and
/// eviction beside plans.

#include "tests/pool/planned_walks.hpp"
#include "tests/pool/policy_walks.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

template <SplitPolicy Split, GrowthPolicy Growth, StitchPolicy Stitch, WaitPolicy Wait, EvictionPolicy Evict>
using planned_beside = typename walked<Split, Growth, Stitch, Wait, Evict>::template with_planning<plan_briefly>;

}  // namespace

TEST_CASE_TEMPLATE("a program may depart from its plan beside other policies", Config,
                   planned_beside<best_fit, granule_chunks, no_stitch, wait_before_stitching, no_evict>,
                   planned_beside<tlsf, fixed_chunks, gmlake_limits, grow_before_waiting, lru>,
                   planned_beside<whole_granules<best_fit>, adaptive_chunks, largest_first, wait_before_growing, lru>) {
  walk_off_plans<Config>();
}
