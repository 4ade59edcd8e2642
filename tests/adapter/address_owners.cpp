#include "gmlake/adapter/address_owners.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gmlake/adapter/claimed.hpp"
#include "gmlake/adapter/torch_registry.hpp"
#include "gmlake/backend/faulty.hpp"
#include "gmlake/backend/simulated.hpp"
#include "tests/backend/must.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr bytes unit = 2_MiB;
constexpr address base{1_TiB};
constexpr bytes covered = 128_TiB;  ///< by the table
constexpr bytes page = 16_GiB;      ///< of addresses

}  // namespace

TEST_CASE("an address is its claimer's from the first byte to the last") {
  auto const owners = std::make_unique<address_owners>();
  REQUIRE(owners->claim(base, 3 * unit, 7));
  CHECK(owners->of(base - 1) == 0);
  CHECK(owners->of(base) == 7);
  CHECK(owners->of(base + unit) == 7);
  CHECK(owners->of(base + 3 * unit - 1) == 7);
  CHECK(owners->of(base + 3 * unit) == 0);
}

TEST_CASE("what nobody has claimed is nobody's, also beyond the table") {
  auto const owners = std::make_unique<address_owners>();
  for (address at : {address{}, base, address{covered - 1}, address{covered}, address{~bytes{0}}}) {
    CHECK(owners->of(at) == 0);
  }
}

TEST_CASE("claims reach across pages, up to the table's end and not beyond") {
  auto const owners = std::make_unique<address_owners>();
  REQUIRE(owners->claim(base + page - unit, 2 * unit, 1));
  CHECK(owners->of(base + page - 1) == 1);
  CHECK(owners->of(base + page) == 1);
  CHECK(owners->of(base + page + unit) == 0);
  REQUIRE(owners->claim(base + 4 * page, 3 * page, 2));
  for (bytes i : {bytes{0}, page, 2 * page, 3 * page - 1}) CHECK(owners->of(base + 4 * page + i) == 2);
  REQUIRE(owners->claim(address{covered - unit}, unit, 3));
  CHECK(owners->of(address{covered - 1}) == 3);
  CHECK_FALSE(owners->claim(address{covered}, unit, 4));
  CHECK_FALSE(owners->claim(address{covered - unit}, 2 * unit, 5));
  CHECK(owners->of(address{covered}) == 0);
}

TEST_CASE("a claim given back can be claimed by another") {
  auto const owners = std::make_unique<address_owners>();
  REQUIRE(owners->claim(base, 2 * unit, 1));
  REQUIRE(owners->claim(base, unit, 0));
  CHECK(owners->of(base) == 0);
  CHECK(owners->of(base + unit) == 1);
  REQUIRE(owners->claim(base, unit, 65535));
  CHECK(owners->of(base) == 65535);
}

TEST_CASE("random claims are what a map says they are") {
  std::uint64_t const seed = from_environment("GMLAKE_TEST_SEED", 1);
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  auto const owners = std::make_unique<address_owners>();
  std::map<bytes, address_owners::number> model;  // by granule
  bytes const first = (base + page - 100 * unit) - address{};
  for (int i = 0; i < 2000; ++i) {
    bytes const from = random() % 200;
    bytes const n = 1 + random() % 20;
    auto const owner = static_cast<address_owners::number>(random() % 5);
    REQUIRE(owners->claim(address{first + from * unit}, n * unit, owner));
    for (bytes g = from; g < from + n; ++g) model[g] = owner;
    bytes const at = random() % (230 * unit);
    auto const known = model.find(at / unit);
    REQUIRE(owners->of(address{first + at}) == (known != model.end() ? known->second : 0));
  }
}

TEST_CASE("readers see an owner whole while others claim, new pages too") {
  auto const owners = std::make_unique<address_owners>();
  REQUIRE(owners->claim(base, 64 * unit, 9));
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (unsigned t = 0; t < 2; ++t) {
    all.emplace_back([&, t] {
      std::mt19937_64 random(t);
      while (!stop) {
        if (owners->of(base + random() % (64 * unit)) != 9) ++wrong;  // never touched by the claimers
        auto const n = owners->of(base + page + random() % (8 * page));
        if (n != 0 && n != 1 && n != 2) ++wrong;
      }
    });
  }
  for (address_owners::number t : {address_owners::number{1}, address_owners::number{2}}) {
    all.emplace_back([&, t] {
      for (bytes i = 0; i < 64; ++i) {
        bytes const at = page + (2 * i + t - 1) * page / 16;  // pages that both come to first
        if (!owners->claim(base + at, 16 * unit, t)) ++wrong;
        if (owners->of(base + at + 16 * unit - 1) != t) ++wrong;
        if (i % 2 == 0 && !owners->claim(base + at, 16 * unit, 0)) ++wrong;
      }
    });
  }
  all[2].join();
  all[3].join();
  stop = true;
  all[0].join();
  all[1].join();
  CHECK(wrong == 0);
}

