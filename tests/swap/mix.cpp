#include "gmlake/swap/mix.hpp"

#include <set>
#include <tuple>

#include <doctest/doctest.h>

#include "tests/swap/programs.hpp"

namespace gmlake::swap::mix_test {
namespace {

TEST_CASE("a grid of mixes has each once, those of one score alone among them, and each adds up to one") {
  std::set<std::tuple<double, double, double, double>> seen;
  int calls = 0;
  each_mix(4, [&](score_weights const& w) {
    ++calls;
    seen.insert({w.doa, w.aoa, w.wdoa, w.swdoa});
    CHECK(w.doa + w.aoa + w.wdoa + w.swdoa == doctest::Approx(1));
  });
  CHECK(calls == 35);
  CHECK(seen.size() == 35);
  for (auto const& one : {std::tuple{1., 0., 0., 0.}, {0., 1., 0., 0.}, {0., 0., 1., 0.}, {0., 0., 0., 1.}}) {
    CHECK(seen.contains(one));
  }
}

TEST_CASE("the mix is as good as each of its scores, and its weights give what it found") {
  for (std::uint32_t seed = 0; seed < 2; ++seed) {
    program const p = programs::cnn(seed, {.blocks = 1});
    setting const at(p, {});
    bytes const limit = at.peak() / 100 * 75;
    mix const low = mix_for_peak(at, 16);
    auto const fast = mix_under(at, limit);
    REQUIRE(fast);
    CHECK(low.found.outcome.without_stall());
    CHECK(fast->found.outcome.peak <= limit);
    for (score_weights const& w : {score_weights{.doa = 1}, {.aoa = 1}, {.wdoa = 1}, {.swdoa = 1}}) {
      CHECK(low.found.outcome.peak <= autoswap(at, w).lowest_peak(16).outcome.peak);
      auto const alone = autoswap(at, w).under(limit);
      if (alone) CHECK(fast->found.outcome.total <= alone->outcome.total);
    }
    CHECK(autoswap(at, low.weights).lowest_peak(16).outcome.peak >= low.found.outcome.peak);
    CHECK(autoswap(at, fast->weights).under(limit)->outcome.total == fast->found.outcome.total);
  }
}

TEST_CASE("there is no mix for a limit that can't be met") {
  program p;
  p.operations.assign(3, time(100));
  p.variables.push_back({.size = 1_GiB, .birth = 0, .death = 3, .accesses = {{0}, {1}, {2}}});
  CHECK_FALSE(mix_under(setting(p, {}), 512_MiB));
}

}  // namespace
}  // namespace gmlake::swap::mix_test
