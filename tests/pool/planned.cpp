/// What a planned pool does with a program that keeps to its steps, and with one that departs from them in one way.

#include "tests/pool/training.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using planned_here = planned_config<borrowed_device, simulated_streams, plan_briefly>;
using planned_in_order = planned_config<borrowed_device, one_stream, plan_briefly>;
using planned_later = planned_config<borrowed_device, simulated_streams, plan_on_demand>;

template <PoolConfig Config>
void sound(training<Config>& t) {
  t.look();
  REQUIRE_MESSAGE(t.fault().empty(), t.fault());
}
template <PoolConfig Config>
void end(training<Config>& t, bool free_first = true) {
  t.finish(free_first);
  REQUIRE_MESSAGE(t.fault().empty(), t.fault());
}

/// Runs steps of which every request is placed, with no driver call.
template <PoolConfig Config>
void follows(training<Config>& t, script const& s, int steps = 4) {
  for (int i = 0; i < steps; ++i) {
    CAPTURE(i);
    auto const calls = t.calls();
    auto const stitches = t.pool().stats().stitches_made + t.pool().stats().stitch_hits;
    auto const placed = t.seen().placed;
    t.step(s);
    sound(t);
    CHECK(t.seen().placed - placed == requests_of(s));
    CHECK(t.calls() == calls);
    CHECK(t.pool().stats().stitches_made + t.pool().stats().stitch_hits == stitches);
  }
}

