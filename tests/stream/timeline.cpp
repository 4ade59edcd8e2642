#include "gmlake/stream/timeline.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/stream/one_stream.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "tests/backend/must.hpp"

namespace {
using namespace gmlake;
using namespace gmlake::test;

/// As far as any stream has come.
constexpr tick latest_of_all = ~tick{0};

constexpr stream first{};
constexpr stream second{2};
constexpr stream third{3};

/// A timeline, and the device that it is about. Fences are reached only when a test says so.
struct observed {
  std::shared_ptr<simulated_timeline> device =
      std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless});
  timeline<simulated_streams> time{simulated_streams(device)};

  stream_index enter(stream s) { return must(time.index_of(s)); }
  tick frees(stream_index i, int n = 1) {
    tick last = 0;
    for (int k = 0; k < n; ++k) last = time.stamp(i);
    return last;
  }
  [[nodiscard]] std::uint64_t records() const { return device->counts().records; }
};

TEST_CASE("a stream has one place in the table, which is not nobody's") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  CHECK(a != nobody);
  CHECK(b != nobody);
  CHECK(a != b);
  CHECK(o.enter(first) == a);
  CHECK(o.enter(second) == b);
  CHECK(o.time.name(a) == first);
  CHECK(o.time.name(b) == second);
}

TEST_CASE("memory is shared once there is a second stream") {
  observed o;
  CHECK_FALSE(o.time.shared());
  o.enter(first);
  CHECK_FALSE(o.time.shared());
  o.enter(second);
  CHECK(o.time.shared());
}

TEST_CASE("an entry taken back leaves the others as they were") {
  observed o;
  o.enter(second);
  o.time.forget_last();
  stream_index const a = o.enter(first);
  CHECK(a != nobody);
  CHECK(o.time.name(a) == first);
  CHECK_FALSE(o.time.shared());
}

TEST_CASE("stamps rise over all streams, and nobody's memory is free for all") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const one = o.frees(a);
  tick const two = o.frees(b);
  tick const three = o.frees(a);
  CHECK((one < two && two < three));
  CHECK(o.time.latest(a) == three);
  CHECK(o.time.latest(b) == two);
  CHECK(o.time.passed(nobody, three));
}

TEST_CASE("a free is ordered for its own stream at once, for others only when they waited or it is passed") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const t = o.frees(a);
  CHECK(o.time.ordered(a, a, t));
  CHECK_FALSE(o.time.ordered(b, a, t));
  CHECK_FALSE(o.time.passed(a, t));
  must(o.time.fence_all(latest_of_all));
  CHECK_FALSE(must(o.time.poll()));
  o.device->finish_all();
  CHECK(must(o.time.poll()));
  CHECK(o.time.passed(a, t));
  CHECK(o.time.ordered(b, a, t));
  CHECK_FALSE(must(o.time.poll()));
}

TEST_CASE("where everything runs in host order, every free is passed at once and no fence is recorded") {
  timeline<one_stream> time{one_stream{}};
  stream_index const a = must(time.index_of(first));
  stream_index const b = must(time.index_of(second));
  tick const t = time.stamp(a);
  CHECK(time.passed(a, t));
  CHECK(time.ordered(b, a, t));
  CHECK_FALSE(must(time.synchronize()));
  CHECK(time.host_waits() == 0);
}

