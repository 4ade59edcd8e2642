#include "gmlake/plan/plan_job.hpp"

#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;
using plan::plan_job;
using plan::segment;
using plan::track;

namespace {

constexpr address base{64_MiB};

/// Ten buffers that live all together.
[[nodiscard]] plan::plan ten() {
  plan::plan p{.requests = {}, .period = 20};
  for (plan::instant i = 0; i < 10; ++i) p.requests.push_back({.size = 1_MiB, .birth = i, .death = 10 + i});
  return p;
}

}  // namespace

TEST_CASE("a job makes a track, once") {
  plan_job job(ten(), {{base, 10_MiB, 0}});
  CHECK_FALSE(job.done());
  job.run();
  REQUIRE(job.done());
  std::unique_ptr<track> const made = job.take();
  REQUIRE(made != nullptr);
  CHECK(made->source().height == 10_MiB);
  CHECK(made->source().bound == 10_MiB);
  CHECK(made->spots() == 10);
  for (track::step const& s : made->steps()) {
    CHECK(s.at >= base);
    CHECK(s.at + s.size <= base + 10_MiB);
  }
  CHECK(job.take() == nullptr);
  CHECK(job.done());
}

TEST_CASE("what finds no room in the job's segments has no address") {
  plan_job job(ten(), {{base, 6_MiB, 0}, {base + 100_MiB, 3_MiB, 6_MiB + 512}});
  job.run();
  std::unique_ptr<track> const made = job.take();
  REQUIRE(made != nullptr);
  CHECK(std::ranges::count(made->steps(), address{}, &track::step::at) == 1);
}

TEST_CASE("a step that no plan can be right for comes to no track") {
  plan::plan wrong = ten();
  wrong.requests[3].size = 100;
  plan_job job(wrong, {{base, 10_MiB, 0}});
  job.run();
  CHECK(job.done());
  CHECK(job.take() == nullptr);
}

TEST_CASE("the same step and the same work give the same track") {
  auto const offsets = [] {
    plan_job job(ten(), {{base, 10_MiB, 0}});
    job.run({.work = 1000});
    std::unique_ptr<track> const made = job.take();
    REQUIRE(made != nullptr);
    std::vector<address> all;
    for (track::step const& s : made->steps()) all.push_back(s.at);
    return all;
  };
  CHECK(offsets() == offsets());
}

TEST_CASE("who sees that a job is done, sees its track") {
  plan_job job(ten(), {{base, 10_MiB, 0}});
  std::thread maker([&job] { job.run(); });
  while (!job.done()) std::this_thread::yield();
  CHECK(job.take()->spots() == 10);
  maker.join();
}
