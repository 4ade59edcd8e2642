#include "gmlake/adapter/torch_counts.hpp"

#include "gmlake/adapter/torch_streams.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "tests/observe/observer_suite.hpp"
#include "tests/stream/stream_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

torch_foreign_streams const no_foreign;
using torch_simulated = torch_streams<simulated_streams>;

}  // namespace

template <>
std::optional<torch_simulated> gmlake::test::make_streams() {
  auto time = std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless});
  return torch_simulated(simulated_streams(std::move(time)), std::make_shared<std::atomic<int>>(0), no_foreign);
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(observer, torch_observer);
TEST_CASE_TEMPLATE_INVOKE(stream_policy, torch_simulated);
}  // namespace gmlake::test

// ---- gauges
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("a gauge knows its value, its peak, and what was added and taken") {
  torch_gauge g;
  g.add(5);
  g.add(3);
  g.take(6);
  g.add(1);
  CHECK(g.current == 3);
  CHECK(g.peak == 8);
  CHECK(g.added == 9);
  CHECK(g.taken == 6);
  torch_gauge other;
  other.add(10);
  g.merge(other);
  CHECK(g.current == 13);
  CHECK(g.peak == 18);
  CHECK(g.added == 19);
  CHECK(g.taken == 6);
}

TEST_CASE("requests count by what was asked for, chunks by whether they are small ones") {
  torch_observer o(nullptr, 100, 2_MiB);
  o.created(address{1}, 2_MiB);
  o.created(address{2}, 20_MiB);
  o.allocated({.at = address{1}, .requested = 100, .size = 512});
  o.allocated({.at = address{2}, .requested = 101, .size = 1024});
  o.deallocated({.at = address{1}, .requested = 100, .size = 512});
  torch_lines l = o.lines();
  CHECK(l.small.allocation.current == 0);
  CHECK(l.small.allocation.added == 1);
  CHECK(l.small.allocated_bytes.peak == 512);
  CHECK(l.small.requested_bytes.taken == 100);
  CHECK(l.large.allocation.current == 1);
  CHECK(l.large.allocated_bytes.current == 1024);
  CHECK(l.small.segment.current == 1);
  CHECK(l.large.reserved_bytes.current == static_cast<std::int64_t>(20_MiB));
  CHECK(l.all.allocation.peak == 2);
  CHECK(l.all.segment.peak == 2);
  o.released(address{1}, 2_MiB);
  l = o.lines();
  CHECK(l.small.segment.current == 0);
  CHECK(l.small.segment.taken == 1);
  CHECK(l.all.segment.peak == 2);
}

TEST_CASE("the peak of all is that of all at once, not of both classes' peaks") {
  torch_observer o(nullptr, 100, 2_MiB);
  for (bytes n : {bytes{100}, bytes{5000}}) {
    o.allocated({.at = address{1}, .requested = n, .size = n});
    o.deallocated({.at = address{1}, .requested = n, .size = n});
  }
  torch_lines const l = o.lines();
  CHECK(l.all.allocation.peak == 1);
  CHECK(l.all.requested_bytes.peak == 5000);
  CHECK(l.small.requested_bytes.peak == 100);
}

TEST_CASE("what leaves with a pool stays in the totals only") {
  torch_observer o(nullptr, 100, 2_MiB);
  o.created(address{1}, 20_MiB);
  o.allocated({.at = address{1}, .requested = 1000, .size = 1024});
  torch_lines l = o.lines();
  l.leave();
  CHECK(l.all.segment.current == 0);
  CHECK(l.all.segment.peak == 0);
  CHECK(l.all.segment.added == 1);
  CHECK(l.all.segment.taken == 1);
  CHECK(l.large.allocated_bytes.taken == 1024);
  CHECK(l.large.requested_bytes.current == 0);
}

// ---- streams that PyTorch did not make
// ----------------------------------------------------------------------------------------------------------------

TEST_CASE("streams that PyTorch did not make are known once they have come by") {
  torch_foreign_streams f;
  CHECK_FALSE(f.contains(stream{7}));
  f.add(stream{7});
  f.add(stream{7});
  f.add(stream{8});
  CHECK(f.contains(stream{7}));
  CHECK(f.contains(stream{8}));
  CHECK_FALSE(f.contains(stream{9}));
  for (std::uintptr_t i = 100; i < 1000; ++i) f.add(stream{i});  // more than there is room for
  CHECK(f.contains(stream{7}));
  CHECK(f.contains(stream{100}));
  CHECK_FALSE(f.contains(stream{999}));
}

TEST_CASE("a stream that goes is foreign no more, and makes room for another") {
  torch_foreign_streams f;
  f.remove(stream{5});
  for (std::uintptr_t i = 1; i <= 256; ++i) f.add(stream{i});
  f.add(stream{1000});
  CHECK_FALSE(f.contains(stream{1000}));
  f.remove(stream{3});
  CHECK_FALSE(f.contains(stream{3}));
  CHECK(f.contains(stream{200}));
  f.add(stream{1000});
  CHECK(f.contains(stream{1000}));
  CHECK(f.contains(stream{256}));
}

TEST_CASE("the default stream is PyTorch's, whatever is said of it") {
  torch_foreign_streams f;
  f.add(stream{});
  CHECK_FALSE(f.contains(stream{}));
  f.remove(stream{});
  f.add(stream{7});
  CHECK(f.contains(stream{7}));
  CHECK_FALSE(f.contains(stream{}));
}

TEST_CASE("on a stream that PyTorch did not make nothing is recorded, and all else is as ever") {
  auto const time = std::make_shared<simulated_timeline>();
  auto const pauses = std::make_shared<std::atomic<int>>(0);
  torch_foreign_streams f;
  torch_streams<simulated_streams> s(simulated_streams(time), pauses, f);
  f.add(stream{7});
  fails_with(s.record(stream{7}), errc::not_supported);
  auto fence = must(s.record(stream{8}));
  must(s.wait(stream{7}, fence));
  must(s.synchronize(fence));
  must(s.synchronize_device());
  s.release(fence);
  *pauses = 1;
  fails_with(s.record(stream{8}), errc::not_supported);
  CHECK(time->counts().records == 1);
}