TEST_CASE("a single stream's frees record nothing until somebody asks") {
  observed o;
  stream_index const a = o.enter(first);
  o.frees(a, 10'000);
  CHECK_FALSE(must(o.time.poll()));
  CHECK(o.records() == 0);
}

TEST_CASE("one fence is recorded for many frees") {
  observed o;
  stream_index const a = o.enter(first);
  o.enter(second);
  for (int i = 0; i < 3200; ++i) {
    o.frees(a);
    must(o.time.note_free(a));
  }
  CHECK(o.records() == 100);
  must(o.time.fence_all(latest_of_all));
  CHECK(o.records() == 100);  // there is nothing new to cover
  o.frees(a);
  must(o.time.fence_all(latest_of_all));
  must(o.time.fence_all(latest_of_all));
  CHECK(o.records() == 101);
}

TEST_CASE("a host that runs far ahead of the device keeps a bounded number of fences") {
  observed o;
  stream_index const a = o.enter(first);
  o.enter(second);
  for (int i = 0; i < 100'000; ++i) {
    o.frees(a);
    must(o.time.note_free(a));
  }
  CHECK(o.device->counts().live_fences <= 256);
  o.device->finish_all();
  must(o.time.fence_all(latest_of_all));
  o.device->finish_all();
  must(o.time.poll());
  CHECK(o.time.passed(a, o.time.latest(a)));
  CHECK(o.device->counts().live_fences == 0);
}

TEST_CASE("a wait on the device orders what was freed up to its fence, for the stream that waits") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  stream_index const c = o.enter(third);
  tick const early = o.frees(a);
  tick const late = o.frees(a);
  must(o.time.wait(b, a, early));
  CHECK(o.time.ordered(b, a, early));
  CHECK(o.time.ordered(b, a, late));  // the fence was recorded behind it
  CHECK_FALSE(o.time.ordered(c, a, early));
  CHECK_FALSE(o.time.passed(a, early));
  CHECK(o.time.device_waits() == 1);
  CHECK(o.device->counts().waits == 1);

  must(o.time.wait(b, a, late));  // ordered already
  CHECK(o.time.device_waits() == 1);
  must(o.time.wait(c, a, late));  // by the same fence
  CHECK(o.time.device_waits() == 2);
  CHECK(o.records() == 1);

  tick const after = o.frees(a);
  CHECK_FALSE(o.time.ordered(b, a, after));
  must(o.time.wait(b, a, after));
  CHECK(o.records() == 2);
}

TEST_CASE("a wait is for the earliest fence that covers the free") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const early = o.frees(a);
  must(o.time.fence_all(latest_of_all));
  tick const late = o.frees(a);
  must(o.time.fence_all(latest_of_all));
  must(o.time.wait(b, a, early));
  CHECK(o.time.ordered(b, a, early));
  CHECK_FALSE(o.time.ordered(b, a, late));
}

TEST_CASE("the host waits for every stream that has frees to pass, and for no other") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  o.enter(third);
  CHECK_FALSE(must(o.time.synchronize()));
  tick const one = o.frees(a);
  tick const two = o.frees(b);
  CHECK_FALSE(o.time.all_passed(one));
  CHECK(must(o.time.synchronize()));
  CHECK(o.time.host_waits() == 2);
  CHECK(o.time.all_passed(two));
  CHECK_FALSE(must(o.time.synchronize()));
}

TEST_CASE("everything up to a stamp has passed once each stream has passed what it freed by then") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const one = o.frees(a);
  tick const two = o.frees(b);
  must(o.time.fence_all(latest_of_all));
  CHECK_FALSE(o.time.all_passed(one));
  o.device->finish_all();
  tick const late = o.frees(b);
  must(o.time.poll());
  CHECK(o.time.all_passed(one));
  CHECK(o.time.all_passed(two));
  CHECK_FALSE(o.time.all_passed(late));
}

TEST_CASE("whether everything up to a stamp has passed is asked by fences, where none covers it yet") {
  observed o;
  stream_index const resting = o.enter(first);
  stream_index const other = o.enter(second);
  o.frees(resting);
  tick const t = o.frees(other);
  tick const later = o.frees(resting);
  CHECK_FALSE(must(o.time.learn_all_passed(t)));
  CHECK(o.records() == 2);
  o.device->finish_all();
  CHECK(must(o.time.learn_all_passed(t)));
  CHECK(must(o.time.learn_all_passed(later)));
  CHECK(o.records() == 2);
}

TEST_CASE("what a stream frees later does not keep what was freed before from having passed") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const before = o.frees(a);
  must(o.time.fence_all(latest_of_all));
  tick const one = o.frees(b);
  must(o.time.fence_all(latest_of_all));
  o.device->finish_all();
  must(o.time.poll());
  CHECK(o.time.all_passed(one));
  tick const late = o.frees(a), last = o.frees(a);
  CHECK(o.time.all_passed(one));  // no fence is behind those yet
  CHECK_FALSE(o.time.all_passed(late));
  must(o.time.fence_all(latest_of_all));
  tick const later = o.frees(a);
  CHECK(o.time.all_passed(before));
  CHECK(o.time.all_passed(one));
  CHECK_FALSE(o.time.all_passed(late));
  CHECK_FALSE(o.time.all_passed(last));
  o.device->finish_all();
  must(o.time.poll());
  CHECK(o.time.all_passed(last));
  CHECK_FALSE(o.time.all_passed(later));
}

