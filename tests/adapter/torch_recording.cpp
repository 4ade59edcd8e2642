#include "gmlake/adapter/torch_recording.hpp"

#include <random>
#include <thread>

#include "gmlake/adapter/torch_operations.hpp"
#include "gmlake/trace/reader.hpp"
#include "gmlake/trace/summary.hpp"
#include "tests/adapter/torch_rig.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};
constexpr torch_pool_id p{0, 1};
constexpr std::size_t most_samples = 4000;

/// The recorded trace, which has to be well-formed.
[[nodiscard]] trace::trace read_back(torch_recording const& r) {
  trace::parse_result read = trace::read(r.text());
  REQUIRE_MESSAGE(read.has_value(), "line " << read.error.line << ": " << read.error.message);
  return std::move(read.value);
}

/// Bytes that live at a trace's end.
[[nodiscard]] bytes left_over(trace::trace const& t) {
  bytes live = 0;
  std::vector<bytes> sizes(t.allocations);
  for (trace::event const& e : t.events) {
    if (e.kind == trace::event_kind::allocate) live += sizes[e.id] = e.size;
    if (e.kind == trace::event_kind::deallocate) live -= sizes[e.id];
  }
  return live;
}

[[nodiscard]] bytes highest(trace::time_series const& s, bytes trace::time_series::sample::* what) {
  bytes most = 0;
  for (auto const& one : s.samples) most = std::max(most, one.*what);
  return most;
}

}  // namespace

TEST_CASE("recording that starts in mid-life begins with what lives then, in every pool") {
  torch_rig r;
  torch_recording recording;
  address const x = r.take(10 * mib, a);
  r.give(r.take(50 * mib, a));  // before the beginning
  REQUIRE(r.device().begin(p, only({b})));
  address const y = r.take(5 * mib, b);
  recording.start(r.device());
  r.give(x);
  address const z = r.take(7 * mib, a);
  r.give(y);
  trace::trace const t = read_back(recording);
  trace::trace_summary const s = trace::summarize(t);
  CHECK(t.allocations == 3);
  CHECK(s.operations == 5);
  CHECK(s.peak_requested == 15 * mib);
  CHECK(s.streams == 2);
  CHECK(left_over(t) == 7 * mib);
  auto const seen = recording.look();
  CHECK(seen.peak_requested == 15 * mib);
  CHECK(seen.allocations == 3);
  CHECK(seen.events == 5);
  r.give(z);
  REQUIRE(r.device().end(p));
}

TEST_CASE("marks stand in the trace where they were made, and steps are counted") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  recording.mark("step");
  address const x = r.take(mib, a);
  recording.mark("backward");
  recording.mark("step");
  recording.mark("odd\nlabel");
  r.give(x);
  trace::trace const t = read_back(recording);
  REQUIRE(t.events.size() == 6);
  CHECK(t.labels == std::vector<std::string>{"step", "backward", "odd?label"});
  CHECK(t.events[0].kind == trace::event_kind::mark);
  CHECK(t.events[1].kind == trace::event_kind::allocate);
  CHECK(t.events[2].id == 1);
  CHECK(t.events[3].id == 0);
  CHECK(recording.look().steps == 2);
  CHECK(trace::summarize(t).steps == 2);
}

TEST_CASE("starting again forgets what was recorded, and begins with what lives") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  recording.mark("step");
  address const x = r.take(30 * mib, a);
  address const y = r.take(mib, a);
  r.give(x);
  r.device().listen(torch_audience::recording, nullptr);
  recording.start(r.device());
  auto const seen = recording.look();
  CHECK(seen.events == 1);
  CHECK(seen.steps == 0);
  CHECK(seen.peak_requested == mib);
  CHECK_FALSE(seen.peak);
  CHECK(seen.series.samples.size() == seen.events);  // of what lives
  CHECK(trace::summarize(read_back(recording)).peak_requested == mib);
  r.give(y);
  CHECK(left_over(read_back(recording)) == 0);
}

