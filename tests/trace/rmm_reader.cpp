#include "gmlake/trace/rmm_reader.hpp"

#include <string>

#include <doctest/doctest.h>

#include "gmlake/trace/writer.hpp"

namespace {
using namespace gmlake;

std::string log_of(std::string const& rows) { return std::string(trace::rmm_header) + "\n" + rows; }

TEST_CASE("pointers become fresh ids and streams become dense numbers") {
  auto const r =
      trace::read_rmm(log_of("100,10:15:02:104233,allocate,0x7f0000000000,1024,0x55aa\n"
                             "100,10:15:02:104240,allocate,0x7f0000000400,64,0x0\n"
                             "101,10:15:02:104250,allocate failure,(nil),99999999,0x0\n"
                             "101,10:15:02:104251,free,0x7f0000000000,1024,0x0\n"
                             "101,10:15:02:104252,allocate,7f0000000000,2048,55aa\n"));
  REQUIRE(r);
  CHECK(trace::write(r.value) == "a,0,1024,0\na,1,64,1\nf,0\na,2,2048,0\n");
}

TEST_CASE("allocations of no bytes may share the null pointer") {
  auto const r =
      trace::read_rmm(log_of("1,1:0:0.1,allocate,0x0,0,0x0\n"
                             "1,1:0:0.1,allocate,(nil),0,0x0\n"
                             "1,1:0:0.1,free,0x0,0,0x0\n"
                             "1,1:0:0.1,free,0x0,0,0x0\n"
                             "1,1:0:0.1,free,0x0,0,0x0\n"));
  REQUIRE(r);
  CHECK(trace::write(r.value) == "a,0,0,0\na,1,0,0\nf,1\nf,0\n");
}

TEST_CASE("a row that is not part of a log is named, with what is wrong") {
  struct bad {
    std::string text;
    std::uint64_t line;
    char const* message;
  };
  std::string const born = "1,10:00:00.1,allocate,0x10,8,0x0\n";
  bad const cases[] = {
      {"", 1, "the log has no events"},
      {log_of(""), 1, "the log has no events"},
      {"Thread,Time\n", 1, "the header is \"Thread,Time\" instead of Thread,Time,Action,Pointer,Size,Stream"},
      {log_of(born + "1,10:00:00.1,free,0x10,8,0x0"), 3,
       "truncated: the last line \"1,10:00:00.1,free,0x10,8,0x0\" has no line end"},
      {log_of("1,10:00:00.1,allocate,0x10\n"), 2, "truncated line: an event has 6 fields, this one 4"},
      {log_of("\n"), 2, "the line is empty"},
      {log_of("x,10:00:00.1,allocate,0x10,8,0x0\n"), 2, "thread \"x\" is not a number"},
      {log_of("1,noon,allocate,0x10,8,0x0\n"), 2, "time \"noon\" is not a time of day"},
      {log_of("1,1:0:0.1,realloc,0x10,8,0x0\n"), 2,
       "unknown action \"realloc\": expected allocate, allocate failure or free"},
      {log_of("1,1:0:0.1,allocate,zz,8,0x0\n"), 2, "pointer \"zz\" is not a number"},
      {log_of("1,1:0:0.1,allocate,0x,8,0x0\n"), 2, "pointer \"0x\" has trailing garbage"},
      {log_of("1,1:0:0.1,allocate,0x10,-8,0x0\n"), 2, "size \"-8\" is negative"},
      {log_of("1,1:0:0.1,allocate,0x10,18446744073709551616,0x0\n"), 2, "size \"18446744073709551616\" is too large"},
      {log_of("1,1:0:0.1,allocate,0x10,140737488355328,0x0\n" + std::string("1,1:0:0.1,allocate,0x20,1,0x0\n")), 3,
       "size 1 overflows the sum of live sizes"},
      {log_of("1,1:0:0.1,allocate,0x10,8,stream\n"), 2, "stream \"stream\" is not a number"},
      {log_of("1,1:0:0.1,allocate,0x10,8,0x0,1\n"), 2, "stream \"0,1\" has trailing garbage"},
      {log_of("1,1:0:0.1,allocate,0x0,8,0x0\n"), 2, "an allocation of 8 bytes at the null pointer"},
      {log_of("1,1:0:0.1,free,0x0,8,0x0\n"), 2, "free of 8 bytes at the null pointer"},
      {log_of(born + born), 3, "pointer 0x10 is live already"},
      {log_of(born + "1,1:0:0.1,free,0x18,8,0x0\n"), 3, "free of 0x18, which is not live"},
      {log_of(born + "1,1:0:0.1,free,0x10,8,0x0\n1,1:0:0.1,free,0x10,8,0x0\n"), 4, "free of 0x10, which is not live"},
      {log_of(born + "1,1:0:0.1,free,0x10,9,0x0\n"), 3, "free of 9 bytes at 0x10, which has 8"},
  };
  for (bad const& b : cases) {
    CAPTURE(b.text);
    auto const r = trace::read_rmm(b.text);
    CHECK_FALSE(r);
    CHECK(r.error.line == b.line);
    CHECK(r.error.message == b.message);
  }
}

}  // namespace
