#include "gmlake/evict/lru.hpp"

#include <list>

#include "tests/evict/eviction_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(eviction_policy, lru);

TEST_CASE("the stitch that has been idle longest goes first") {
  idle_model<lru> m(lru{{.stitches = 10}}, 30);
  std::list<stitch*> model;
  walk_idle(m, 3000, [&](std::size_t i) {
    model.remove(&m[i]);
    if (m.rests(i)) model.push_back(&m[i]);
    REQUIRE(m.policy.next() == (model.empty() ? nullptr : model.front()));
    REQUIRE(m.policy.victim(m.held) == (model.size() > 10 ? model.front() : nullptr));
  });
}

TEST_CASE("each budget is kept by itself") {
  for (lru_options const& budget :
       {lru_options{.stitches = 3}, lru_options{.mappings = 30}, lru_options{.addresses = 6_MiB}}) {
    CAPTURE(budget.stitches);
    CAPTURE(budget.mappings);
    idle_model<lru> m(lru{budget}, 4);
    stitch& oldest = m.rest(0, 10, 2_MiB);
    m.rest(1, 10, 2_MiB);
    m.rest(2, 10, 2_MiB);
    CHECK(m.policy.victim(m.held) == nullptr);
    m.rest(3, 1, 512);
    CHECK(m.policy.victim(m.held) == &oldest);
    m.wake(oldest);
    CHECK(m.policy.victim(m.held) == nullptr);
  }
}

TEST_CASE("with a budget of nothing, every stitch goes at once") {
  idle_model<lru> m(lru{{.stitches = 0}}, 1);
  stitch& s = m.rest(0);
  CHECK(m.policy.victim(m.held) == &s);
}
