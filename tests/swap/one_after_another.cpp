#include "gmlake/swap/one_after_another.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "gmlake/swap/claims.hpp"
#include "gmlake/swap/load.hpp"
#include "gmlake/swap/lowest_peak.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::one_after_another_test {
namespace {

/// What lives to the end was left over by the step before as well, half of it; the rest is freed with the step.
[[nodiscard]] step_program logged(program p) {
  step_program made;
  made.program = std::move(p);
  auto const end = static_cast<std::uint32_t>(made.program.operations.size());
  std::vector<variable>& all = made.program.variables;
  made.who.resize(all.size());
  for (std::uint32_t v = 0, n = static_cast<std::uint32_t>(all.size()); v < n; ++v) {
    if (all[v].carried) continue;
    made.who[v].is = identity::kind::born;
    if (all[v].death != end || v % 2 == 0) continue;
    made.who[v].outlives = true;
    all.push_back({.size = all[v].size, .birth = 0, .death = 1 + v % end, .accesses = {}});
    made.who.push_back({.is = identity::kind::left_over});
  }
  return made;
}

[[nodiscard]] bytes resting_before(step_program const& p) {
  bytes sum = 0;
  for (std::size_t v = 0; v < p.who.size(); ++v) {
    variable const& of = p.program.variables[v];
    if (of.carried || p.who[v].is == identity::kind::left_over) sum += of.size;
  }
  return sum;
}
[[nodiscard]] bytes resting_behind(step_program const& p) {
  bytes sum = 0;
  for (std::size_t v = 0; v < p.who.size(); ++v) {
    if (p.program.variables[v].carried || p.who[v].outlives) sum += p.program.variables[v].size;
  }
  return sum;
}

TEST_CASE("one program alone stays what it is") {
  step_program one = logged(programs::cnn(1, {.blocks = 1}));
  one.program.launched.assign(one.program.operations.size(), time(3));
  joint_program const j = one_after_another({one});
  CHECK(find_fault(j.program) == nullptr);
  CHECK(j.program.operations == one.program.operations);
  CHECK(j.program.launched == one.program.launched);
  CHECK(one_after_another({one, one}).program.launched.empty());
  CHECK(loads_of(j.program) == loads_of(one.program));
  CHECK(absences_of(j.program) == absences_of(one.program));
}

TEST_CASE("while a job takes its step the others have what they keep from step to step") {
  std::size_t kept = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::vector<step_program> jobs;
    for (std::uint32_t k = 0; k < 3; ++k) jobs.push_back(logged(programs::tiny(3 * seed + k)));
    joint_program const j = one_after_another(jobs);
    REQUIRE(find_fault(j.program) == nullptr);
    REQUIRE(j.first.size() == 4);
    std::vector<bytes> const loads = loads_of(j.program);
    for (std::uint32_t k = 0; k < 3; ++k) {
      std::vector<bytes> const own = loads_of(jobs[k].program);
      REQUIRE(j.first[k + 1] - j.first[k] == own.size());
      for (std::uint32_t i = 0; i < own.size(); ++i) {
        bytes sum = own[i];
        for (std::uint32_t o = 0; o < 3; ++o) {
          if (o != k) sum += o < k ? resting_behind(jobs[o]) : resting_before(jobs[o]);
        }
        REQUIRE(loads[j.first[k] + i] == sum);
        if (sum > own[i]) ++kept;
      }
    }
    for (std::uint32_t v = 0; v < j.origins.size(); ++v) {
      auto const [job, variable] = j.origins[v];
      swap::variable const& of = jobs[job].program.variables[variable];
      REQUIRE(j.program.variables[v].size == of.size);
      REQUIRE(j.program.variables[v].accesses.size() == of.accesses.size());
      for (std::size_t a = 0; a < of.accesses.size(); ++a) {
        CHECK(j.program.variables[v].accesses[a].operation == j.first[job] + of.accesses[a].operation);
      }
    }
  }
  CHECK(kept > 1000);
}

TEST_CASE("taking turns, jobs need less than each by itself with its share of the channel") {
  std::vector<step_program> const jobs{logged(programs::cnn(1, {.blocks = 2, .step_ns = 70e6, .peak = 8e9})),
                                       logged(programs::cnn(2, {.blocks = 2, .step_ns = 105e6, .peak = 6e9}))};
  joint_program const j = one_after_another(jobs);
  channel half;
  half.out.bytes_per_second /= 2;
  half.in.bytes_per_second /= 2;
  bytes apart = 0;
  for (step_program const& p : jobs) apart += lowest_peak(setting(p.program, half)).find().outcome.peak;
  bytes const together = lowest_peak(setting(j.program, {})).find().outcome.peak;
  MESSAGE("planned apart ", apart, ", in turns ", together);
  CHECK(together < apart);
}

TEST_CASE("a step claims what is still to come of it beyond what the job has at rest") {
  program p;
  p.operations.assign(4, time(1));
  p.variables = {{.size = 100, .birth = 0, .death = 4, .carried = true, .accesses = {}},
                 {.size = 10, .birth = 0, .death = 2, .accesses = {}},  // left over
                 {.size = 50, .birth = 1, .death = 3, .accesses = {}},
                 {.size = 7, .birth = 2, .death = 4, .accesses = {}},  // outlives it
                 {.size = 3, .birth = 3, .death = 4, .accesses = {}}};
  step_program made;
  made.program = p;
  made.who.resize(5);
  made.who[1].is = identity::kind::left_over;
  for (std::uint32_t const v : {2u, 3u, 4u}) made.who[v].is = identity::kind::born;
  made.who[3].outlives = true;
  step_claims const c = claims_of(made);
  CHECK(c.resting == 110);
  CHECK(c.beyond == std::vector<bytes>{50, 50, 47, 0});
  CHECK(fit_at_once({made, made}, 320));
  CHECK_FALSE(fit_at_once({made, made}, 319));
}

}  // namespace
}  // namespace gmlake::swap::one_after_another_test
