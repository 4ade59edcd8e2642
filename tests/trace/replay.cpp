#include "gmlake/trace/replay.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/trace/reader.hpp"
#include "gmlake/trace/summary.hpp"
#include "gmlake/trace/time_series.hpp"
#include "tests/trace/bump_pool.hpp"

namespace {
using namespace gmlake;
using test::bump_pool;

trace::trace trace_of(char const* text) {
  auto r = trace::read(text);
  REQUIRE(r);
  return std::move(r.value);
}

struct recorded_timeline {
  std::string calls;
  void advance(std::uint64_t n) noexcept { calls += std::to_string(n); }
  void finish_all() noexcept { calls += "!"; }
};

TEST_CASE("a replay drives the pool and tells what it did") {
  auto const t = trace_of("a,0,100,0\na,1,50,2\nf,0\na,2,10,0\n");
  bump_pool pool;
  auto const r = trace::replay(t, pool);
  CHECK(r.ok());
  CHECK(r.operations == 4);
  CHECK(r.ns_per_op() > 0);
  CHECK(r.stats.requested.peak == 150);
  CHECK(r.stats.requested.now == 60);
  CHECK(pool.stats().deallocations == 1);
}

TEST_CASE("a step finishes the timeline, every other event advances it by one, other marks do nothing") {
  auto const t = trace_of("a,0,1,0\nm,backward\nf,0\nm,step\na,1,1,0\n");
  bump_pool pool;
  recorded_timeline timeline;
  CHECK(trace::replay(t, pool, timeline).ok());
  CHECK(timeline.calls == "11!1");
}

TEST_CASE("the trace's stream numbers stand for the streams given") {
  auto const t = trace_of("a,0,1,1\n");
  bump_pool pool;
  CHECK(trace::replay(t, pool).ok());
  CHECK(pool.last_stream == stream{1});
  stream const streams[] = {stream{70}, stream{71}};
  trace::no_timeline none;
  trace::no_hooks nobody;
  CHECK(trace::replay(t, pool, none, nobody, streams).ok());
  CHECK(pool.last_stream == stream{71});
}

TEST_CASE("a replay stops at the first failure and names the event") {
  auto const t = trace_of("a,0,100,0\nm,step\na,1,50,0\nf,0\n");
  bump_pool pool(120);
  auto const r = trace::replay(t, pool);
  CHECK(r.outcome == trace::replay_outcome::failed);
  CHECK(r.failed_event == 2);
  CHECK(r.error.code == errc::out_of_memory);
  CHECK(r.operations == 1);
  CHECK(r.stats.deallocations == 0);
}

TEST_CASE("a hook sees every block, and can stop the replay") {
  struct watching : trace::no_hooks {
    std::vector<std::uint32_t> born, freed;
    bool allocated(std::uint32_t id, address, bytes) { return born.push_back(id), true; }
    bool deallocating(std::uint32_t id, address) { return freed.push_back(id), id != 1; }
  } hooks;
  auto const t = trace_of("a,0,1,0\na,1,1,0\nf,0\nf,1\na,2,1,0\n");
  bump_pool pool;
  trace::no_timeline none;
  auto const r = trace::replay(t, pool, none, hooks);
  CHECK(r.outcome == trace::replay_outcome::stopped);
  CHECK(r.failed_event == 3);
  CHECK(hooks.born == std::vector<std::uint32_t>{0, 1});
  CHECK(hooks.freed == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("samples keep the peaks exact, and the snapshot shows the peak") {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "a," + std::to_string(i) + "," + (i == 617 ? "5000" : "10") + ",0\n" + "f," + std::to_string(i) + "\n";
  }
  auto const t = trace_of(text.c_str());
  auto const summary = trace::summarize(t);
  CHECK(summary.peak_requested == 5000);
  CHECK(summary.peak_event == 1234);
  bump_pool pool;
  trace::no_timeline none;
  trace::sampler<bump_pool> hooks(pool, t.events.size(), summary.peak_event, 30);
  CHECK(trace::replay(t, pool, none, hooks).ok());
  auto const& s = hooks.series();
  CHECK(s.samples.size() <= 30);
  CHECK(s.events_per_sample * s.samples.size() >= t.events.size());
  for (std::size_t i = 0; i < s.samples.size(); ++i) {
    CHECK(s.samples[i].live == (i == summary.peak_event / s.events_per_sample ? 5000u : 10u));
  }
  REQUIRE(hooks.peak());
  CHECK(hooks.peak()->blocks.at(0).size == 5000);
}

TEST_CASE("what the trace tells of accesses and times is no business of the pool's") {
  auto const t = trace_of("m,step\na,0,100,0\nh,0\na,1,50,2\nr,0\nw,1\no,700\nf,0\no,5\nm,step\n");
  struct counting : trace::no_hooks {
    std::vector<std::size_t> events;
    void passed(std::size_t i) { events.push_back(i); }
  } hooks;
  bump_pool pool;
  recorded_timeline timeline;
  auto const r = trace::replay(t, pool, timeline, hooks);
  CHECK(r.ok());
  CHECK(r.operations == 3);
  CHECK(timeline.calls == "!111!");
  CHECK(hooks.events == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  auto const s = trace::summarize(t);
  CHECK(s.operations == 3);
  CHECK(s.peak_requested == 150);
  CHECK(s.peak_event == 3);
  CHECK(s.steps == 2);
}

TEST_CASE("samples last over what is no request") {
  auto const t = trace_of("a,0,100,0\nr,0\no,5\nr,0\no,5\nf,0\n");
  bump_pool pool;
  trace::no_timeline none;
  trace::sampler<bump_pool> hooks(pool, t.events.size(), 0);
  CHECK(trace::replay(t, pool, none, hooks).ok());
  std::vector<bytes> requested;
  for (auto const& one : hooks.series().samples) requested.push_back(one.requested);
  CHECK(requested == std::vector<bytes>{100, 100, 100, 100, 100, 0});
}

TEST_CASE("a summary counts what the trace says") {
  auto const s = trace::summarize(trace_of("m,step\na,0,100,0\na,1,50,7\nm,backward\nf,0\nm,step\na,2,10,0\n"));
  CHECK(s.peak_requested == 150);
  CHECK(s.peak_event == 2);
  CHECK(s.operations == 4);
  CHECK(s.steps == 2);
  CHECK(s.streams == 8);
}

TEST_CASE("scaling divides sizes and rounds up") {
  auto t = trace_of("a,0,100,0\na,1,0,0\na,2,1,0\nf,0\no,800\n");
  trace::scale(t, 8);
  CHECK(t.events[0].size == 13);
  CHECK(t.events[1].size == 0);
  CHECK(t.events[2].size == 1);
  CHECK(t.events[4].size == 800);
}

}  // namespace
