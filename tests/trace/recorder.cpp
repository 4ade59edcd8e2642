#include "gmlake/trace/recorder.hpp"

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/backend/simulated.hpp"
#include "gmlake/observe/both.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "gmlake/trace/reader.hpp"
#include "gmlake/trace/replay.hpp"
#include "gmlake/trace/writer.hpp"
#include "tests/backend/must.hpp"

namespace {
using namespace gmlake;
using namespace gmlake::test;

using config = pool_config<simulated, simulated_streams>::with_observer<both<counters, event_log>>;

std::shared_ptr<simulated_timeline> device() { return std::make_shared<simulated_timeline>(); }

/// Puts the trace's marks into the pool's log, where a program would.
struct marking : trace::no_hooks {
  basic_pool<config>& pool;
  trace::trace const& t;
  void passed(std::size_t i) {
    trace::event const& e = t.events[i];
    if (e.kind != trace::event_kind::mark) return;
    pool.observe([&](auto& o) { o.second().mark(t.labels[e.id].c_str()); });
  }
};

TEST_CASE("a trace that is replayed and recorded is that very trace again") {
  std::string const text =
      "m,step\n"
      "a,0,1000,0\n"
      "a,1,0,1\n"
      "a,2,70000000,0\n"
      "f,0\n"
      "m,backward\n"
      "a,3,1000,7\n"
      "f,2\n"
      "a,4,90000000,1\n"
      "m,step\n"
      "f,3\n"
      "f,1\n";
  trace::parse_result const read = trace::read(text);
  REQUIRE(read);
  basic_pool<config> pool(simulated{}, simulated_streams(device()));
  trace::no_timeline none;
  marking hooks{{}, pool, read.value};
  REQUIRE(trace::replay(read.value, pool, none, hooks).ok());
  trace::recording const again = pool.observe([](auto& o) { return trace::record(o.second()); });
  CHECK(again.unborn == 0);
  CHECK_FALSE(again.cut);
  // Streams are numbered in order of their first mention.
  std::string expected = text;
  expected.replace(expected.find("1000,7"), 6, "1000,2");
  CHECK(trace::write(again.value) == expected);
  CHECK(again.value.allocations == 5);
}

TEST_CASE("a block handed out at an address that was used before is another allocation") {
  basic_pool<config> pool(simulated{}, simulated_streams(device()));
  for (int i = 0; i < 3; ++i) must(pool.deallocate(must(pool.allocate(100))));
  trace::recording const r = pool.observe([](auto& o) { return trace::record(o.second()); });
  CHECK(trace::write(r.value) == "a,0,100,0\nf,0\na,1,100,0\nf,1\na,2,100,0\nf,2\n");
}

TEST_CASE("a block that lived when the log began is left out when it is freed, and counted") {
  basic_pool<config> pool(simulated{}, simulated_streams(device()));
  address const old = must(pool.allocate(100));
  pool.observe([](auto& o) { o.second().clear(); });
  address const fresh = must(pool.allocate(200));
  must(pool.deallocate(old));
  must(pool.deallocate(fresh));
  trace::recording const r = pool.observe([](auto& o) { return trace::record(o.second()); });
  CHECK(r.unborn == 1);
  CHECK(trace::write(r.value) == "a,0,200,0\nf,0\n");
}

TEST_CASE("accesses name the block that lives at their address, and times come when they are known") {
  event_log log;
  address const x{512};
  log.allocated({.at = x, .requested = 5});
  log.written(x);
  std::size_t const first = log.operation();
  log.deallocated({.at = x, .requested = 5});
  log.allocated({.at = x, .requested = 6});
  log.read(x);
  log.written(x);
  std::size_t const second = log.operation();
  log.host_copy(x);
  log.host_copy(x);
  log.took(second, std::chrono::nanoseconds(20));
  CHECK(trace::write(trace::record(log).value) == "a,0,5,0\nw,0\no,0\nf,0\na,1,6,0\nr,1\nw,1\no,20\nh,1\n");
  log.took(first, std::chrono::nanoseconds(7));
  CHECK(trace::write(trace::record(log).value) == "a,0,5,0\nw,0\no,7\nf,0\na,1,6,0\nr,1\nw,1\no,20\nh,1\n");
}

TEST_CASE("an access where no block begins is left out and counted") {
  event_log log;
  log.read(address{512});
  log.allocated({.at = address{512}, .requested = 5});
  log.written(address{513});
  log.host_copy(address{1024});
  log.operation();
  trace::recording const r = trace::record(log);
  CHECK(r.strays == 3);
  CHECK(trace::write(r.value) == "a,0,5,0\no,0\n");
}

TEST_CASE("the host's copies of what is written later on are left out and counted") {
  event_log log;
  address const x{512}, y{1024};
  for (address const a : {x, y}) log.allocated({.at = a, .requested = 5});
  log.host_copy(x);
  log.host_copy(y);
  log.written(x);
  log.host_copy(x);
  log.written(x);
  log.host_copy(x);
  trace::recording const r = trace::record(log);
  CHECK(r.broken == 2);
  std::string const text = trace::write(r.value);
  CHECK(text == "a,0,5,0\na,1,5,0\nh,1\nw,0\nw,0\nh,0\n");
  CHECK(trace::read(text));
}

TEST_CASE("times whose sum no trace may hold end it") {
  event_log log;
  log.took(log.operation(), std::chrono::nanoseconds::max());
  log.took(log.operation(), std::chrono::nanoseconds(0));
  log.took(log.operation(), std::chrono::nanoseconds(1));
  log.allocated({.at = address{512}, .requested = 5});
  log.read(address{512});
  trace::recording const r = trace::record(log);
  CHECK(r.cut);
  CHECK(r.strays == 0);
  CHECK(trace::write(r.value) == "o,9223372036854775807\no,0\n");
}

TEST_CASE("a log that stopped gives the trace's beginning, and says so") {
  event_log log{{.most = 1}};
  log.allocated({.at = address{512}, .requested = 5});
  log.deallocated({.at = address{512}, .requested = 5});
  trace::recording const r = trace::record(log);
  CHECK(r.cut);
  CHECK(trace::write(r.value) == "a,0,5,0\n");
}

TEST_CASE("sizes that no trace may hold end it") {
  event_log log;
  log.allocated({.at = address{512}, .requested = trace::max_size});
  log.allocated({.at = address{1024}, .requested = 1});
  log.deallocated({.at = address{1024}, .requested = 1});
  log.deallocated({.at = address{512}, .requested = trace::max_size});
  trace::recording const r = trace::record(log);
  CHECK(r.cut);
  CHECK(r.unborn == 0);
  CHECK(trace::write(r.value) == "a,0,140737488355328,0\n");
}

TEST_CASE("whatever a mark's label is, the trace can be read") {
  event_log log;
  std::string const endless(10'000, 'x');
  for (char const* label : {"step", "two\nlines", "", static_cast<char const*>(nullptr), "step", endless.c_str()}) {
    log.mark(label);
  }
  trace::recording const r = trace::record(log);
  std::string const text = trace::write(r.value);
  trace::parse_result const read = trace::read(text);
  REQUIRE(read);
  CHECK(read.value.events.size() == 6);
  CHECK(read.value.labels.size() == 4);
  CHECK(text.starts_with("m,step\nm,two?lines\nm,mark\nm,mark\nm,step\nm,xxx"));
}

TEST_CASE("a stitched block is recorded like any other") {
  basic_pool<config> pool(simulated{}, simulated_streams(device()));
  std::vector<address> held;
  for (int i = 0; i < 12; ++i) held.push_back(must(pool.allocate(20_MiB)));
  for (std::size_t i = 0; i < held.size(); i += 2) must(pool.deallocate(held[i]));
  address const large = must(pool.allocate(100_MiB));
  REQUIRE(pool.stats().stitches_made == 1);
  must(pool.deallocate(large));
  trace::recording const r = pool.observe([](auto& o) { return trace::record(o.second()); });
  CHECK(r.value.allocations == 13);
  CHECK(r.unborn == 0);
  trace::parse_result const read = trace::read(trace::write(r.value));
  REQUIRE(read);
  CHECK(read.value.events.size() == r.value.events.size());
}

}  // namespace
