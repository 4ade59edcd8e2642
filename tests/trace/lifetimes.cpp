#include "gmlake/trace/lifetimes.hpp"

#include <doctest/doctest.h>

#include "gmlake/trace/reader.hpp"

using namespace gmlake;

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
