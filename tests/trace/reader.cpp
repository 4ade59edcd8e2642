#include "gmlake/trace/reader.hpp"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "gmlake/trace/any_reader.hpp"
#include "gmlake/trace/writer.hpp"

namespace {
using namespace gmlake;

TEST_CASE("a trace is read as its events") {
  auto const r = trace::read("m,step\na,0,512,0\na,1,0,3\nf,0\nm,backward\nm,step\n");
  REQUIRE(r);
  CHECK(r.value.allocations == 2);
  CHECK(r.value.labels == std::vector<std::string>{"step", "backward"});
  REQUIRE(r.value.events.size() == 6);
  CHECK(r.value.events[1].size == 512);
  CHECK(r.value.events[2].stream == 3);
  CHECK(r.value.events[3].kind == trace::event_kind::deallocate);
  CHECK(r.value.events[3].id == 0);
  CHECK(r.value.events[4].id == 1);
  CHECK(r.value.events[5].id == 0);
}

TEST_CASE("accesses, times and the host's copies are read as events that name the allocation") {
  auto const r = trace::read("a,0,512,0\na,1,0,3\nh,0\nr,0\nw,1\nf,1\no,9223372036854775807\no,0\n");
  REQUIRE(r);
  using trace::event_kind;
  struct expected {
    event_kind kind;
    std::uint32_t id;
    std::uint64_t size;
  };
  expected const all[] = {{event_kind::host_copy, 0, 0},
                          {event_kind::read, 0, 0},
                          {event_kind::write, 1, 0},
                          {event_kind::deallocate, 1, 0},
                          {event_kind::operation, 0, 9223372036854775807u},
                          {event_kind::operation, 0, 0}};
  REQUIRE(r.value.events.size() == 8);
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(r.value.events[i + 2].kind == all[i].kind);
    CHECK(r.value.events[i + 2].id == all[i].id);
    CHECK(r.value.events[i + 2].size == all[i].size);
    CHECK(r.value.events[i + 2].stream == 0);
  }
}

TEST_CASE("an operation may access nothing, a block twice, and what is freed before it ends") {
  CHECK(trace::read("o,1\n"));
  CHECK(trace::read("a,0,1,0\nr,0\nr,0\nw,0\nw,0\no,1\n"));
  CHECK(trace::read("a,0,1,0\nr,0\nf,0\no,1\n"));
  CHECK(trace::read("a,0,1,0\nr,0\nm,step\no,1\n"));
  CHECK(trace::read("a,0,1,0\nr,0\n"));  // cut off
}

TEST_CASE("the host has copies of what was written before, and may be said to twice") {
  CHECK(trace::read("a,0,1,0\nw,0\no,1\nh,0\nh,0\nr,0\no,1\nf,0\n"));
  CHECK(trace::read("a,0,1,0\na,1,1,0\nh,0\nw,1\na,2,1,0\nw,2\no,1\n"));
}