TEST_CASE("what happens once nobody listens is not recorded, and what was stays") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  address const x = r.take(mib, a);
  r.device().listen(torch_audience::recording, nullptr);
  r.give(x);
  (void)r.take(mib, a);
  CHECK(recording.look().events == 1);
  CHECK(left_over(read_back(recording)) == mib);
}

TEST_CASE("the peak's map shows where everything was at the peak") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  CHECK_FALSE(recording.look().peak);
  address const x = r.take(20 * mib, a);
  REQUIRE(r.device().begin(p, only({b})));
  address const y = r.take(10 * mib, b);
  REQUIRE(r.device().end(p));
  r.give(x);
  r.give(y);
  auto const seen = recording.look();
  REQUIRE(seen.peak);
  CHECK(seen.peak_event == 1);
  CHECK(seen.peak_requested == 30 * mib);
  bytes requested = 0;
  for (block_snapshot const& one : seen.peak->blocks) requested += one.requested;
  for (stitch_snapshot const& one : seen.peak->stitches) requested += one.requested;
  CHECK(requested == 30 * mib);
  bytes chunks = 0;
  for (chunk_snapshot const& one : seen.peak->chunks) chunks += one.size;
  CHECK(chunks == highest(seen.series, &trace::time_series::sample::reserved));
}

TEST_CASE("a new map is made where the peak has risen by a fiftieth, and not before") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  (void)r.take(100 * mib, a);
  CHECK(recording.look().peak_event == 0);
  (void)r.take(mib, a);
  (void)r.take(mib, a);
  CHECK(recording.look().peak_event == 0);
  CHECK(recording.look().peak_requested == 102 * mib);
  (void)r.take(mib, a);
  CHECK(recording.look().peak_event == 3);
  r.give(r.take(mib, a));
  CHECK(recording.look().peak_event == 3);
}

TEST_CASE("the series follows what is requested, live and reserved") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  address const x = r.take(10 * mib + 100, a);
  address const y = r.take(20 * mib, a);
  r.give(x);
  r.give(y);
  auto const s = recording.look().series;
  CHECK(s.events == 4);
  CHECK(s.events_per_sample == 1);
  REQUIRE(s.samples.size() == 4);
  CHECK(s.samples[0].requested == 10 * mib + 100);
  CHECK(s.samples[0].live == 10 * mib + 512);
  CHECK(s.samples[1].requested == 30 * mib + 100);
  CHECK(s.samples[2].requested == 20 * mib);
  CHECK(s.samples[3].requested == 0);
  CHECK(s.samples[3].live == 0);
  for (auto const& one : s.samples) CHECK(one.reserved >= one.live);
  CHECK(s.samples[3].reserved == r.gpu.created());
}

TEST_CASE("a full series is halved, neighbours joined by their highest values") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  std::vector<bytes> model;  // requested, after each event
  bytes now = 0;
  std::vector<std::pair<address, bytes>> live;
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < 5 * most_samples; ++i) {
    if (live.size() < 20 || (live.size() < 60 && random() % 2 == 0)) {
      bytes const n = 1 + random() % 5000;
      live.emplace_back(r.take(n, a), n);
      now += n;
    } else {
      r.give(live.back().first);
      now -= live.back().second;
      live.pop_back();
    }
    model.push_back(now);
    if (i + 1 == most_samples) CHECK(recording.look().series.samples.size() == most_samples);
    if (i == most_samples) CHECK(recording.look().series.samples.size() == most_samples / 2 + 1);
  }
  auto const s = recording.look().series;
  CHECK(s.events_per_sample == 8);
  CHECK(s.samples.size() == (model.size() + 7) / 8);
  CHECK(s.samples.size() <= most_samples);
  for (std::size_t i = 0; i < s.samples.size(); ++i) {
    auto const from = model.begin() + static_cast<std::ptrdiff_t>(8 * i);
    auto const to = model.begin() + static_cast<std::ptrdiff_t>(std::min(model.size(), 8 * i + 8));
    REQUIRE(s.samples[i].requested == *std::max_element(from, to));
  }
  CHECK(trace::summarize(read_back(recording)).peak_requested == highest(s, &trace::time_series::sample::requested));
}

