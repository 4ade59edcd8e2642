#if __has_include(<cuda.h>)

#include "gmlake/stream/cuda_events.hpp"

#include "tests/stream/stream_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
std::optional<cuda_events> gmlake::test::make_streams() {
  auto opened = cuda_events::open();
  if (!opened) {
    MESSAGE("skipped: ", describe(opened.error()));
    return std::nullopt;
  }
  return *std::move(opened);
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(stream_policy, cuda_events);
}

TEST_CASE("opening the events of a device says what is missing, the driver or the device") {
  auto const opened = cuda_events::open({.device = 10'000});
  REQUIRE_FALSE(opened.has_value());
  if (cuda_driver::get()) fails_with(opened, errc::invalid_argument, "cuDeviceGet");
  else fails_with(opened, errc::no_driver);
}

TEST_CASE("events are created when needed and used again once released") {
  auto s = make_streams<cuda_events>();
  if (!s) return;
  CHECK(s->events() == 0);
  for (int i = 0; i != 10; ++i) {
    auto f = must(s->record(first_stream));
    s->release(f);
  }
  CHECK(s->events() == 1);
  std::vector<cuda_events::fence> fences;
  for (int i = 0; i != 300; ++i) fences.push_back(must(s->record(second_stream)));
  for (auto& f : fences) s->release(f);
  CHECK(s->events() == 300);
}

#endif  // cuda.h
