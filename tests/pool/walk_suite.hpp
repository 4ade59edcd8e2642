#pragma once
/// Random walks as tests. They run from seeds that change with nothing; other ones by the environment of the test
/// program: `GMLAKE_TEST_SEED` (the first seed) and `GMLAKE_TEST_WALKS` (seeds a walk).

#include <cstdint>
#include <cstdlib>
#include <random>

#include <doctest/doctest.h>

#include "tests/pool/walk.hpp"

namespace gmlake::test {

[[nodiscard]] inline std::uint64_t from_environment(char const* name, std::uint64_t otherwise) {
  char const* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

template <PoolConfig Config>
void walk_at_random(walk_options const& options, std::uint64_t seed, int steps) {
  CAPTURE(seed);
  CAPTURE(options.streams);
  CAPTURE(options.host_memory);
  CAPTURE(options.faults);
  auto random = std::make_shared<std::mt19937_64>(seed);
  walk<Config> w(options, [random](std::size_t n) { return static_cast<std::size_t>((*random)() % n); });
  for (int i = 0; i < steps && w.fault().empty(); ++i) w.step();
  if (w.fault().empty()) w.finish();
  REQUIRE_MESSAGE(w.fault().empty(), w.fault());
}

/// Simulated and real memory, one stream and several, with and without faults and callbacks.
template <PoolConfig Config>
void walk_everywhere() {
  std::uint64_t const first = from_environment("GMLAKE_TEST_SEED", 1);
  std::uint64_t const walks = from_environment("GMLAKE_TEST_WALKS", 5);
  constexpr int steps = 2500;
  for (std::uint64_t seed = first; seed < first + walks; ++seed) {
    walk_options options;
    options.streams = 1 + seed % 4;
    options.lag = seed % 3 == 0 ? timeline_options::endless : 20 * (1 + seed % 7);
    options.callback = seed % 4 >= 2;
    walk_at_random<Config>(options, seed, steps);
    options.faults = true;
    walk_at_random<Config>(options, seed, steps);
    options.faults = seed % 2 == 0;
    options.host_memory = true;
    walk_at_random<Config>(options, seed, steps / 2);
  }
}

}  // namespace gmlake::test
