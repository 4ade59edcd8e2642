#include "gmlake/backend/simulated.hpp"

#include "tests/backend/checked_backend_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;
using namespace std::chrono_literals;

template <>
std::optional<simulated> gmlake::test::make_backend() {
  return simulated{};
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(physical_backend, simulated);
TEST_CASE_TEMPLATE_INVOKE(checked_backend, simulated);
TEST_CASE_TEMPLATE_INVOKE(bounded_backend, simulated);
}  // namespace gmlake::test

TEST_CASE("the simulated clock charges set access and unmap for every handle, whatever the number of calls") {
  cost_model const costs = costs::h200;
  auto const cost_of = [&](bool one_call) {
    simulated b;
    mapped_range r(b, 64_MiB, {32_MiB, 32_MiB});
    must(b.set_access(r.at, 64_MiB, access::none));
    auto const begin = b.now();
    if (one_call) {
      must(b.set_access(r.at, 64_MiB, access::read));
      must(b.unmap(r.at, 64_MiB));
    } else {
      for (address half : {r.at, r.at + 32_MiB}) {
        must(b.set_access(half, 32_MiB, access::read));
        must(b.unmap(half, 32_MiB));
      }
    }
    return b.now() - begin;
  };
  auto const expected = 2 * (costs.set_access.of(32_MiB) + costs.unmap.of(32_MiB));
  CHECK(cost_of(true).count() == doctest::Approx(expected.count()));
  CHECK(cost_of(false).count() == doctest::Approx(expected.count()));
}

TEST_CASE("setting access that is set already costs a call and no handle") {
  simulated b;
  mapped_range r(b, 8_MiB, {2_MiB, 2_MiB, 2_MiB, 2_MiB});
  auto const begin = b.now();
  must(b.set_access(r.at, 8_MiB, access::read_write));
  CHECK(b.now() - begin == 1800ns);
}

TEST_CASE("the simulated clock charges what each call costs") {
  simulated b;
  auto const lasts = [&](auto call) {
    auto const begin = b.now();
    call();
    return b.now() - begin;
  };
  address va{};
  handle h{};
  CHECK(lasts([&] { va = must(b.reserve(32_MiB, 0)); }) == 1500ns);
  CHECK(lasts([&] { h = must(b.create(32_MiB)); }) == 7640ns);
  CHECK(lasts([&] { must(b.map(va, 32_MiB, h)); }) == 450ns);
  CHECK(lasts([&] { must(b.set_access(va, 32_MiB, access::read_write)); }) == 19620ns);
  CHECK(lasts([&] { CHECK_FALSE(b.release(h).has_value()); }) == 0ns);
  CHECK(lasts([&] { must(b.unmap(va, 32_MiB)); }) == 12816ns);
  CHECK(lasts([&] { must(b.release(h)); }) == 15680ns);
  CHECK(lasts([&] { must(b.unreserve(va, 32_MiB)); }) == 1500ns);
}

TEST_CASE("a simulated device has the options' granularity, costs and base") {
  simulated b({.granularity = 64_KiB, .costs = costs::zero, .base = static_cast<address>(1_TiB)});
  CHECK(b.granularity() == 64_KiB);
  CHECK(must(b.reserve(64_KiB, 0)) == static_cast<address>(1_TiB));
  must(b.release(must(b.create(64_KiB))));
  CHECK(b.now() == 0ns);
}

TEST_CASE("a simulated device of unlimited capacity creates any size") {
  simulated b({.capacity = simulated_options::unlimited});
  handle const h = must(b.create(align_down(simulated_options::unlimited, 2_MiB)));
  fails_with(b.create(2_MiB), errc::out_of_memory);
  must(b.release(h));
}

TEST_CASE("simulated addresses run out, and come back with what is given back") {
  simulated b({.addresses = 8_MiB});
  address const first = must(b.reserve(6_MiB, 0));
  fails_with(b.reserve(4_MiB, 0), errc::out_of_addresses);
  must(b.unreserve(first, 6_MiB));
  address const second = must(b.reserve(8_MiB, 0));
  CHECK(second > first);  // never handed out twice
}

TEST_CASE("simulated addresses never wrap around") {
  simulated b({.addresses = simulated_options::unlimited, .base = static_cast<address>(~bytes{0} - 16_MiB + 1)});
  fails_with(b.reserve(32_MiB, 0), errc::out_of_addresses);
  fails_with(b.reserve(2_MiB, bytes{1} << 63), errc::out_of_addresses);
  address const last = must(b.reserve(12_MiB, 0));
  CHECK(to_integer(last) < ~bytes{0} - 12_MiB);
  fails_with(b.reserve(12_MiB, 0), errc::out_of_addresses);
}

TEST_CASE("a mapping can't run over from one reservation into the next") {
  simulated b;
  address const first = must(b.reserve(4_MiB, 0));
  address const second = must(b.reserve(4_MiB, 0));
  CHECK(second > first + 4_MiB);
  handle const h = must(b.create(4_MiB));
  fails_with(b.map(first + 2_MiB, 4_MiB, h), errc::invalid_argument, "map: not reserved");
}