// ---- claimed backends
// ----------------------------------------------------------------------------------------------------------------

static_assert(PhysicalBackend<claimed<simulated>> && !MeasuredBackend<claimed<simulated>>);

TEST_CASE("what a claimed backend reserves is its number's until it is given back") {
  auto const owners = std::make_unique<address_owners>();
  claimed<simulated> first(simulated({.base = base}), *owners, 1);
  claimed<simulated> second(simulated({.base = base + 4 * page}), *owners, 2);
  address const p = must(first.reserve(4 * unit, 0));
  address const q = must(second.reserve(unit, 0));
  CHECK(owners->of(p + 4 * unit - 1) == 1);
  CHECK(owners->of(p + 4 * unit) == 0);
  CHECK(owners->of(q) == 2);
  must(first.unreserve(p, 4 * unit));
  CHECK(owners->of(p) == 0);
  CHECK(owners->of(q) == 2);
  must(second.unreserve(q, unit));
}

TEST_CASE("addresses beyond the table can't be reserved, and go back") {
  auto const owners = std::make_unique<address_owners>();
  claimed<simulated> b(simulated({.base = address{covered - unit}}), *owners, 1);
  fails_with(b.reserve(2 * unit, 0), errc::out_of_host_memory);
  CHECK(owners->of(address{covered - unit}) == 0);
  CHECK(b.wrapped().idle());
}

TEST_CASE("addresses that the driver keeps stay claimed, and those that it does not give are not") {
  auto const owners = std::make_unique<address_owners>();
  claimed<faulty<simulated>> b(faulty(simulated({.base = base})), *owners, 3);
  address const p = must(b.reserve(2 * unit, 0));
  b.wrapped().arm({.first = 0});
  fails_with(b.unreserve(p, 2 * unit), errc::driver_failure);
  CHECK(owners->of(p) == 3);
  CHECK(owners->of(p + unit) == 3);
  must(b.unreserve(p, 2 * unit));
  CHECK(owners->of(p) == 0);
  b.wrapped().arm({.first = 0});
  fails_with(b.reserve(unit, 0), errc::out_of_addresses);
  CHECK(owners->of(p + 3 * unit) == 0);
}

TEST_CASE("everything else is passed on to the backend beneath") {
  auto const owners = std::make_unique<address_owners>();
  claimed<simulated> b(simulated({.capacity = 4 * unit, .base = base}), *owners, 1);
  CHECK(b.granularity() == unit);
  address const at = must(b.reserve(unit, 0));
  handle const h = must(b.create(unit));
  fails_with(b.create(4 * unit), errc::out_of_memory);
  must(b.map(at, unit, h));
  must(b.set_access(at, unit, access::read_write));
  must(b.unmap(at, unit));
  must(b.release(h));
  must(b.unreserve(at, unit));
  CHECK(b.wrapped().idle());
}

// ---- the registry
// ----------------------------------------------------------------------------------------------------------------

namespace {

/// Only their addresses count here.
alignas(16) char stand_ins[4][16];
template <class T>
[[nodiscard]] T& stand_in(int i) {
  return *reinterpret_cast<T*>(stand_ins[i]);
}

}  // namespace

TEST_CASE("a pool is found by its addresses as long as it is entered") {
  auto const registry = std::make_unique<torch_registry>();
  auto& device = stand_in<torch_device>(0);
  auto& pool = stand_in<torch_pool>(1);
  auto const n = registry->reserve(device);
  REQUIRE(n != torch_registry::none);
  REQUIRE(registry->owners().claim(base, unit, n));
  CHECK(registry->find(base).pool == nullptr);
  registry->enter(n, pool);
  CHECK(registry->find(base).pool == &pool);
  CHECK(registry->find(base + unit - 1).device == &device);
  CHECK(registry->find(base + unit).pool == nullptr);
  CHECK(registry->find(address{}).pool == nullptr);
  registry->leave(n);
  CHECK(registry->find(base).pool == nullptr);
}

TEST_CASE("a number is given out again only once its pool is forgotten, and there is an end to them") {
  auto const registry = std::make_unique<torch_registry>();
  auto& device = stand_in<torch_device>(0);
  std::vector<torch_registry::number> all;
  for (;;) {
    auto const n = registry->reserve(device);
    if (n == torch_registry::none) break;
    all.push_back(n);
    REQUIRE(all.size() < 70'000);
  }
  CHECK(all.size() > 1000);
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  registry->leave(all[5]);
  CHECK(registry->reserve(device) == torch_registry::none);
  registry->forget(all[5]);
  CHECK(registry->reserve(device) == all[5]);
}
