/// Both bounds against schedules of every kind: none does better.

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "gmlake/swap/autoswap.hpp"
#include "gmlake/swap/least_stall.hpp"
#include "gmlake/swap/lowest_peak.hpp"
#include "gmlake/swap/peak_bound.hpp"
#include "gmlake/swap/simulate.hpp"
#include "gmlake/swap/time_bound.hpp"
#include "tests/swap/naive.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::bounds_test {
namespace {

bytes any_limit(setting const& at, std::mt19937& random) {
  bytes const least = least_limit(at);
  return least + random() % (at.peak() - least + 1);
}

TEST_CASE("no schedule at random does better than the bounds") {
  int counted = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    program const p = programs::tiny(seed, 10, 6);
    setting const at(p, naive::tiny_channel(random));
    bytes const peak = peak_bound(at);
    CHECK(peak <= at.peak());
    for (int k = 0; k < 8; ++k) {
      schedule const s = naive::any_schedule(p, random);
      outcome const free = simulate(p, s, at.channel());
      if (free.without_stall()) CHECK(free.peak >= peak);
      bytes const limit = any_limit(at, random);
      outcome const o = simulate(p, s, at.channel(), limit);
      if (o.stuck || !o.settled) continue;
      ++counted;
      CHECK(o.total >= time_bound(at, limit));
      if (o.without_stall()) CHECK(o.peak >= peak);
    }
  }
  CHECK(counted > 5000);
}

TEST_CASE("no schedule at all of a tiny program does better, and what is found is mostly the best there is") {
  int programs_seen = 0, peaks = 0, times = 0, least_times = 0, bounds_met = 0;
  for (std::uint32_t seed = 0; programs_seen < 150; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    program const p = programs::tiny(seed, 6, 4);
    setting const at(p, naive::tiny_channel(random));
    if (at.absences().empty() || at.absences().size() > 3) continue;
    ++programs_seen;
    bytes const limit = any_limit(at, random);
    bytes least = at.peak();
    std::optional<time> soonest;
    naive::all_schedules(p, [&](schedule const& s) {
      outcome const o = simulate(p, s, at.channel());
      if (o.without_stall()) least = std::min(least, o.peak);
      outcome const limited = simulate(p, s, at.channel(), limit);
      if (limited.without_stall()) least = std::min(least, limited.peak);
      if (limited.settled && (!soonest || limited.total < *soonest)) soonest = limited.total;
    });
    CHECK(peak_bound(at) <= least);
    solution const low = lowest_peak(at).find();
    CHECK(low.outcome.without_stall());
    CHECK(low.outcome.peak >= least);
    peaks += low.outcome.peak == least;
    if (!soonest) continue;
    CHECK(time_bound(at, limit) <= *soonest);
    bounds_met += time_bound(at, limit) == *soonest;
    ++times;
    auto const quick = least_stall(at, limit).find();
    if (quick) CHECK(quick->outcome.total >= *soonest);
    least_times += quick && quick->outcome.total == *soonest;
  }
  MESSAGE("of ", programs_seen, " programs the lowest peak was found in ", peaks, ", of ", times,
          " limits the least time in ", least_times, "; the bound was met in ", bounds_met);
  CHECK(peaks >= programs_seen * 9 / 10);
  CHECK(least_times >= times * 8 / 10);
}

TEST_CASE("the peak's bound sees a short operation among many that decides it") {
  program p;
  p.operations.assign(1001, time(1000));
  // Most of the time what is there may be away; for one operation it may not.
  p.variables.push_back({.size = 600_MiB, .birth = 0, .death = 1001, .accesses = {{0}, {1000}}});
  p.variables.push_back({.size = 200_MiB, .birth = 401, .death = 402, .accesses = {{401}}});
  setting const at(p, {});
  // At 401 it has had 400 µs to leave, which carries 21 MB and a half.
  bytes const away = at.channel().out.most_in(time(400'000));
  CHECK(peak_bound(at) == 800_MiB - away);
  CHECK(peak_bound(at, 16) == 800_MiB - away);  // the highest load is looked at first
  CHECK(peak_bound(at, 1) <= peak_bound(at));
}

}  // namespace
}  // namespace gmlake::swap::bounds_test
