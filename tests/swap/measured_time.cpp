#include "gmlake/swap/measured_time.hpp"

#include <doctest/doctest.h>

using namespace gmlake;

namespace {

constexpr double quarter = 0.25;
constexpr swap::measured_time unknown;

constexpr swap::measured_time measured(int ns) { return {swap::time(ns), false}; }
constexpr swap::measured_time guessed(int ns) { return {swap::time(ns), true}; }

void check(swap::measured_time of, swap::measured_time newer, swap::measured_time expected) {
  of.average(newer, quarter);
  CHECK(of.is == expected.is);
  CHECK(of.guessed == expected.guessed);
}

}  // namespace

TEST_CASE("nothing is known of an operation that nobody has timed") {
  CHECK(!unknown.known());
  CHECK(measured(0).known());
  CHECK(guessed(0).known());
}

TEST_CASE("the first time stands as it is, and what is unknown changes nothing") {
  check(unknown, measured(80), measured(80));
  check(unknown, guessed(80), guessed(80));
  check(unknown, unknown, unknown);
  check(measured(80), unknown, measured(80));
  check(guessed(80), unknown, guessed(80));
}

TEST_CASE("times of one kind are averaged, the newer by its weight") {
  check(measured(80), measured(120), measured(90));
  check(measured(80), measured(40), measured(70));
  check(guessed(80), guessed(120), guessed(90));
}

TEST_CASE("what was measured replaces what was guessed, and is not changed by it") {
  check(guessed(80), measured(120), measured(120));
  check(measured(80), guessed(120), measured(80));
}
