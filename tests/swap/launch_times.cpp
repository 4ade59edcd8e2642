#include "gmlake/swap/launch_times.hpp"

#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::launch_times_test {
namespace {

using namespace std::chrono_literals;

time now_is{};
[[nodiscard]] time read() noexcept { return now_is; }

}  // namespace

TEST_CASE("a launch takes what passes from when all that follows from the one before is done") {
  launch_watch w(read);
  now_is = 1s;
  w.begins();
  now_is += 30us;
  CHECK(w.ends() == 30us);
  now_is += 5us;  // what follows from it
  w.begins();
  CHECK(w.ends() == 0us);
}

TEST_CASE("work on memory within a launch counts up to what is usual") {
  launch_watch w(read);
  w.begins();
  now_is += 10us;
  CHECK(w.aside([] {
    now_is += 40us;
    return 3;
  }) == 3);
  CHECK(w.ends() == 50us);
  (void)w.aside([] {
    now_is += 7ms;
    return 0;
  });
  now_is += 1us;
  CHECK(w.ends() == 101us);
}

TEST_CASE("without a clock nothing is timed") {
  launch_watch w(nullptr);
  w.begins();
  CHECK(w.aside([] { return 3; }) == 3);
  CHECK(w.ends() == 0us);
}

TEST_CASE("each operation's launch is taken from the last three steps, the one in the middle") {
  launch_times t;
  t.note({time(900), time(10), time(9000)});
  t.note({time(900), time(20), time(100)});
  CHECK_FALSE(t.known());
  t.note({time(900), time(7000), time(200)});
  REQUIRE(t.known());
  CHECK(t.since_first() == std::vector{time(0), time(20), time(220)});
  t.note({time(900), time(10), time(300)});  // in the first one's place
  CHECK(t.since_first() == std::vector{time(0), time(20), time(220)});
  t.note({time(900), time(10), time(300)});
  CHECK(t.since_first() == std::vector{time(0), time(10), time(310)});
}

}  // namespace gmlake::swap::launch_times_test
