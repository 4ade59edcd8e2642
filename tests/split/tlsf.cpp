#include "gmlake/split/tlsf.hpp"

#include "tests/split/split_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
bytes gmlake::test::surely_served<tlsf>(bytes n) {
  return size_classes::least(size_classes::all_fit(n));
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(split_policy, tlsf);
}

TEST_CASE("of one class, the block freed last serves first") {
  shelf_model<tlsf> m(3);
  m.insert(1_MiB);
  block& second = m.insert(1_MiB + 512);
  CHECK(m.shelf.find(1_MiB) == &second);
  block& third = m.insert(1_MiB);
  CHECK(m.shelf.find(1_MiB) == &third);
  m.erase(third);
  CHECK(m.shelf.find(1_MiB) == &second);
}

TEST_CASE("at most a sixteenth of a block can be overlooked") {
  for (bytes n = 16 * block_alignment; n < 64_GiB; n += n / 3 / block_alignment * block_alignment + block_alignment) {
    CAPTURE(n);
    bytes const sure = surely_served<tlsf>(n);
    CHECK(sure >= n);
    CHECK(sure - n < n / 16 + block_alignment);
  }
}

TEST_CASE("where no class surely fits, the head of the request's own is tried") {
  shelf_model<tlsf> m(2);
  bytes const least = 1_MiB;
  block& large = m.insert(least + 2 * block_alignment);
  CHECK(m.shelf.find(least + block_alignment) == &large);
  CHECK(m.shelf.find(least + 3 * block_alignment) == nullptr);
  m.insert(least);  // now it hides the large one
  CHECK(m.shelf.find(least + block_alignment) == nullptr);
}
