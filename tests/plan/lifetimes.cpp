#include "gmlake/plan/lifetimes.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;
using plan::lifetimes;
using plan::step_request;

TEST_CASE("a step's problem leaves out what stays, and knows which request each buffer is") {
  std::vector<step_request> const step = {{.size = 512, .stream = 1, .birth = 0, .death = 3},
                                          {.size = 1024, .birth = 1},
                                          {.size = 0, .birth = 2, .death = 4},
                                          {.size = 2048, .birth = 5, .death = 14},
                                          {.size = 512, .birth = 6, .death = 17}};
  auto const s = plan::problem_of(step, 10, 7);
  CHECK(s.of.period == 10);
  CHECK(s.of.stream_gap == 7);
  CHECK(s.requests == std::vector<std::uint32_t>{0, 3});  // the last lives longer than a period
  REQUIRE(s.of.buffers.size() == 2);
  CHECK(s.of.buffers[0].stream == 1);
  CHECK(s.of.buffers[1].lower == 5);
  CHECK(s.of.buffers[1].upper == 14);
  CHECK(s.of.buffers[1].size == 2048);
  CHECK_FALSE(s.of.buffers[1].fixed);
  CHECK(plan::problem_of(step, 0, 0).requests == std::vector<std::uint32_t>{0, 3, 4});
}

TEST_CASE("a solution is written where its buffers came from, and what was appended to the problem is not") {
  plan::plan p;
  p.requests = {
      {.size = 512, .birth = 0, .death = 3, .offset = 512}, {.size = 512, .birth = 1}, {.size = 512, .birth = 2}};
  std::vector<std::uint32_t> const map = {2, 1};
  plan::place(p, {.offsets = {1024, 512, 4096}, .height = 8192}, map);
  CHECK(p.requests[0].offset == step_request::nowhere);
  CHECK(p.requests[1].offset == 512);
  CHECK(p.requests[2].offset == 1024);
  CHECK(p.height == 8192);
}

TEST_CASE("buffers know the phases and scopes that they were born and died in") {
  lifetimes all;
  auto const weight = all.allocated(512, 0);
  all.mark("step");
  all.mark("enter:model");
  all.mark("enter:layer.0");
  auto const activation = all.allocated(1024, 1);
  all.mark("leave:layer.0");
  all.mark("backward");
  auto const gradient = all.allocated(512, 0);
  all.freed(activation);
  all.mark("leave:model");
  auto const loss = all.allocated(512, 0);
  REQUIRE(all.phases().size() == 2);
  CHECK(all.phases()[0].label == "step");
  CHECK(all.phases()[1].label == "backward");
  CHECK(all.phases()[1].begin == 2);
  CHECK(all.scopes() == std::vector<std::string>{"model", "model/layer.0"});
  CHECK(all.all()[weight].birth_phase == 0);
  CHECK(all.all()[weight].scope == 0);
  CHECK(all.all()[activation].birth_phase == 1);
  CHECK(all.all()[activation].death_phase == 2);
  CHECK(all.all()[activation].death == 3);
  CHECK(all.all()[activation].scope == 2);
  CHECK(all.all()[gradient].scope == 1);
  CHECK(all.all()[gradient].death == step_request::stays);
  CHECK(all.all()[loss].scope == 0);
  CHECK(all.now() == 5);
}

TEST_CASE("leaving a scope leaves those inside, and one that is not open is not left") {
  lifetimes all;
  for (char const* m : {"leave:x", "enter:a", "enter:b", "enter:a", "leave:b", "leave:b"}) all.mark(m);
  CHECK(all.all().empty());
  auto const i = all.allocated(512, 0);
  CHECK(all.scopes() == std::vector<std::string>{"a", "a/b", "a/b/a"});
  CHECK(all.all()[i].scope == 1);
  all.mark("enter:b");
  CHECK(all.all()[all.allocated(512, 0)].scope == 2);
}

TEST_CASE("a marked step has its own time, its lives into the next one, and its phases' boundaries") {
  lifetimes all;
  all.freed(all.allocated(512, 0));  // before the steps
  all.mark("step");                  // at event 2
  auto const a = all.allocated(512, 0);
  all.mark("backward");
  auto const b = all.allocated(1024, 0);
  all.freed(a);
  all.mark("optimizer");
  all.mark("nothing between");
  auto const c = all.allocated(2048, 0);
  all.mark("step");  // at event 6
  all.freed(b);
  (void)all.allocated(512, 0);
  (void)all.allocated(512, 0);
  (void)all.allocated(512, 0);
  all.freed(c);
  REQUIRE(all.steps() == 2);
  auto const first = all.step(0);
  CHECK(first.period == 4);
  CHECK(first.boundaries == std::vector<plan::instant>{1, 3});
  REQUIRE(first.requests.size() == 3);
  CHECK(first.requests[0].birth == 0);
  CHECK(first.requests[0].death == 2);
  CHECK(first.requests[1].death == 4);
  CHECK(first.requests[2].death == step_request::stays);
  auto const last = all.step(1);
  CHECK(last.period == 5);
  CHECK(last.requests.size() == 3);
  CHECK(last.boundaries.empty());
}
