#include "gmlake/grow/fixed_chunks.hpp"

#include "tests/grow/growth_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(growth_policy, fixed_chunks);

TEST_CASE("fixed chunks are of one size, 32 MiB unless another is chosen") {
  growth const little{.deficit = 1, .granule = 2_MiB};
  growth const much{.deficit = 1_TiB, .reserved = 1_TiB, .headroom = 0, .freed = 1_TiB, .granule = 2_MiB};
  CHECK(fixed_chunks{}.chunk_size(little) == 32_MiB);
  CHECK(fixed_chunks{}.chunk_size(much) == 32_MiB);
  CHECK(fixed_chunks{8_MiB}.chunk_size(little) == 8_MiB);
  CHECK(fixed_chunks{8_MiB}.chunk_size(much) == 8_MiB);
  CHECK_FALSE(fixed_chunks{}.separate());
}