TEST_CASE("frees that are fenced apart are waited for without what comes later") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  o.enter(third);
  CHECK_FALSE(o.time.apart(a));
  tick const one = o.frees(a);
  auto const one_done = o.device->queued(first);
  must(o.time.fence_apart(a));
  CHECK(o.records() == 1);
  CHECK(o.time.apart(a));
  CHECK_FALSE(o.time.apart(b));
  auto const between = o.device->queued(first);
  tick const two = o.frees(a);
  must(o.time.fence_apart(a));
  must(o.time.fence_apart(a));  // nothing has been freed since
  CHECK(o.records() == 2);

  must(o.time.wait(b, a, one));
  CHECK(o.records() == 2);
  CHECK(o.device->ordered(one_done, second));
  CHECK_FALSE(o.device->ordered(between, second));
  CHECK_FALSE(o.time.ordered(b, a, two));
  must(o.time.wait(b, a, two));
  CHECK(o.device->ordered(between, second));
}

TEST_CASE("what can't be fenced apart comes under a later fence") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const one = o.frees(a);
  must(o.device->set_captured(first, true));
  fails_with(o.time.fence_apart(a), errc::not_supported);
  must(o.device->set_captured(first, false));
  CHECK_FALSE(o.time.passed(a, one));
  must(o.time.wait(b, a, one));
  CHECK(o.records() == 1);
  CHECK(o.time.ordered(b, a, one));
}

TEST_CASE("nothing is kept apart where there is one stream, nor for a stream that has taken another's place") {
  observed o;
  stream_index const a = o.enter(first);
  o.frees(a);
  must(o.time.fence_apart(a));
  CHECK_FALSE(o.time.apart(a));
  o.enter(second);
  CHECK(o.time.apart(a));
  must(o.time.retire(first));
  o.device->finish_all();
  must(o.time.poll());
  REQUIRE(o.enter(third) == a);
  CHECK_FALSE(o.time.apart(a));
}

TEST_CASE("a retired stream's frees stay guarded by one last fence") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const before = o.frees(b);
  must(o.time.retire(second));
  must(o.device->destroy(second));
  tick const after = o.frees(b);  // a block handed out to it comes back late
  CHECK_FALSE(o.time.passed(b, before));
  CHECK_FALSE(o.time.passed(b, after));
  must(o.time.wait(a, b, after));
  CHECK(o.time.ordered(a, b, after));
  CHECK(o.records() == 1);
  CHECK(o.device->counts().device_syncs == 0);
  o.device->finish_all();
  must(o.time.poll());
  CHECK(o.time.passed(b, after));
}

TEST_CASE("a retired stream's name can come back as another stream's") {
  observed o;
  o.enter(first);
  stream_index const old = o.enter(second);
  tick const freed = o.frees(old);
  must(o.time.retire(second));

  SUBCASE("while the old one's work goes on, in a place of its own") {
    stream_index const now = o.enter(second);
    CHECK(now != old);
    CHECK(o.enter(second) == now);
    CHECK_FALSE(o.time.ordered(now, old, freed));
    tick const t = o.frees(now);
    CHECK_FALSE(o.time.passed(now, t));
  }
  SUBCASE("once that is done, in its place") {
    o.device->finish_all();
    must(o.time.poll());
    stream_index const now = o.enter(second);
    CHECK(now == old);
    tick const t = o.frees(now);
    CHECK(t > freed);
    CHECK_FALSE(o.time.passed(now, t));
    must(o.time.retire(second));  // and again
    CHECK(o.time.latest(now) > t);
  }
  SUBCASE("or its place is taken by a stream of another name") {
    o.device->finish_all();
    must(o.time.poll());
    CHECK(o.enter(third) == old);
    CHECK(o.time.name(old) == third);
    CHECK(o.enter(second) != old);
  }
}

TEST_CASE("what a stream waited for is not held true of the next one in its place") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const t = o.frees(a);
  must(o.time.wait(b, a, t));
  must(o.time.retire(second));
  must(o.time.fence_all(latest_of_all));
  o.device->finish_all();
  tick const later = o.frees(a);
  must(o.time.wait(b, a, later));
  must(o.time.poll());
  REQUIRE(o.enter(third) == b);
  CHECK_FALSE(o.time.ordered(b, a, later));
}

TEST_CASE("retiring a stream that was never seen does nothing") {
  observed o;
  must(o.time.retire(second));
  CHECK(o.records() == 0);
}

