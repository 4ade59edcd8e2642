#include "gmlake/adapter/torch_streams.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/stream/simulated_streams.hpp"
#include "tests/stream/stream_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using watched_streams = torch_streams<simulated_streams>;

constexpr stream a{1};
constexpr stream b{2};

/// A policy over a timeline, and a watcher of this thread's waits.
struct scene final : torch_wait_watcher {
  std::shared_ptr<simulated_timeline> time =
      std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless});
  std::shared_ptr<std::atomic<int>> pauses = std::make_shared<std::atomic<int>>(0);
  torch_foreign_streams foreign;
  watched_streams streams{simulated_streams(time), pauses, foreign};
  struct note {
    std::string what;
    std::uint64_t waits;  ///< that the timeline had seen by then
    stream on;
    friend bool operator==(note const&, note const&) = default;
  };
  std::vector<note> told;

  scene() { of_thread() = this; }
  scene(scene const&) = delete;
  scene& operator=(scene const&) = delete;
  ~scene() override { of_thread() = nullptr; }

  void waits(stream on) noexcept override { told.push_back({"waits", time->counts().waits, on}); }
  void waited(stream on) noexcept override { told.push_back({"waited", time->counts().waits, on}); }
};

}  // namespace

TEST_CASE("a stream's wait is told to the thread that makes it wait, before and after") {
  scene s;
  auto f = must(s.streams.record(a));
  CHECK(s.told.empty());
  must(s.streams.wait(b, f));
  std::uint64_t const waits = s.time->counts().waits;
  REQUIRE(waits > 0);
  REQUIRE(s.told.size() == 2);
  CHECK(s.told[0] == scene::note{"waits", waits - 1, b});
  CHECK(s.told[1] == scene::note{"waited", waits, b});
  s.streams.release(f);
}

TEST_CASE("a wait that fails is told of from beginning to end too") {
  scene s;
  auto f = must(s.streams.record(a));
  *s.pauses = 1;
  fails_with(s.streams.wait(b, f), errc::not_supported);
  CHECK(s.told.size() == 2);
  *s.pauses = 0;
  s.streams.release(f);
}

TEST_CASE("other threads' waits, and the host's, are told to nobody") {
  scene s;
  auto f = must(s.streams.record(a));
  std::thread([&] { CHECK(s.streams.wait(b, f)); }).join();
  must(s.streams.synchronize(f));
  CHECK(s.told.empty());
  s.streams.release(f);
}
