#pragma once
/// Walks of a program that departs from its steps at random: whatever the pool's policies, nothing is lost, and once
/// the departures are over the plan is found again.

#include "gmlake/stitch/no_stitch.hpp"
#include "tests/pool/training.hpp"

namespace gmlake::test {

/// Steps, where they are marked. Without marks, a run of irregular ones may pass for the beginning of a long step,
/// which is waited for: there is no bound then. Nor is there without stitches, where free memory may lie in pieces too
/// small for the plan.
inline constexpr int most_to_recover = 60;

template <PoolConfig Config>
void walk_off_plan(std::uint64_t seed, training_options o, int phases) {
  CAPTURE(seed);
  CAPTURE(o.streams);
  CAPTURE(o.marked);
  CAPTURE(o.host_memory);
  CAPTURE(o.faults);
  std::mt19937_64 random(seed * 7919);
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  o.seed = seed;
  o.lag = seed % 3 == 0 ? timeline_options::endless : 20 * (1 + seed % 7);
  o.callback = seed % 4 >= 2;
  training<Config> t(o);
  std::vector<script> shapes;
  for (std::uint64_t i = 0; i < 3; ++i) {
    shapes.push_back(training_step({.layers = 6 + static_cast<std::uint32_t>(4 * i),
                                    .streams = o.streams,
                                    .seed = seed + i,
                                    .carried = (seed + i) % 2 == 0,
                                    .largest = o.host_memory ? 300'000 : 1_MiB}));
  }
  t.begin();
  for (int phase = 0; phase < phases && t.fault().empty(); ++phase) {
    script const& s = shapes[below(shapes.size())];
    t.steps(4, s);
    t.make_plans();
    t.steps(1 + static_cast<int>(below(3)), s);
    perturbation p;
    unsigned* const kinds[] = {&p.extra, &p.missing,   &p.resized,  &p.swapped, &p.late,     &p.early,
                               &p.moved, &p.elsewhere, &p.recorded, &p.odd,     &p.upheaval, &p.broken_off};
    if (below(3) == 0) p = perturbation::all(static_cast<unsigned>(1 + below(12)));
    else *kinds[below(std::size(kinds))] = static_cast<unsigned>(1 + below(below(3) == 0 ? 200 : 20));
    for (std::size_t n = 2 + below(6); n > 0; --n) {
      t.step(below(6) == 0 ? shapes[below(shapes.size())] : s, p);
      if (below(4) == 0) t.make_plans();
    }
    if (below(3) == 0) t.tidy();
    if (below(2) == 0) t.regular();
  }
  t.regular();
  t.tidy();
  script const& s = shapes[0];
  int n = 0;
  for (bool followed = false; !followed && t.fault().empty(); ++n) {
    if (n == most_to_recover) {
      if (o.marked && !std::same_as<typename Config::stitching, no_stitch>)
        t.blame("a regular program is on its plan again");
      break;
    }
    t.make_plans();
    auto const placed = t.seen().placed;
    t.step(s);
    followed = 10 * (t.seen().placed - placed) >= 9 * requests_of(s);  // without memory to spare, some find no place
  }
  t.look();
  if (t.fault().empty()) t.finish(seed % 2 == 0);
  REQUIRE_MESSAGE(t.fault().empty(), t.fault());
}

template <PoolConfig Config>
void walk_off_plans() {
  std::uint64_t const first = from_environment("GMLAKE_TEST_SEED", 1);
  std::uint64_t const walks = from_environment("GMLAKE_TEST_WALKS", 6);
  for (std::uint64_t seed = first; seed < first + walks; ++seed) {
    training_options o{.streams = 1 + seed % 3, .marked = seed % 2 == 0};
    walk_off_plan<Config>(seed, o, 8);
    o.host_memory = true;
    o.capacity = 32_MiB;
    walk_off_plan<Config>(seed, o, 5);
    o.host_memory = false;
    o.faults = true;
    o.capacity = 24_MiB;
    walk_off_plan<Config>(seed, o, 8);
  }
}

}  // namespace gmlake::test
