#include "gmlake/trace/lifetimes.hpp"

#include <doctest/doctest.h>

#include "gmlake/trace/reader.hpp"

using namespace gmlake;

TEST_CASE("accesses, times and the host's copies take no part of lifetimes") {
  auto const with = trace::read("m,step\na,0,1,0\nh,0\nr,0\na,1,2,0\no,5\nw,1\nf,0\no,5\nm,step\n");
  auto const without = trace::read("m,step\na,0,1,0\na,1,2,0\nf,0\nm,step\n");
  REQUIRE(with);
  auto const a = trace::lifetimes_of(with.value), b = trace::lifetimes_of(without.value);
  REQUIRE(a.all().size() == 2);
  CHECK(a.now() == b.now());
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(a.all()[i].birth == b.all()[i].birth);
    CHECK(a.all()[i].death == b.all()[i].death);
  }
  CHECK(a.step(0).period == b.step(0).period);
}

TEST_CASE("a trace's buffers have their sizes as placed, and its marks are their phases") {
  auto const read = trace::read("a,0,1,0\nm,step\na,1,513,2\na,2,0,0\nf,1\nm,backward\nf,0\nm,step\n");
  REQUIRE(read);
  auto const lives = trace::lifetimes_of(read.value);
  REQUIRE(lives.all().size() == 3);
  CHECK(lives.all()[0].size == 512);
  CHECK(lives.all()[0].birth == 0);
  CHECK(lives.all()[0].death == 4);
  CHECK(lives.all()[0].death_phase == 2);
  CHECK(lives.all()[1].size == 1024);
  CHECK(lives.all()[1].stream == 2);
  CHECK(lives.all()[2].size == 512);
  CHECK(lives.all()[2].death == plan::step_request::stays);
  REQUIRE(lives.steps() == 2);
  auto const step = lives.step(0);
  CHECK(step.period == 4);
  CHECK(step.boundaries == std::vector<plan::instant>{3});
  CHECK(step.requests.size() == 2);
}
