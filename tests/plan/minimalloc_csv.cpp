#include "gmlake/plan/minimalloc_csv.hpp"

#include <random>
#include <string>

#include <doctest/doctest.h>

#include "gmlake/plan/validate.hpp"
#include "tests/plan/naive.hpp"

namespace {
using namespace gmlake;

TEST_CASE("a problem is read as its buffers, whatever the order of the columns") {
  auto const r =
      plan::read_minimalloc_problem("size,id,offset,upper,alignment,lower\n4096,a b,512,7,256,2\n1,x,,9,1,0\n");
  REQUIRE(r);
  REQUIRE(r.value.value.buffers.size() == 2);
  CHECK(r.value.ids == std::vector<std::string>{"a b", "x"});
  plan::buffer const& b = r.value.value.buffers[0];
  CHECK(b.lower == 2);
  CHECK(b.upper == 7);
  CHECK(b.size == 4096);
  CHECK(b.alignment == 256);
  CHECK(b.fixed == bytes{512});
  CHECK_FALSE(r.value.value.buffers[1].fixed);
}

TEST_CASE("columns go by MiniMalloc's other names too, and an end is the last moment of a life") {
  for (std::string const head : {"buffer,begin,end,size", "buffer_id,start,end,size"}) {
    CAPTURE(head);
    auto const r = plan::read_minimalloc_problem(head + "\nx,2,6,4096\n");
    REQUIRE(r);
    CHECK(r.value.ids[0] == "x");
    CHECK(r.value.value.buffers[0].lower == 2);
    CHECK(r.value.value.buffers[0].upper == 7);
  }
  CHECK_FALSE(plan::read_minimalloc_problem("id,start,end,size\nx,2,18446744073709551615,1\n"));
  auto const twice = plan::read_minimalloc_problem("id,buffer,lower,upper,size\n");
  CHECK(twice.message.find("\"buffer\" stands there twice") != std::string::npos);
}

TEST_CASE("line ends may be those of Windows, the last may be missing, and empty lines may follow") {
  for (std::string const text :
       {"id,lower,upper,size\r\n0,0,1,2\r\n", "id,lower,upper,size\n0,0,1,2", "id,lower,upper,size\n0,0,1,2\n\n\r\n"}) {
    CAPTURE(text);
    auto const r = plan::read_minimalloc_problem(text);
    REQUIRE(r);
    CHECK(r.value.value.buffers.size() == 1);
    CHECK(r.value.value.buffers[0].size == 2);
  }
  CHECK(plan::read_minimalloc_problem("id,lower,upper,size\n"));
}

struct bad {
  std::string text;
  std::uint64_t line;
  char const* message;
};

TEST_CASE("a line that is not part of a problem is named, with what is wrong") {
  std::string const head = "id,lower,upper,size\n";
  bad const cases[] = {
      {"", 1, "there is no header"},
      {"\n", 1, "there is no header"},
      {"id,lower,upper\n", 1, "column \"size\" is missing"},
      {"lower,upper,size\n", 1, "column \"id\" is missing"},
      {"id,lower,upper,size,id\n", 1, "column \"id\" stands there twice"},
      {"id,lower,upper,size,colour\n", 1, "unknown column \"colour\""},
      {"id,lower,upper,size,\n", 1, "unknown column \"\""},
      {head + "0,0,1\n", 2, "the line has 3 fields, the header 4"},
      {head + "0,0,1,1,1\n", 2, "the line has 5 fields, the header 4"},
      {head + ",0,1,1\n", 2, "id is missing"},
      {head + "0,0,1,1\n1,0,1,1\n0,0,1,1\n", 4, "id \"0\" stands there twice"},
      {head + "0,,1,1\n", 2, "lower is missing"},
      {head + "0,a,1,1\n", 2, "lower \"a\" is not a number"},
      {head + "0,-1,1,1\n", 2, "lower \"-1\" is not a number"},
      {head + "0,0,1.5,1\n", 2, "upper \"1.5\" is not a number"},
      {head + "0,0, 1,1\n", 2, "upper \" 1\" is not a number"},
      {head + "0,0,1,18446744073709551616\n", 2, "size \"18446744073709551616\" is too large"},
      {head + "0,1,1,1\n", 2, "upper is not above lower"},
      {head + "0,2,1,1\n", 2, "upper is not above lower"},
      {head + "0,0,1,0\n", 2, "size is 0"},
      {head + "0,0,1,18446744073709551615\n1,0,1,1\n", 3, "the sizes overflow in sum"},
      {head + "\n0,0,1,1\n", 3, "the line before is empty"},
      {"id,lower,upper,size,alignment\n0,0,1,1,3\n", 2, "alignment is no power of two"},
      {"id,lower,upper,size,alignment\n0,0,1,1,0\n", 2, "alignment is no power of two"},
      {"id,lower,upper,size,alignment\n0,0,1,1,\n", 2, "alignment is missing"},
      {"id,lower,upper,size,alignment,offset\n0,0,1,1,4,6\n", 2, "offset is not aligned"},
      {"id,lower,upper,size,offset\n0,0,1,1,18446744073709551615\n", 2, "offset and size overflow in sum"},
      {"id,lower,upper,size,offset\n0,0,1,1,x\n", 2, "offset \"x\" is not a number"},
      {"id,lower,upper,size,hint\n0,0,1,1,\n1,0,1,1,5\n", 3, "hints are not supported"},
      {"id,lower,upper,size,gaps\n0,0,1,1,1-2\n", 2, "gaps are not supported"},
  };
  for (bad const& b : cases) {
    CAPTURE(b.text);
    auto const r = plan::read_minimalloc_problem(b.text);
    CHECK_FALSE(r);
    CHECK(r.line == b.line);
    CHECK(r.message == b.message);
  }
}

TEST_CASE("a solution has an offset for every id, and no others") {
  auto const p = plan::read_minimalloc_problem("id,lower,upper,size\na,0,1,8\nb,0,1,4\n");
  REQUIRE(p);
  auto const s = plan::read_minimalloc_solution("offset,id\n0,b\n4,a\n", p.value);
  REQUIRE(s);
  CHECK(s.value.offsets == std::vector<bytes>{4, 0});
  CHECK(s.value.height == 12);
  CHECK_FALSE(plan::validate(p.value.value, s.value));
  bad const cases[] = {
      {"id\na\nb\n", 1, "column \"offset\" is missing"},
      {"id,offset\na,0\n", 2, "id \"b\" is missing"},
      {"id,offset\na,0\nc,0\n", 3, "id \"c\" is not in the problem, or stands there twice"},
      {"id,offset\na,0\na,0\n", 3, "id \"a\" stands there twice"},
      {"id,offset\na,\nb,0\n", 2, "offset is missing"},
      {"id,offset\na,18446744073709551615\nb,0\n", 2, "offset and size overflow in sum"},
  };
  for (bad const& b : cases) {
    CAPTURE(b.text);
    auto const r = plan::read_minimalloc_solution(b.text, p.value);
    CHECK_FALSE(r);
    CHECK(r.line == b.line);
    CHECK(r.message == b.message);
  }
}

TEST_CASE("what is written is read back as the same") {
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    plan::named_problem p{test::random_problem(random, {.aligned = round % 2 == 0, .fixed = round % 3 == 0}), {}};
    plan::solution s;
    for (plan::buffer const& b : p.value.buffers) {
      p.ids.push_back("b" + std::to_string(p.ids.size()));
      s.offsets.push_back(random() % 1000);
      s.height = std::max(s.height, s.offsets.back() + b.size);
    }
    std::string const text = plan::write_minimalloc_problem(p);
    auto const read = plan::read_minimalloc_problem(text);
    REQUIRE(read);
    CHECK(read.value.ids == p.ids);
    CHECK(plan::write_minimalloc_problem(read.value) == text);
    for (std::size_t i = 0; i < p.ids.size(); ++i) {
      CHECK(read.value.value.buffers[i].alignment == p.value.buffers[i].alignment);
      CHECK(read.value.value.buffers[i].fixed == p.value.buffers[i].fixed);
    }
    auto const solved = plan::read_minimalloc_solution(plan::write_minimalloc_solution(p, s), p);
    REQUIRE(solved);
    CHECK(solved.value.offsets == s.offsets);
    CHECK(solved.value.height == s.height);
  }
}

}  // namespace