TEST_CASE("a line that is not part of a trace is named, with what is wrong") {
  struct bad {
    char const* text;
    std::uint64_t line;
    char const* message;
  };
  bad const cases[] = {
      {"", 1, "the trace has no events"},
      {"\n", 1, "the line is empty"},
      {"a,0,1,0\n\n", 2, "the line is empty"},
      {"a,0,1,0", 1, "truncated: the last line \"a,0,1,0\" has no line end"},
      {"a,0,1,0\nf", 2, "truncated: the last line \"f\" has no line end"},
      {"a,0,1\n", 1, "truncated line: an allocation has 4 fields, this one 3"},
      {"a\n", 1, "truncated line: an allocation has 4 fields, this one 1"},
      {"a,0,1,\n", 1, "stream is missing"},
      {"a,0,,0\n", 1, "size is missing"},
      {"f\n", 1, "truncated line: a free has 2 fields, this one 1"},
      {"f,\n", 1, "id is missing"},
      {"m\n", 1, "truncated line: the mark's label is missing"},
      {"m,\n", 1, "truncated line: the mark's label is missing"},
      {"m,a\tb\n", 1, "the mark's label \"a\\x09b\" is not printable"},
      {"x,0\n", 1, "unknown kind \"x\": expected a, f, m, r, w, o or h"},
      {"alloc,0,1,0\n", 1, "unknown kind \"alloc\": expected a, f, m, r, w, o or h"},
      {"\x1f\x8b\x08\n", 1, "unknown kind \"\\x1f\\x8b\\x08\": expected a, f, m, r, w, o or h"},
      {"a,0,1,0\nf,0\nf,0\n", 3, "double free of id 0"},
      {"a,0,1,0\nf,1\n", 2, "free of the unknown id 1"},
      {"f,0\na,0,1,0\n", 1, "free of the unknown id 0"},
      {"a,0,1,0\nf,-1\n", 2, "id \"-1\" is negative"},
      {"a,0,1,0\nf,0,0\n", 2, "id \"0,0\" has trailing garbage"},
      {"a,0,1,0\nf,99999999999999999999\n", 2, "id \"99999999999999999999\" is too large"},
      {"a,0,-5,0\n", 1, "size \"-5\" is negative"},
      {"a,0,18446744073709551616,0\n", 1, "size \"18446744073709551616\" is too large"},
      {"a,0,18446744073709551615,0\n", 1, "size \"18446744073709551615\" is too large"},
      {"a,0,140737488355329,0\n", 1, "size \"140737488355329\" is too large"},
      {"a,0,140737488355328,0\na,1,1,0\n", 2, "size \"1\" overflows the sum of live sizes"},
      {"a,0,1.5,0\n", 1, "size \"1.5\" has trailing garbage"},
      {"a,0,0x10,0\n", 1, "size \"0x10\" has trailing garbage"},
      {"a,0,ten,0\n", 1, "size \"ten\" is not a number"},
      {"a,0, 1,0\n", 1, "size \" 1\" is not a number"},
      {"a,0,+1,0\n", 1, "size \"+1\" is not a number"},
      {"a,1,1,0\n", 1, "id 1 where 0 is due: ids are dense"},
      {"a,0,1,0\na,0,1,0\n", 2, "id 0 was born before"},
      {"a,0,1,0\nf,0\na,0,1,0\n", 3, "id 0 was born before"},
      {"a,-1,1,0\n", 1, "id \"-1\" is negative"},
      {"a,4294967296,1,0\n", 1, "id \"4294967296\" is too large"},
      {"a,0,1,default\n", 1, "stream \"default\" is not a number"},
      {"a,0,1,-\n", 1, "stream \"-\" is not a number"},
      {"a,0,1,4294967296\n", 1, "stream \"4294967296\" is too large"},
      {"a,0,1,0,7\n", 1, "stream \"0,7\" has trailing garbage"},
      {"a,0,1,0\r\n", 1, "stream \"0\\x0d\" has trailing garbage"},
      {"r\n", 1, "truncated line: a read has 2 fields, this one 1"},
      {"w,\n", 1, "id is missing"},
      {"h\n", 1, "truncated line: a host copy has 2 fields, this one 1"},
      {"r,0\n", 1, "read of the unknown id 0"},
      {"a,0,1,0\nw,1\n", 2, "write of the unknown id 1"},
      {"a,0,1,0\nh,1\n", 2, "host copy of the unknown id 1"},
      {"a,0,1,0\nf,0\nr,0\n", 3, "read of id 0, which is freed"},
      {"a,0,1,0\nf,0\nw,0\n", 3, "write of id 0, which is freed"},
      {"a,0,1,0\nf,0\nh,0\n", 3, "host copy of id 0, which is freed"},
      {"a,0,1,0\nh,0\nf,0\nw,0\n", 4, "write of id 0, which is freed"},
      {"a,0,1,0\nh,0\nw,0\n", 3, "write of id 0, of which the host has a copy"},
      {"a,0,1,0\nr,-0\n", 2, "id \"-0\" is negative"},
      {"a,0,1,0\nw,0,1\n", 2, "id \"0,1\" has trailing garbage"},
      {"a,0,1,0\nr,4294967296\n", 2, "read of the unknown id 4294967296"},
      {"o\n", 1, "truncated line: an operation has 2 fields, this one 1"},
      {"o,\n", 1, "time is missing"},
      {"o,-1\n", 1, "time \"-1\" is negative"},
      {"o,1.5\n", 1, "time \"1.5\" has trailing garbage"},
      {"o,9223372036854775808\n", 1, "time \"9223372036854775808\" is too large"},
      {"o,9223372036854775807\no,0\no,1\n", 3, "time \"1\" overflows the sum of times"},
      {"u,0\n", 1, "unknown kind \"u\": expected a, f, m, r, w, o or h"},
      {"a;0;1;0\n", 1, "unknown kind \"a;0;1;0\": expected a, f, m, r, w, o or h"},
  };
  for (bad const& b : cases) {
    CAPTURE(std::string(b.text));
    auto const r = trace::read(b.text);
    CHECK_FALSE(r);
    CHECK(r.error.line == b.line);
    CHECK(r.error.message == b.message);
  }
}

