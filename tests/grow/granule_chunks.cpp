#include "gmlake/grow/granule_chunks.hpp"

#include "tests/grow/growth_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(growth_policy, granule_chunks);

TEST_CASE("every growth is a range of its own, of single granules") {
  granule_chunks policy;
  CHECK(policy.separate());
  CHECK(policy.chunk_size({.deficit = 1_TiB, .granule = 2_MiB}) == 2_MiB);
  CHECK(policy.chunk_size({.deficit = 1, .granule = 64_KiB}) == 64_KiB);
  CHECK(granule_chunks(8_MiB).chunk_size({.deficit = 1, .granule = 2_MiB}) == 8_MiB);
  CHECK(granule_chunks(1_MiB).chunk_size({.deficit = 1, .granule = 2_MiB}) == 2_MiB);
}