// without end.
TEST_CASE("a series stays within its samples where a mark falls on the last") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  address x{};
  for (std::size_t i = 0; i + 1 < most_samples; ++i) {
    if (i % 2 == 0) x = r.take(100, a);
    else r.give(x);
  }
  recording.mark("step");
  for (int i = 0; i < 100; ++i) r.give(r.take(200, a));
  CHECK(recording.look().series.samples.size() <= most_samples);
}

TEST_CASE("a series stays within its samples where more lives at the beginning" * doctest::may_fail()) {
  torch_rig r;
  torch_recording recording;
  for (std::size_t i = 0; i < most_samples + 10; ++i) (void)r.take(100, a);
  recording.start(r.device());
  for (int i = 0; i < 100; ++i) r.give(r.take(200, a));
  CHECK(recording.look().series.samples.size() <= most_samples);
}

TEST_CASE("the series' peak is the trace's where that lies at the beginning" * doctest::may_fail()) {
  torch_rig r;
  torch_recording recording;
  address const x = r.take(50 * mib, a);
  recording.start(r.device());
  r.give(x);
  r.give(r.take(mib, a));
  auto const seen = recording.look();
  CHECK(seen.peak_requested == 50 * mib);
  CHECK(highest(seen.series, &trace::time_series::sample::requested) == seen.peak_requested);
}

TEST_CASE("a block that goes while recording starts is not taken from those that stay") {
  torch_rig r;
  torch_recording recording;
  (void)r.take(10 * mib, a);
  REQUIRE(r.device().begin(p, only({b})));
  address const x = r.take(4 * mib, b);
  REQUIRE(r.device().end(p));
  r.hooks->after_each_live = [&] { r.give(x); };  // by another thread, in life: the main pool has been looked at
  recording.start(r.device());
  (void)r.take(mib, a);
  CHECK(recording.look().peak_requested == 11 * mib);
  CHECK(trace::summarize(read_back(recording)).peak_requested == 11 * mib);
}

TEST_CASE("the series' reserved memory falls when a private pool goes") {
  torch_rig r;
  torch_recording recording;
  recording.start(r.device());
  REQUIRE(r.device().begin(p, only({a})));
  r.give(r.take(20 * mib, a));
  REQUIRE(r.device().end(p));
  REQUIRE(r.device().release(p));
  r.give(r.take(100, b));
  CHECK(recording.look().series.samples.back().reserved == r.gpu.created());
}