TEST_CASE("an endless line is refused before it fills the memory") {
  auto const r = trace::read("a,0,1,0\n" + std::string(trace::max_line_length + 1, 'x'));
  CHECK(r.error.line == 2);
  CHECK(r.error.message == "the line is too long");
}

TEST_CASE("pieces of any size read like the whole") {
  std::string const text = "m,step\na,0,512,0\na,1,1048576,3\nh,1\nr,1\nw,0\no,1500\nf,0\nm,backward\nf,1\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    CAPTURE(size);
    trace::reader r;
    for (std::size_t at = 0; at < text.size(); at += size) CHECK(r.feed(std::string_view(text).substr(at, size)));
    auto const done = r.finish();
    REQUIRE(done);
    CHECK(trace::write(done.value) == text);
  }
}

TEST_CASE("after an error the reader takes no more, and starts anew when finished") {
  trace::reader r;
  CHECK(r.feed("a,0,1,0\n"));
  CHECK_FALSE(r.feed("f,7\n"));
  CHECK_FALSE(r.feed("f,0\n"));
  CHECK(r.finish().error.line == 2);
  CHECK(r.feed("a,0,1,0\n"));
  CHECK(r.finish());
}

TEST_CASE("what is written is read back as the same trace") {
  std::string const text =
      "a,0,0,0\na,1,140737488355328,4294967295\nm,a label, with "
      "commas\nw,1\no,9223372036854775807\nh,1\nr,0\nr,1\no,0\nf,1\n"
      "m,step\nf,0\n";
  auto const r = trace::read(text);
  REQUIRE(r);
  CHECK(trace::write(r.value) == text);
}

TEST_CASE("two million lines are read well within half a second") {
  std::string text;
  trace::writer w(text);
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    w.allocate(i, 512 * (i % 4096), i % 2);
    w.deallocate(i);
  }
  auto const started = std::chrono::steady_clock::now();
  auto const r = trace::read(text);
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - started;
  CHECK(r.value.events.size() == 2'000'000);
  MESSAGE("seconds: " << took.count());
#ifdef NDEBUG  // elsewhere a sanitizer or no optimiser may be at work
  CHECK(took.count() < 0.5);
#endif
}

TEST_CASE("the first line shows the format") {
  CHECK(trace::detect("Thread,Time,Action") == trace::file_format::rmm);
  CHECK(trace::detect("a,0,1,0\n") == trace::file_format::gmlake);
  CHECK(trace::detect("") == trace::file_format::gmlake);
  std::string const log = std::string(trace::rmm_header) + "\n1,10:00:00.5,allocate,0x10,5,0x0\n";
  trace::any_reader any;
  CHECK(any.feed(""));
  CHECK(any.feed(log));
  CHECK(any.finish().value.allocations == 1);
  CHECK(any.feed("a,0,1,0\na,1,1,0\n"));
  CHECK(any.finish().value.allocations == 2);
  CHECK(trace::read_any(log));
  CHECK(trace::read_any("a,0,1,0\n"));
}

}  // namespace