/// Whether most of a step is placed again within so many steps.
template <PoolConfig Config>
[[nodiscard]] bool recovers(training<Config>& t, script const& s, int within) {
  for (int i = 0; i < within; ++i) {
    auto const placed = t.seen().placed;
    t.step(s);
    sound(t);
    if (4 * (t.seen().placed - placed) >= 3 * requests_of(s)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE_TEMPLATE("a program's steps are placed from the fourth on", Config, planned_here, planned_in_order) {
  for (std::size_t streams : {1u, 2u}) {
    for (bool marked : {true, false}) {
      for (bool carried : {true, false}) {
        for (std::uint64_t seed : {1u, 2u, 3u}) {
          CAPTURE(streams);
          CAPTURE(marked);
          CAPTURE(carried);
          CAPTURE(seed);
          training<Config> t({.streams = streams, .marked = marked});
          script const s = training_step({.streams = streams, .seed = seed, .carried = carried});
          t.begin();
          t.steps(marked ? 3 : 4, s);
          sound(t);
          follows(t, s);
          CHECK(t.seen().made >= 1);
          CHECK(t.seen().left == 0);
          end(t, seed % 2 == 0);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("a block may outlive the next step", Config, planned_here, planned_in_order) {
  for (std::uint64_t seed : {1u, 2u, 3u}) {
    CAPTURE(seed);
    training<Config> t({.streams = 1, .marked = true});
    // Each step's result takes the place of the last one's, which is freed then.
    script const step = training_step({.seed = seed});
    script turns[2];
    for (std::uint32_t turn = 0; turn < 2; ++turn) {
      turns[turn] = {{true, 1000 + turn, 3_MiB, 0}, {false, 1001 - turn, 0, 0}};
      turns[turn].insert(turns[turn].end(), step.begin(), step.end());
    }
    t.begin();
    for (int i = 0; i < 8; ++i) t.step(turns[i % 2]);
    sound(t);
    // One result's place may be where the other lay when the plan was made: the lake has that since.
    auto const calls = t.calls();
    auto const placed = t.seen().placed;
    for (int i = 0; i < 6; ++i) t.step(turns[i % 2]);
    sound(t);
    CHECK(t.calls() == calls);
    CHECK(t.seen().placed - placed >= 6 * requests_of(turns[0]) - 3);
    CHECK(t.seen().left == 0);
    // A step too short, and the program goes on.
    script const half(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(step.size() / 2));
    t.step(half);
    for (int i = 0; i < 4; ++i) t.step(turns[i % 2]);
    sound(t);
    end(t);
  }
}

TEST_CASE("a plan that takes its time is taken up later") {
  for (bool carried : {false, true}) {
    CAPTURE(carried);
    training<planned_later> t({.streams = 2});
    script const s = training_step({.streams = 2, .carried = carried});
    t.begin();
    t.steps(6, s);
    CHECK(t.seen().placed == 0);
    t.make_plans();
    t.steps(2, s);
    t.make_plans();
    t.steps(2, s);
    t.make_plans();
    follows(t, s);
    end(t);
  }
}

TEST_CASE("a pool can be told not to plan for a while") {
  for (bool marked : {true, false}) {
    CAPTURE(marked);
    training<planned_here> t({.marked = marked});
    script const s = training_step({});
    t.begin();
    t.steps(4, s);
    follows(t, s);
    t.pool().set_planning(false);
    sound(t);
    auto const before = t.seen();
    t.steps(8, s);
    sound(t);
    CHECK(t.seen().placed == before.placed);
    CHECK(t.seen().made == before.made);
    t.pool().set_planning(true);
    CHECK(recovers(t, s, 6));
    follows(t, s);
    end(t);
  }
}

TEST_CASE("a program whose blocks have been alone for long is watched no more, until they aren't") {
  for (bool marked : {true, false}) {
    CAPTURE(marked);
    auto const lonely = [](training<planned_here>& t, std::uint32_t requests) {
      for (std::uint32_t i = 0; i < requests; ++i) {
        auto const at = t.take({.size = 1000 + i % 7 * 512, .on = t.stream_at(0)});
        REQUIRE(at);
        t.give(*at);
      }
    };
    training<planned_here> t({.marked = marked, .validate_every = 512});
    script const s = training_step({});
    t.begin();
    lonely(t, 100);
    t.steps(marked ? 3 : 4, s);
    follows(t, s, 1);
    REQUIRE(t.seen().made == 1);
    std::vector<plan::plan> const known = t.pool().plans();
    CHECK_FALSE(known.front().repeats);  // so short a time was logged, as what comes before the steps
    end(t);

    training<planned_here> u({.marked = marked, .validate_every = 512});
    u.begin();
    lonely(u, 2 * plan::lull::long_enough);
    u.steps(marked ? 3 : 4, s);
    follows(u, s, 1);
    std::vector<plan::plan> const later = u.pool().plans();
    REQUIRE(later.size() == 1);
    CHECK(later.front().repeats);
    CHECK(plan::contents(later.front().requests) == plan::contents(known.back().requests));
    // Nor does a lull in between disturb the plan.
    lonely(u, 3 * plan::lull::long_enough);
    sound(u);
    CHECK(recovers(u, s, 4));
    end(u);
  }
}

TEST_CASE("a plan that is there while its step is under way waits for the next one") {
  for (bool marked : {true, false}) {
    for (int events = 0; events < 60; ++events) {
      CAPTURE(marked);
      CAPTURE(events);
      // No more memory than the steps need, so that the plan's is in use where a step began without it.
      training<planned_later> t({.marked = marked, .spare = 0, .plans_take = events});
      script const s = training_step({.carried = false});
      t.begin();
      t.steps(7, s);
      follows(t, s);
      CHECK(t.seen().made == 1);
      end(t);
    }
  }
}

namespace {

/// A good plan of a step: what a pool made that saw it.
[[nodiscard]] std::vector<plan::plan> plans_for(script const& s, std::size_t streams) {
  training<planned_here> t({.streams = streams});
  t.begin();
  t.steps(6, s);
  return t.pool().plans();
}

}  // namespace

TEST_CASE("with plans adopted, the first step is placed too") {
  for (std::size_t streams : {1u, 2u}) {
    CAPTURE(streams);
    script const s = training_step({.streams = streams});
    std::vector<plan::plan> plans = plans_for(s, streams);
    REQUIRE(plans.size() == 2);
    CHECK_FALSE(plans[0].repeats);
    training<planned_here> t({.streams = streams});
    must(t.pool().adopt(plans));
    t.begin();
    auto const placed = t.seen().placed;
    t.step(s);
    sound(t);
    CHECK(t.seen().placed - placed >= requests_of(s) - 1);
    follows(t, s);
    CHECK(t.seen().made == 0);
    fails_with(t.pool().adopt(plans), errc::invalid_argument);
    end(t);
  }
}

TEST_CASE("what a prologue leaves to the first step keeps the steps from no memory") {
  // The result outlives its step, so that steps take more than what comes before them.
  script const step = training_step({});
  script turns[2];
  for (std::uint32_t turn = 0; turn < 2; ++turn) {
    turns[turn] = {{true, 1000 + turn, 3_MiB, 0}, {false, 1001 - turn, 0, 0}};
    turns[turn].insert(turns[turn].end(), step.begin(), step.end());
  }
  std::vector<plan::plan> plans;
  bytes without = 0;
  {
    training<planned_here> t({.streams = 1, .marked = true});
    t.begin();
    for (int i = 0; i < 8; ++i) t.step(turns[i % 2]);
    plans = planner<planned_here>::placed_all(t.pool().plans());
    without = t.pool().stats().reserved.peak;
    end(t);
  }
  REQUIRE(plans.size() == 2);
  REQUIRE(plans[1].laps == 2);
  training<planned_here> t({.streams = 1, .marked = true});
  must(t.pool().adopt(plans));
  t.begin();
  for (int i = 0; i < 8; ++i) t.step(turns[i % 2]);
  sound(t);
  auto const placed = t.seen().placed;
  for (int i = 0; i < 4; ++i) t.step(turns[i % 2]);
  CHECK(t.seen().placed - placed >= 4 * requests_of(turns[0]) - 4);
  CHECK(t.pool().stats().reserved.peak <= without + 2 * 3_MiB);
  CHECK(t.seen().left == 0);
  end(t);
}

TEST_CASE("memory that what comes before the steps has done with serves what stays") {
  // As where weights are made, and then each is replaced by a copy.
  script before;
  for (std::uint32_t i = 0; i < 30; ++i) before.push_back({true, 2000 + i, 2_MiB + i * 4_KiB, 0});
  for (std::uint32_t i = 0; i < 30; ++i) {
    before.push_back({true, 3000 + i, 2_MiB + i * 4_KiB, 0});
    before.push_back({false, 2000 + i, 0, 0});
  }
  script const step = training_step({});
  auto const run = [&](training<planned_here>& t) {
    t.step(before);
    for (int i = 0; i < 6; ++i) {
      t.pool().mark_step();
      t.step(step);
      sound(t);
    }
  };
  std::vector<plan::plan> plans;
  bytes without = 0;
  {
    training<planned_here> t({.streams = 1, .marked = false});
    run(t);
    plans = planner<planned_here>::placed_all(t.pool().plans());
    without = t.pool().stats().reserved.peak;
    end(t);
  }
  REQUIRE(plans.size() == 2);
  REQUIRE(plans[0].height >= 60_MiB);
  training<planned_here> t({.streams = 1, .marked = false});
  must(t.pool().adopt(plans));
  run(t);
  CHECK(t.pool().stats().reserved.peak <= without + 2_MiB);
  // The copies aren't placed, and neither is what a first step makes that stays.
  CHECK(t.seen().placed >= 30 + 6 * requests_of(step) - 2);
  CHECK(t.seen().left == 0);
  CHECK(t.seen().made == 0);
  // What it held for the prologue is held no more.
  CHECK(t.pool().stats().reserved.now <= 30 * 2_MiB + plans[1].height + 4_MiB);
  end(t);

  // One that begins again halfway through finds nothing where memory has gone back.
  for (int const at : {40, 60, 80}) {
    CAPTURE(at);
    script again(before.begin(), before.begin() + at);
    // Room for those that are off the plan, until it is found again.
    for (std::uint32_t i = 0; i < 5; ++i) again.push_back({false, 3000 + i, 0, 0});
    for (std::uint32_t i = 0; i < 20; ++i) again.push_back({true, 4000 + i, 2_MiB + i * 4_KiB, 0});
    training<planned_here> other({.streams = 1, .marked = false});
    must(other.pool().adopt(plans));
    other.step(again);
    sound(other);
    end(other);
  }
}

TEST_CASE("plans may be adopted that say nothing of what comes") {
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    CAPTURE(seed);
    std::vector<plan::plan> plans = plans_for(training_step({.layers = 7, .seed = seed}), 1);
    bool prologue = true;
    SUBCASE("") {}
    SUBCASE("without what comes before the steps") { prologue = false; }
    if (!prologue) plans.erase(plans.begin());
    // Of another program, which begins as this one does.
    script s = training_step({.layers = 7, .streams = 2, .seed = seed});
    script const other = training_step({.layers = 9, .streams = 2, .seed = seed + 100});
    s.insert(s.begin() + 30, other.begin(), other.end());
    for (std::size_t i = 30; i < 30 + other.size(); ++i) s[i].slot += 1000;
    training<planned_here> t({.streams = 2, .marked = seed % 2 == 0, .host_memory = true});
    must(t.pool().adopt(plans));
    t.begin();
    t.steps(4, other, perturbation::all(20));
    t.regular();
    t.steps(4, s);
    sound(t);
    t.tidy();
    if (seed % 2 == 0) CHECK(recovers(t, s, 40));
    end(t);
  }
}

TEST_CASE("plans may name streams that the program has not used") {
  for (std::uint32_t const other : {1u, 5u, ~0u - 1, ~0u}) {
    CAPTURE(other);
    script const s = training_step({.streams = 2});
    std::vector<plan::plan> plans = plans_for(s, 2);
    for (plan::plan& p : plans) {
      for (std::size_t i = 0; i < p.requests.size(); i += 3) p.requests[i].stream = other;
    }
    training<planned_here> t({.streams = 2, .host_memory = true});
    must(t.pool().adopt(std::move(plans)));
    t.begin();
    t.steps(6, s);
    sound(t);
    end(t);
  }
  // Of a program with two, by one that has one at first.
  script const s = training_step({.streams = 2});
  training<planned_here> t({.streams = 1, .host_memory = true});
  must(t.pool().adopt(plans_for(s, 2)));
  t.begin();
  t.steps(4, training_step({}));
  sound(t);
  end(t);
}

TEST_CASE("a pool may be trimmed and go before an adopted plan has begun") {
  script const s = training_step({});
  training<planned_here> t;
  must(t.pool().adopt(plans_for(s, 1)));
  CHECK(must(t.pool().trim()) == 0);
  CHECK(must(t.pool().trim_passed()) == 0);
  t.steps(4, s);
  end(t);
}

TEST_CASE("plans that break a rule are refused, and the pool goes on without") {
  script const s = training_step({});
  std::vector<plan::plan> const good = plans_for(s, 1);
  auto const refused = [&](auto&& harm) {
    std::vector<plan::plan> plans = good;
    harm(plans);
    training<planned_here> t;
    fails_with(t.pool().adopt(std::move(plans)), errc::invalid_argument);
    t.begin();
    t.steps(4, s);
    follows(t, s, 2);
    end(t);
  };
  refused([](auto& p) { p[1].requests.clear(); });
  refused([](auto& p) { p[0].requests.clear(); });
  refused([](auto& p) { std::swap(p[0], p[1]); });
  refused([](auto& p) { p[1].period = 7; });
  refused([](auto& p) { p[1].period = 0; });
  refused([](auto& p) { p[1].height = 512; });
  refused([](auto& p) { std::swap(p[1].requests[3], p[1].requests[4]); });
  refused([](auto& p) { p[1].requests[3].birth = p[1].requests[4].birth; });
  refused([](auto& p) { p[1].requests[3].death = p[1].requests[3].birth; });
  refused([](auto& p) { p[1].requests[3].death = p[1].requests[3].birth - 1; });
  refused([](auto& p) { p[1].requests[3].death = p[1].requests[3].birth + p[1].period + 1; });
  refused([](auto& p) { p[1].requests[3].size = 0; });
  refused([](auto& p) { p[1].requests[3].size = 100; });
  refused([](auto& p) { p[1].requests[3].size = ~bytes{511}; });
  refused([](auto& p) { p[1].requests[3].offset = ~bytes{1023}; });
  refused([](auto& p) { p[1].requests[3].offset += 1; });
  refused([](auto& p) { p[1].requests[3].offset = p[1].requests[2].offset; });
}

TEST_CASE("plans within the rules may still be absurd") {
  script const s = training_step({.seed = 3});
  std::vector<plan::plan> const good = plans_for(s, 1);
  auto const survives = [&](auto&& change) {
    std::vector<plan::plan> plans = good;
    change(plans);
    training<planned_here> t({.host_memory = true, .capacity = 64_MiB});
    must(t.pool().adopt(std::move(plans)));
    t.begin();
    t.steps(3, s);
    sound(t);
    CHECK(recovers(t, s, 40));
    end(t);
  };
  survives([](auto& p) { p[1].height = ~bytes{0}; });
  survives([](auto& p) { p[1].requests[40].offset = bytes{1} << 62, p[1].height = ~bytes{0}; });
  survives([](auto& p) {
    p[1].requests[40].size = bytes{1} << 45, p[1].requests[40].offset = p[1].height, p[1].height = bytes{1} << 50;
  });
  survives([](auto& p) {
    for (auto& r : p[1].requests) r.offset = plan::step_request::nowhere;
  });
  survives([](auto& p) {
    for (auto& r : p[1].requests) r.stream = ~std::uint32_t{0};
  });
  survives([](auto& p) {
    for (auto& r : p[1].requests) r.stream = static_cast<std::uint32_t>(r.birth % 3);
  });
  survives([](auto& p) { p.insert(p.end(), 20, p[1]); });
  survives([](auto& p) { p[0].requests.resize(1); });
  survives([](auto& p) { p[1].requests.resize(1); });
  survives([](auto& p) { p[1].period *= 1000; });
}

TEST_CASE("of two requests of which one dies as the other is born, the first is looked out for when it stays") {
  // 0..1024 until 2, 512..1024 from 2 on: its time is over, but it is not gone.
  plan::plan p{.requests = {{.size = 1024, .stream = 0, .birth = 0, .death = 2, .offset = 0},
                            {.size = 512, .stream = 0, .birth = 2, .death = 3, .offset = 512}},
               .period = 4,
               .repeats = false,
               .height = 1024,
               .bound = 1024};
  training<planned_in_order> t;
  must(t.pool().adopt({p}));
  address const first = *t.take({.size = 1024});
  address const second = *t.take({.size = 512});
  sound(t);
  t.give(first);
  t.give(second);
  end(t);
}

TEST_CASE("the pool doesn't grow for what a plan takes to live on, while memory of the plan's is idle") {
  constexpr std::uint32_t layers = 8;
  constexpr bytes passing = 4_MiB;
  // A block in slot `first`, at once freed or not; layers; the block in slot `last` goes.
  auto const step = [](std::uint32_t first, bool at_once, std::uint32_t last) {
    script s{{true, first, passing}};
    if (at_once) s.push_back({false, first});
    for (std::uint32_t i = 0; i < layers; ++i) s.push_back({true, i, 1_MiB + i * 16_KiB});
    for (std::uint32_t i = layers; i-- > 0;) s.push_back({false, i});
    if (!at_once) s.push_back({false, last});
    return s;
  };
  training<planned_here> t;
  t.begin();
  // Two slots take turns: each block stays until the end of the step after its own.
  for (std::uint32_t i = 0; i < 6; ++i) t.step(step(layers + i % 2, false, layers + (i + 1) % 2));
  sound(t);
  REQUIRE(t.seen().placed > 0);
  bytes const reserved = t.pool().stats().reserved.now;
  (void)t.take({.size = passing, .on = t.stream_at(0)});  // one block more does not fit beside the plan
  script const s = step(layers, true, 0);
  t.steps(4, s);
  sound(t);
  CHECK(t.pool().stats().reserved.now == reserved);
  CHECK(recovers(t, s, 40));
  CHECK(t.pool().stats().reserved.now == reserved);
  end(t);
}

TEST_CASE("what is no live block is told from one that was") {
  training<planned_here> t;
  script const s = training_step({});
  t.begin();
  t.steps(5, s);
  pool_snapshot const shot = t.pool().snapshot();
  REQUIRE_FALSE(shot.planned.empty());
  t.pool().mark_step();
  address const p = *t.take({.size = s[0].allocates ? s[0].size : s[1].size, .on = t.stream_at(0)});
  REQUIRE(t.seen().placed > 0);
  bool const planned =
      std::ranges::any_of(t.pool().snapshot().planned_live, [&](auto const& b) { return b.begin == p; });
  REQUIRE(planned);
  fails_with(t.pool().deallocate(p + 1), errc::unknown_pointer);
  fails_with(t.pool().deallocate(p + 512), errc::unknown_pointer);
  fails_with(t.pool().record_stream(p + 512, stream{9}), errc::unknown_pointer);
  t.give(p);
  fails_with(t.pool().deallocate(p), errc::double_free);
  fails_with(t.pool().record_stream(p, stream{9}), errc::double_free);
  fails_with(t.pool().deallocate(p + 1), errc::unknown_pointer);
  fails_with(t.pool().deallocate(address{512}), errc::unknown_pointer);
  must(t.pool().allocate_at(p, {.size = 512, .on = t.stream_at(0)}));
  fails_with(t.pool().allocate_at(p, {.size = 512, .on = t.stream_at(0)}), errc::out_of_memory);
  must(t.pool().deallocate(p));
  sound(t);
  end(t);
}