TEST_CASE("where a stream was destroyed unannounced, the host waits for the device and all is passed") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const one = o.frees(a);
  tick const two = o.frees(b);
  must(o.device->destroy(second));
  SUBCASE("when a fence is due") {
    o.frees(b, 100);
    must(o.time.note_free(b));
  }
  SUBCASE("when another stream waits for it") { must(o.time.wait(a, b, two)); }
  SUBCASE("when the host waits") { must(o.time.synchronize()); }
  SUBCASE("when it is retired too late") { must(o.time.retire(second)); }
  CHECK(o.time.passed(a, one));
  CHECK(o.time.passed(b, two));
  CHECK(o.device->counts().device_syncs == 1);
  CHECK(o.time.host_waits() >= 1);
  tick const after = o.frees(a);
  CHECK_FALSE(o.time.passed(a, after));
}

TEST_CASE("a stream that is being captured can't be asked, and is later") {
  observed o;
  stream_index const a = o.enter(first);
  stream_index const b = o.enter(second);
  tick const t = o.frees(a);
  must(o.device->set_captured(first, true));
  fails_with(o.time.wait(b, a, t), errc::not_supported);
  fails_with(o.time.fence_all(latest_of_all), errc::not_supported);
  CHECK_FALSE(o.time.ordered(b, a, t));
  CHECK(o.time.device_waits() == 0);
  must(o.device->set_captured(first, false));
  must(o.time.wait(b, a, t));
  CHECK(o.time.ordered(b, a, t));
}

TEST_CASE("a timeline releases every fence it recorded") {
  auto device = std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless});
  {
    timeline<simulated_streams> time{simulated_streams(device)};
    for (stream const s : {first, second}) {
      stream_index const i = must(time.index_of(s));
      for (int k = 0; k < 10; ++k) {
        (void)time.stamp(i);
        must(time.fence_all(latest_of_all));
      }
    }
    CHECK(device->counts().live_fences == 20);
  }
  CHECK(device->counts().live_fences == 0);
  CHECK(device->counts().misuses == 0);
}

TEST_CASE("whatever a timeline holds to be ordered is ordered on the device") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    auto device = std::make_shared<simulated_timeline>(timeline_options{.lag = 1 + random() % 200});
    timeline<simulated_streams> time{simulated_streams(device)};
    struct freed {
      stream_index on;
      tick stamp;
      simulated_timeline::point upto;
    };
    std::vector<stream> streams{stream{1}};
    std::vector<freed> frees;
    std::uintptr_t names = 1;
    auto const any = [&] { return streams[random() % streams.size()]; };
    for (int step = 0; step < 2000; ++step) {
      stream const s = any();
      stream_index const i = must(time.index_of(s));
      switch (random() % 12) {
        default:
          frees.push_back({i, time.stamp(i), device->queued(s)});
          must(time.note_free(i));
          break;
        case 6: (void)must(time.poll()); break;
        case 7: {
          if (frees.empty()) break;
          freed const& f = frees[frees.size() - 1 - random() % std::min<std::size_t>(frees.size(), 40)];
          must(time.wait(i, f.on, f.stamp));
          REQUIRE(time.ordered(i, f.on, f.stamp));
          break;
        }
        case 8: device->advance(random() % 50); break;
        case 9:
          if (random() % 10 == 0) (void)must(time.synchronize());
          break;
        case 10:
          if (streams.size() < 5) streams.push_back(static_cast<stream>(++names));
          break;
        case 11:
          if (streams.size() < 3 || random() % 4 != 0) break;
          // Half of those that go say so. What has been freed by the others is known to be done only by all the device.
          if (random() % 2 == 0) must(time.retire(s));
          must(device->destroy(s));
          if (auto const noted = time.fence_all(latest_of_all); !noted) FAIL(describe(noted.error()));
          std::erase(streams, s);
          must(time.retire(s));
          break;
        case 5:
          if (random() % 4 != 0) break;
          frees.push_back({i, time.stamp(i), device->queued(s)});
          must(time.fence_apart(i));
          break;
      }
      if (!frees.empty()) {
        tick const t = frees[random() % frees.size()].stamp;
        auto const over = [&](freed const& f) { return f.stamp > t || time.passed(f.on, f.stamp); };
        if (time.all_passed(t) && !std::ranges::all_of(frees, over)) FAIL("not all has passed");
      }
      // A stamp of a lane that a stream has left and another taken over means the old stream's work still.
      for (std::size_t k = frees.size() - std::min<std::size_t>(frees.size(), 60); k < frees.size(); ++k) {
        freed const& f = frees[k];
        for (stream const t : streams) {
          if (time.name(f.on) != f.upto.on && t == time.name(f.on)) continue;  // passed before it was taken over
          stream_index const user = *time.index_of(t);
          if (time.ordered(user, f.on, f.stamp) && !device->ordered(f.upto, t)) FAIL("not ordered on the device");
        }
      }
    }
  }
}

}  // namespace
