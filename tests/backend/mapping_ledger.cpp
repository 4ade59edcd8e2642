#include "gmlake/backend/mapping_ledger.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <vector>

#include "tests/backend/must.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// The rules again, on one plain record a granule.
struct plain_range {
  struct granule {
    std::size_t mapping = 0;  // a number of its own for each mapping; 0: none
    std::size_t chunk = 0;
  };
  std::vector<granule> granules;

  bool holds(std::size_t at, std::size_t n) const { return at <= granules.size() && n <= granules.size() - at; }
  bool free(std::size_t at, std::size_t n) const {
    for (std::size_t i = at; i != at + n; ++i) {
      if (granules[i].mapping != 0) return false;
    }
    return true;
  }
  bool full(std::size_t at, std::size_t n) const {
    for (std::size_t i = at; i != at + n; ++i) {
      if (granules[i].mapping == 0) return false;
    }
    return true;
  }
  bool uncut(std::size_t at, std::size_t n) const {
    auto const cut = [&](std::size_t i) {
      return i != 0 && i != granules.size() && granules[i].mapping != 0 &&
             granules[i].mapping == granules[i - 1].mapping;
    };
    return !cut(at) && !cut(at + n);
  }
};

}  // namespace

TEST_CASE("the ledger agrees with a plain record of every granule over a random walk") {
  constexpr bytes granule = 4096;
  constexpr std::size_t range_granules = 2500;  // several pages, and part of one
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };

  mapping_ledger ledger(granule);
  std::array<address, 2> const bases{static_cast<address>(1_GiB),
                                     static_cast<address>(1_GiB + range_granules * granule)};
  std::array<plain_range, 2> plain;
  for (std::size_t i = 0; i != 2; ++i) {
    must(ledger.reserve(bases[i], range_granules * granule));
    plain[i].granules.resize(range_granules);
  }
  std::array<std::size_t, 8> const sizes{1, 1, 2, 3, 16, 100, 511, 1100};
  std::array<handle, 8> handles{};
  for (std::size_t i = 0; i != sizes.size(); ++i) handles[i] = must(ledger.create(sizes[i] * granule));

  std::size_t serial = 0;
  std::size_t live = 0;
  std::size_t accepted = 0;
  for (int step = 0; step != 20'000; ++step) {
    std::size_t const where = below(2);
    plain_range& range = plain[where];
    std::size_t const at = below(range_granules);
    address const va = bases[where] + at * granule;
    if (below(2) == 0) {
      std::size_t const chunk = below(sizes.size());
      std::size_t const n = sizes[chunk];
      bool const allowed = range.holds(at, n) && range.free(at, n);
      REQUIRE(ledger.check_map(va, n * granule, handles[chunk]).has_value() == allowed);
      if (!allowed) continue;
      ledger.map(va, n * granule, handles[chunk]);
      ++serial;
      ++live;
      for (std::size_t i = at; i != at + n; ++i) range.granules[i] = {.mapping = serial, .chunk = chunk};
    } else {
      // Half of the tries end where something mapped does; some are long and span many.
      std::size_t n = 1 + below(below(20) == 0 ? 700 : 4);
      if (range.granules[at].mapping != 0 && below(2) == 0) n = sizes[range.granules[at].chunk];
      bool const whole = range.holds(at, n) && range.uncut(at, n);
      bool const allowed = whole && !range.free(at, n);
      REQUIRE(ledger.check_unmap(va, n * granule).has_value() == allowed);
      REQUIRE(ledger.check_set_access(va, n * granule).has_value() == (whole && range.full(at, n)));
      if (!allowed) continue;
      ++accepted;
      std::size_t visited = 0;
      std::size_t mappings = 0;
      ledger.for_each_mapping(va, n * granule, [&](mapping_ledger::mapping m) {
        visited += m.size / granule;
        ++mappings;
      });
      std::size_t const mapped = n - static_cast<std::size_t>(std::ranges::count(
                                         std::span(range.granules).subspan(at, n), 0u, &plain_range::granule::mapping));
      REQUIRE(visited == mapped);
      ledger.unmap(va, n * granule);
      live -= mappings;
      for (std::size_t i = at; i != at + n; ++i) range.granules[i] = {};
    }
    REQUIRE(ledger.mappings() == live);
  }
  CHECK(accepted > 50);

  for (std::size_t i = 0; i != 2; ++i) {
    CHECK(ledger.check_unreserve(bases[i], range_granules * granule).has_value() == plain[i].free(0, range_granules));
  }
}

TEST_CASE("the ledger does not take two neighbouring reservations for one") {
  mapping_ledger ledger(4096);
  auto const base = static_cast<address>(1_MiB);
  must(ledger.reserve(base, 8192));
  must(ledger.reserve(base + 8192, 8192));
  handle const h = must(ledger.create(8192));
  fails_with(ledger.check_map(base + 4096, 8192, h), errc::invalid_argument, "map: not reserved");
  must(ledger.check_map(base + 8192, 8192, h));
}

TEST_CASE("the ledger keeps a handle's note") {
  mapping_ledger ledger(4096);
  handle const h = must(ledger.create(8192, 77));
  CHECK(ledger.note_of(h) == 77);
  CHECK(ledger.size_of(h) == 8192);
}

TEST_CASE("the ledger forgets a reservation that it looked up last") {
  mapping_ledger ledger(4096);
  auto const base = static_cast<address>(1_MiB);
  handle const h = must(ledger.create(4096));
  must(ledger.reserve(base, 4096));
  must(ledger.check_map(base, 4096, h));
  ledger.unreserve(base, 4096);
  fails_with(ledger.check_map(base, 4096, h), errc::invalid_argument, "map: not reserved");
}
