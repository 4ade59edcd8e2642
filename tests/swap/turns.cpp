#include "gmlake/swap/turns.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace gmlake::swap::turns_test {
namespace {

/// Four operations of so long, of which the first two claim 100 bytes.
[[nodiscard]] std::shared_ptr<step_plan const> plan_of(time operation, bool in_turns = true) {
  step_program p;
  p.program.operations.assign(4, operation);
  p.program.variables = {{.size = 100, .birth = 0, .death = 2, .accesses = {}}};
  p.prefixes.assign(4, 0);
  p.who = {{.is = identity::kind::born}};
  return std::make_shared<step_plan const>(p, planned_moves{}, forecast{}, in_turns);
}

struct some_jobs {
  explicit some_jobs(std::uint32_t count, time patience = std::chrono::seconds(20)) {
    options.patience = patience;
    options.ahead = {};
    for (std::uint32_t k = 0; k < count; ++k) {
      all.push_back(std::make_unique<pager_job>(k, 0, options));
      all.back()->plan = plan_of(time(10));
    }
  }
  [[nodiscard]] pager_job& operator[](std::size_t k) { return *all[k]; }
  void begin(std::size_t k) {
    all[k]->log.begin_step();
    t.step_begun(*all[k]);
  }
  void take(std::size_t k) {
    std::unique_lock lock(mutex);
    t.await(lock, *all[k]);
  }
  void end_operations(std::size_t k, int n) {
    std::scoped_lock const lock(mutex);
    for (int i = 0; i < n; ++i) {
      all[k]->log.end_operation();
      t.operation_ended(*all[k]);
    }
  }
  /// A step of its own, with nobody in its way.
  void step(std::size_t k) {
    begin(k);
    take(k);
    end_operations(k, 4);
  }

  pager_options options;
  pager_stats seen;
  turns::jobs all;
  turns t{all, options, seen};
  std::mutex mutex;
};

TEST_CASE("nobody waits where no plan needs turns") {
  some_jobs jobs(2);
  for (std::size_t k : {0U, 1U}) jobs[k].plan = plan_of(time(10), false);
  for (std::size_t k : {0U, 1U}) {
    jobs.begin(k);
    CHECK(jobs[k].turn == turn::none);
    CHECK(jobs.t.may_go(jobs[k]));
  }
}

TEST_CASE("a step waits until the one before it claims nothing more, which is before that is over") {
  some_jobs jobs(2);
  for (std::size_t k : {0U, 1U}) jobs.begin(k);
  CHECK(jobs.t.may_go(jobs[1]));  // whoever comes first
  jobs.take(0);
  CHECK(jobs.t.may_go(jobs[0]));
  CHECK_FALSE(jobs.t.may_go(jobs[1]));
  jobs.end_operations(0, 1);
  CHECK_FALSE(jobs.t.may_go(jobs[1]));
  jobs.end_operations(0, 1);
  CHECK(jobs.t.may_go(jobs[1]));
  jobs.take(1);
  jobs.end_operations(0, 2);
  CHECK(jobs[0].turn == turn::none);
  jobs.begin(0);
  CHECK_FALSE(jobs.t.may_go(jobs[0]));
  jobs.end_operations(1, 4);
  CHECK(jobs.t.may_go(jobs[0]));
  CHECK(jobs.seen.turns_awaited == 0);
}

TEST_CASE("threads that wait go in rounds, whoever comes first") {
  some_jobs jobs(4);
  for (std::size_t k : {0U, 1U, 2U, 3U}) jobs.begin(k);
  jobs.take(1);
  std::vector<std::size_t> order;
  std::vector<std::thread> threads;
  for (std::size_t k : {0U, 3U, 2U}) {
    threads.emplace_back([&, k] {
      jobs.take(k);
      {
        std::scoped_lock const lock(jobs.mutex);
        order.push_back(k);
      }
      jobs.end_operations(k, 4);
    });
    auto const waits = [&] {
      std::scoped_lock const lock(jobs.mutex);
      return jobs[k].turn == turn::awaited;
    };
    while (!waits()) std::this_thread::yield();
  }
  jobs.end_operations(1, 4);
  for (std::thread& t : threads) t.join();
  CHECK(order == std::vector<std::size_t>{2, 3, 0});
  CHECK(jobs.seen.turns_awaited == 3);
  CHECK(jobs.seen.turns_passed == 0);
}

TEST_CASE("a job of short steps has no more of them than others that wait, and none waits for who is not there") {
  some_jobs jobs(3);
  jobs[1].plan = plan_of(time(1));
  for (std::size_t k : {0U, 1U}) {
    jobs.begin(k);
    jobs.t.ask(jobs[k]);
  }
  for (std::size_t k : {1U, 0U, 1U, 0U, 1U, 0U}) {  // the first job counts as the last to have gone
    CHECK(jobs.t.may_go(jobs[k]));
    CHECK_FALSE(jobs.t.may_go(jobs[1 - k]));
    jobs.take(k);
    jobs.end_operations(k, 4);
    jobs.begin(k);
    jobs.t.ask(jobs[k]);
  }
  jobs.begin(2);
  CHECK(jobs.t.may_go(jobs[1]));
  jobs.take(1);
  jobs.end_operations(1, 4);
  jobs.take(2);
  CHECK(jobs[2].turn == turn::taken);
  CHECK(jobs.seen.turns_awaited == 0);
}

TEST_CASE("who may go later than another that waits has to be asked for that") {
  some_jobs jobs(3);
  for (std::size_t k : {0U, 1U, 2U}) jobs.begin(k);
  jobs.take(0);
  jobs.end_operations(0, 4);
  CHECK(jobs.t.may_go(jobs[2]));
  jobs.t.ask(jobs[1]);
  CHECK_FALSE(jobs.t.may_go(jobs[2]));
  CHECK(jobs.t.may_go(jobs[1]));
}

TEST_CASE("who asks and does not come is waited for no longer than others have patience") {
  some_jobs jobs(2, std::chrono::milliseconds(1));
  for (std::size_t k : {0U, 1U}) jobs.begin(k);
  jobs.t.ask(jobs[1]);
  jobs.take(0);
  CHECK(jobs[0].turn == turn::taken);
  CHECK(jobs[1].turn == turn::due);
  CHECK(jobs[1].held_up == 0);
  jobs.end_operations(0, 4);
  jobs.take(1);
  CHECK(jobs[1].turn == turn::taken);
}

TEST_CASE("a step that gets nowhere is passed, and after three times on end its job takes part no more") {
  some_jobs jobs(2, std::chrono::milliseconds(1));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    jobs.begin(0);
    jobs.take(0);
    jobs.begin(1);
    jobs.take(1);  // after a while
    CHECK(jobs.seen.turns_passed == i);
    CHECK(jobs[1].turn == turn::taken);
    jobs.end_operations(1, 4);
  }
  jobs.begin(0);
  CHECK(jobs[0].turn == turn::none);
  jobs.begin(1);
  jobs.take(1);
  CHECK(jobs.seen.turns_passed == 3);
}

