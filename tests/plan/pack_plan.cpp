#include "gmlake/plan/pack_plan.hpp"

#include <doctest/doctest.h>

#include "gmlake/plan/plan_rules.hpp"

using namespace gmlake;
using namespace gmlake::plan;

namespace {

/// n buffers of `size` that live all together, then as many again.
[[nodiscard]] gmlake::plan::plan two_crowds(std::size_t n, bytes size, std::uint32_t second_stream = 0) {
  gmlake::plan::plan p;
  for (std::size_t crowd = 0; crowd < 2; ++crowd) {
    for (std::size_t i = 0; i < n; ++i) {
      instant const birth = crowd * 2 * n + i;
      p.requests.push_back({size, crowd == 0 ? 0 : second_stream, birth, birth + n});
    }
  }
  p.period = 4 * n;
  return p;
}

}  // namespace

TEST_SUITE("pack_plan") {
  TEST_CASE("a packed plan keeps the rules, at its bound where that is easy") {
    gmlake::plan::plan const p = packed_plan(two_crowds(10, 1_MiB));
    CHECK(find_fault(p) == nullptr);
    CHECK(p.bound == 10_MiB);
    CHECK(p.height == 10_MiB);
  }

  TEST_CASE("requests that stay have no place") {
    gmlake::plan::plan p = two_crowds(4, 1_MiB);
    p.requests[2].death = step_request::stays;
    p = packed_plan(std::move(p));
    CHECK(p.requests[2].offset == step_request::nowhere);
    CHECK(p.bound == 4_MiB);
    CHECK(find_fault(p) == nullptr);
  }

  TEST_CASE("two streams share bytes where keeping them apart would cost height") {
    gmlake::plan::plan const p = packed_plan(two_crowds(10, 1_MiB, 1));
    CHECK(p.height == 10_MiB);
    CHECK(find_fault(p) == nullptr);
  }

  TEST_CASE("what is higher than the first segment goes into all of them and across no end") {
    std::vector<segment> const segments = {
        {address{4096}, 6_MiB, 0}, {address{64_MiB}, 3_MiB, 6_MiB + 512}, {address{128_MiB}, 1_MiB, 9_MiB + 1024}};
    gmlake::plan::plan const p = packed_plan(two_crowds(10, 1_MiB), segments);
    CHECK(find_fault(p) == nullptr);
    for (step_request const& r : p.requests) {
      bool inside = false;
      for (segment const& s : segments)
        inside = inside || (r.offset >= s.offset && r.offset + r.size <= s.offset + s.size);
      CHECK(inside);
    }
  }

  TEST_CASE("what finds no room in the segments lies beyond them") {
    std::vector<segment> const segments = {{address{4096}, 6_MiB, 0}, {address{64_MiB}, 1_MiB, 6_MiB + 512}};
    gmlake::plan::plan const p = packed_plan(two_crowds(10, 1_MiB), segments);
    std::size_t beyond = 0;
    for (step_request const& r : p.requests) beyond += r.offset >= 7_MiB + 512 ? 1 : 0;
    CHECK(beyond == 6);
    CHECK(p.height > 7_MiB + 512);
  }

  TEST_CASE("an empty plan is no problem") {
    gmlake::plan::plan const p = packed_plan({});
    CHECK(p.height == 0);
    CHECK(p.requests.empty());
  }
}
