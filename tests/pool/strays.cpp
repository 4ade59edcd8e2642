#include "gmlake/pool/strays.hpp"

#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;

namespace {

constexpr stream_index lane = 1;

stray& insert(strays& all, std::uintptr_t at, bytes size) {
  REQUIRE(all.reserve_one());
  return all.insert(address{at}, size, size - 1, lane);
}
[[nodiscard]] std::vector<stream_index> recorded(stray const& s) {
  std::vector<stream_index> on;
  for (use const* u = s.recorded; u != nullptr; u = u->next) on.push_back(u->on);
  return on;
}
[[nodiscard]] std::vector<std::uintptr_t> addresses(strays const& all) {
  std::vector<std::uintptr_t> at;
  all.for_each([&](stray const& s) { at.push_back(to_integer(s.at)); });
  return at;
}

}  // namespace

TEST_CASE("a stray is found by where it begins, and lives until told otherwise") {
  strays all;
  CHECK(all.empty());
  CHECK(all.find(address{100}) == nullptr);
  stray const& s = insert(all, 100, 50);
  CHECK_FALSE(all.empty());
  CHECK(all.find(address{100}) == &s);
  CHECK(std::as_const(all).find(address{100}) == &s);
  CHECK(all.find(address{101}) == nullptr);
  CHECK(all.find(address{99}) == nullptr);
  CHECK(s.end() == address{150});
  CHECK(s.requested == 49);
  CHECK(s.on == lane);
  CHECK(s.live);
  CHECK(s.number == 0);
}

TEST_CASE("a stray that is gone is found no more, and its node comes back blank") {
  strays all;
  stray& s = insert(all, 100, 50);
  s.live = false;
  s.number = 7;
  REQUIRE(all.reserve_use());
  all.record(s, 2);
  all.erase(s);
  CHECK(all.empty());
  CHECK(all.find(address{100}) == nullptr);
  stray const& again = insert(all, 100, 50);
  CHECK(again.live);
  CHECK(again.number == 0);
  CHECK(again.recorded == nullptr);
}

TEST_CASE("the first stray that shares a byte overlaps, one that touches doesn't") {
  strays all;
  stray const& low = insert(all, 100, 50);
  stray const& high = insert(all, 200, 50);
  CHECK(all.overlapping(address{50}, 50) == nullptr);
  CHECK(all.overlapping(address{50}, 51) == &low);
  CHECK(all.overlapping(address{149}, 1) == &low);
  CHECK(all.overlapping(address{150}, 50) == nullptr);
  CHECK(all.overlapping(address{150}, 51) == &high);
  CHECK(all.overlapping(address{100}, 1) == &low);
  CHECK(all.overlapping(address{120}, 10) == &low);
  CHECK(all.overlapping(address{140}, 100) == &low);
  CHECK(all.overlapping(address{250}, 1000) == nullptr);
}

TEST_CASE("each stream's use is recorded once") {
  strays all;
  stray& s = insert(all, 100, 50);
  for (stream_index const on : {2u, 3u, 2u, 3u}) {
    REQUIRE(all.reserve_use());
    all.record(s, on);
  }
  CHECK(recorded(s) == std::vector<stream_index>{3, 2});
}

TEST_CASE("strays come by address, and the one at hand may be erased") {
  strays all;
  for (std::uintptr_t const at : {300u, 100u, 200u, 400u}) (void)insert(all, at, 50);
  CHECK(addresses(all) == std::vector<std::uintptr_t>{100, 200, 300, 400});
  all.for_each([&](stray& s) {
    if (s.at == address{100} || s.at == address{300}) all.erase(s);
  });
  CHECK(addresses(all) == std::vector<std::uintptr_t>{200, 400});
  all.clear();
  CHECK(all.empty());
}

TEST_CASE("overlaps are found among many strays that come and go") {
  std::uint64_t const seed = 3;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  strays all;
  std::map<std::uintptr_t, bytes> model;
  auto const first_overlap = [&](std::uintptr_t at, bytes n) {
    for (auto const& [begin, size] : model) {
      if (begin < at + n && at < begin + size) return begin;
    }
    return std::uintptr_t{0};
  };
  for (int step = 0; step < 5000; ++step) {
    CAPTURE(step);
    std::uintptr_t const at = 1 + random() % 1000;
    bytes const n = 1 + random() % 20;
    stray* const found = all.overlapping(address{at}, n);
    REQUIRE((found != nullptr ? to_integer(found->at) : 0) == first_overlap(at, n));
    if (found == nullptr) {
      (void)insert(all, at, n);
      model[at] = n;
    } else if (random() % 2 == 0) {
      model.erase(to_integer(found->at));
      all.erase(*found);
    }
  }
}