TEST_CASE("a step that gets on is waited for, and counts for its job") {
  some_jobs jobs(2, std::chrono::milliseconds(2));
  for (int i = 0; i < 2; ++i) {
    jobs.begin(0);
    jobs.take(0);
    jobs.begin(1);
    jobs.take(1);
  }
  CHECK(jobs[0].held_up == 2);
  jobs.step(0);
  CHECK(jobs[0].held_up == 0);

  some_jobs slow(2, std::chrono::seconds(2));
  slow[0].plan = plan_of(time(10));
  slow.begin(0);
  slow.take(0);
  slow.begin(1);
  std::thread waits([&] { slow.take(1); });
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    slow.end_operations(0, 1);
  }
  waits.join();
  CHECK(slow.seen.turns_passed == 0);
  CHECK(slow[1].turn == turn::taken);
}

TEST_CASE("a job of which no plan is known yet waits too, and is waited for no longer than others have patience") {
  some_jobs jobs(2, std::chrono::milliseconds(1));
  jobs[1].plan = nullptr;
  jobs.begin(0);
  jobs.take(0);
  jobs.begin(1);
  CHECK(jobs[1].turn == turn::due);
  CHECK_FALSE(jobs.t.may_go(jobs[1]));
  jobs.end_operations(0, 4);
  jobs.take(1);
  jobs.end_operations(1, 4);
  CHECK(jobs[1].turn == turn::taken);  // nobody knows whether it is over
  jobs.begin(0);
  CHECK_FALSE(jobs.t.may_go(jobs[0]));
  SUBCASE("until its next step begins") {
    jobs.begin(1);
    CHECK(jobs.t.may_go(jobs[0]));
    CHECK(jobs.seen.turns_passed == 0);
  }
  SUBCASE("or that long") {
    jobs.take(0);
    CHECK(jobs.seen.turns_passed == 1);
    CHECK(jobs[0].turn == turn::taken);
  }
}

TEST_CASE("a job that waits goes when its turn is taken back") {
  some_jobs jobs(2);
  for (std::size_t k : {0U, 1U}) jobs.begin(k);
  jobs.take(0);
  std::thread waits([&] { jobs.take(1); });
  for (;;) {
    std::scoped_lock const lock(jobs.mutex);
    if (jobs[1].turn != turn::awaited) continue;
    jobs.t.end(jobs[1]);
    break;
  }
  waits.join();
  CHECK(jobs[1].turn == turn::none);
}

}  // namespace
}  // namespace gmlake::swap::turns_test
