#include "gmlake/backend/cost_model.hpp"

#include <doctest/doctest.h>

using namespace gmlake;

TEST_CASE("a rate grows with the handle's size") {
  cost_model::rate const r{cost_model::time{100}, cost_model::time{3}};
  CHECK(r.of(0).count() == doctest::Approx(100));
  CHECK(r.of(10_MiB).count() == doctest::Approx(130));
  CHECK(r.of(512_KiB).count() == doctest::Approx(101.5));
}

TEST_CASE("a scaled cost model scales every cost") {
  cost_model const once = costs::h200;
  cost_model const twice = once * 2;
  CHECK(twice.create.of(8_MiB) == 2 * once.create.of(8_MiB));
  CHECK(twice.map.of(8_MiB) == 2 * once.map.of(8_MiB));
  CHECK(twice.set_access.of(8_MiB) == 2 * once.set_access.of(8_MiB));
  CHECK(twice.set_access_again == 2 * once.set_access_again);
  CHECK(twice.unmap.of(8_MiB) == 2 * once.unmap.of(8_MiB));
  CHECK(twice.release.of(8_MiB) == 2 * once.release.of(8_MiB));
  CHECK(twice.reserve == 2 * once.reserve);
  CHECK(twice.unreserve == 2 * once.unreserve);
}

TEST_CASE("on an H200, stitching costs by the handle: 2 GiB of 2 MiB handles take fifteen times what 32 MiB ones do") {
  auto const stitch = [](bytes chunk) {
    auto const n = static_cast<double>(2_GiB / chunk);
    return n * (costs::h200.map.of(chunk) + costs::h200.set_access.of(chunk) + costs::h200.unmap.of(chunk));
  };
  CHECK(stitch(2_MiB) / stitch(32_MiB) > 15);
  CHECK(stitch(2_MiB) / stitch(32_MiB) < 16);
}