TEST_CASE("whatever happens, the trace is well-formed and its peak is the pools'") {
  std::uint64_t const first = from_environment("GMLAKE_TEST_SEED", 1);
  std::uint64_t const walks = from_environment("GMLAKE_TEST_WALKS", 5);
  for (std::uint64_t seed = first; seed < first + walks; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    auto const below = [&](bytes n) { return static_cast<bytes>(random() % n); };
    torch_rig_options o;
    o.lag = 20;
    torch_rig r(o);
    torch_recording recording;
    torch_operations operations;
    std::vector<std::pair<address, bytes>> live;
    bytes now = 0, peak = 0;
    bool recorded = false, open = false;
    for (int i = 0; i < 2000; ++i) {
      if (i == 500 || i == 1200) {
        r.device().listen(torch_audience::recording, nullptr);
        recording.start(r.device());
        recorded = true;
        peak = now;
      }
      std::size_t const what = below(100);
      if (what == 0) {
        if (open) {
          REQUIRE(r.device().end(p));
          REQUIRE(r.device().release(p));
        } else {
          REQUIRE(r.device().begin(p, only({b})));
        }
        open = !open;
      } else if (what == 1) {
        r.device().trim();
      } else if (what == 2) {
        recording.mark("mark");
      } else if (what < 8 && !live.empty()) {
        for (bytes n = below(4); n > 0; --n) {
          operations.access(recording, live[below(live.size())].first, below(2) == 0, below(2) == 0);
        }
        recording.took(operations.end(), std::chrono::nanoseconds(below(1000)));
        if (below(4) == 0) recording.host_copy(live.back().first);
      } else if (what < 55 || live.empty()) {
        bytes const n = below(3) == 0 ? below(20'000) : below(12 * mib);
        if (auto const got = r.device().allocate(n, below(2) == 0 ? a : b)) {
          live.emplace_back(*got, n);
          now += n;
          peak = std::max(peak, now);
        }
      } else {
        std::swap(live[below(live.size())], live.back());
        r.give(live.back().first);
        now -= live.back().second;
        live.pop_back();
      }
      if (!recorded || i % 100 != 0 || recording.look().events == 0) continue;
      trace::trace const t = read_back(recording);
      REQUIRE(trace::summarize(t).peak_requested == peak);
      REQUIRE(left_over(t) == now);
      REQUIRE(recording.look().peak_requested == peak);
    }
  }
}

TEST_CASE("recording may start while other threads allocate") {
  std::uint64_t const seed = from_environment("GMLAKE_TEST_SEED", 1);
  CAPTURE(seed);
  torch_rig_options o;
  o.lag = 0;
  torch_rig r(o);
  torch_recording recording;
  REQUIRE(r.device().begin(p, only({b})));
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  // There is something to record, whenever the threads get to run.
  std::atomic<bytes> left = 1000;
  (void)must(r.device().allocate(1000, a));
  std::vector<std::thread> all;
  for (std::uintptr_t t = 1; t < 4; ++t) {
    all.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      std::vector<std::pair<address, bytes>> live;
      while (!stop) {
        bytes const n = random() % (2 * mib);
        auto const got =
            live.size() < 30 ? r.device().allocate(n, stream{t}) : result<address>(failure(errc::out_of_memory));
        if (got) live.emplace_back(*got, n);
        if (random() % 2 == 0 || live.empty()) continue;
        std::swap(live[random() % live.size()], live.back());
        auto const owner = r.registry.find(live.back().first);
        if (owner.pool == nullptr || !r.device().deallocate(*owner.pool, live.back().first)) ++wrong;
        live.pop_back();
      }
      for (auto const& one : live) left += one.second;
    });
  }
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    r.device().listen(torch_audience::recording, nullptr);
    recording.start(r.device());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!trace::read(recording.text())) ++wrong;
    (void)recording.look();
  }
  stop = true;
  for (std::thread& t : all) t.join();
  CHECK(wrong == 0);
  CHECK(left_over(read_back(recording)) == left);
  REQUIRE(r.device().end(p));
}

TEST_CASE("an operation's accesses and its end stand in the trace where it ended, behind what it allocated") {
  torch_rig r;
  torch_recording recording;
  torch_operations operations;
  address const x = r.take(mib, a);
  recording.start(r.device());
  recording.host_copy(x);
  address const y = r.take(100, a);
  operations.access(recording, x, true, false);
  operations.access(recording, y, false, true);
  address const z = r.take(200, a);
  operations.access(recording, z, true, true);
  operations.access(recording, z, false, false);
  CHECK(operations.end() == 0);
  r.give(y);
  CHECK(recording.text() == "a,0,1048576,0\nh,0\na,1,100,0\na,2,200,0\nr,0\nw,1\nr,2\nw,2\no,0\nf,1\n");
  CHECK(recording.look().events == 10);
  CHECK(recording.look().allocations == 3);
  (void)read_back(recording);
}

TEST_CASE("an operation without accesses has no number and isn't recorded") {
  torch_rig r;
  torch_recording recording;
  torch_operations operations;
  recording.start(r.device());
  CHECK(operations.end() == torch_operations::none);
  operations.access(recording, r.take(100, a), false, false);
  CHECK(operations.end() == torch_operations::none);
  CHECK(recording.look().events == 1);
}

TEST_CASE("operations' times come in any order, and only to their own") {
  torch_rig r;
  torch_recording recording;
  torch_operations operations;
  recording.start(r.device());
  address const x = r.take(100, a);
  std::int64_t numbers[3];
  for (std::int64_t& n : numbers) {
    operations.access(recording, x, true, false);
    n = operations.end();
  }
  using std::chrono::nanoseconds;
  recording.took(numbers[2], nanoseconds(30));
  recording.took(numbers[0], nanoseconds(10));
  recording.took(numbers[0], nanoseconds(11));  // known already
  recording.took(77, nanoseconds(5));           // of nobody
  CHECK(recording.text() == "a,0,100,0\nr,0\no,10\nr,0\no,0\nr,0\no,30\n");
  r.device().listen(torch_audience::recording, nullptr);
  recording.start(r.device());
  operations.access(recording, x, true, false);
  std::int64_t const after = operations.end();
  recording.took(numbers[1], nanoseconds(20));  // of the recording before
  recording.took(after, nanoseconds(40));
  CHECK(recording.text() == "a,0,100,0\nr,0\no,40\n");
}

TEST_CASE("an operation on two devices' blocks is recorded on both, under one number") {
  torch_rig r, other;
  torch_recording here, there;
  torch_operations operations;
  here.start(r.device());
  there.start(other.device());
  address const x = r.take(100, a);
  address const y = other.take(200, a);
  operations.access(here, x, true, false);
  operations.access(there, y, false, true);
  operations.access(here, x, false, true);
  std::int64_t const number = operations.end();
  here.took(number, std::chrono::nanoseconds(5));
  there.took(number, std::chrono::nanoseconds(5));
  CHECK(here.text() == "a,0,100,0\nr,0\nw,0\no,5\n");
  CHECK(there.text() == "a,0,200,0\nw,0\no,5\n");
}

TEST_CASE("each thread's operation is its own, and stands in one piece") {
  torch_rig r;
  torch_recording recording;
  torch_operations operations;
  recording.start(r.device());
  address const x = r.take(100, a);
  address const y = r.take(100, a);
  constexpr int each = 500;
  auto const work = [&](address first, address second) {
    for (int i = 0; i < each; ++i) {
      operations.access(recording, first, true, false);
      operations.access(recording, second, false, true);
      recording.took(operations.end(), std::chrono::nanoseconds(1));
    }
  };
  std::thread one(work, x, y), two(work, y, x);
  one.join();
  two.join();
  trace::trace const t = read_back(recording);
  REQUIRE(t.events.size() == 2 + 3 * 2 * each);
  for (std::size_t i = 2; i < t.events.size(); i += 3) {
    REQUIRE(t.events[i].kind == trace::event_kind::read);
    REQUIRE(t.events[i + 1].kind == trace::event_kind::write);
    REQUIRE(t.events[i].id != t.events[i + 1].id);
    REQUIRE(t.events[i + 2].kind == trace::event_kind::operation);
    REQUIRE(t.events[i + 2].size == 1);
  }
}

TEST_CASE("the series goes on over accesses") {
  torch_rig r;
  torch_recording recording;
  torch_operations operations;
  recording.start(r.device());
  address const x = r.take(mib, a);
  for (int i = 0; i < 3; ++i) {
    operations.access(recording, x, true, false);
    (void)operations.end();
  }
  auto const s = recording.look().series;
  REQUIRE(s.samples.size() == 7);
  for (auto const& one : s.samples) CHECK(one.requested == mib);
}
