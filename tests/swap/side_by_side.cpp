#include "gmlake/swap/side_by_side.hpp"

#include <doctest/doctest.h>

#include "gmlake/swap/load.hpp"
#include "gmlake/swap/lowest_peak.hpp"
#include "gmlake/swap/peak_bound.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap {
namespace {

TEST_CASE("one program alone stays what it is") {
  std::vector<program> const one{programs::cnn(1, {.blocks = 1})};
  joint_program const j = side_by_side(one).join();
  CHECK(find_fault(j.program) == nullptr);
  CHECK(j.steps == std::vector<std::uint32_t>{1});
  CHECK(j.stretch == 0);
  CHECK(j.program.operations == one[0].operations);
  CHECK(loads_of(j.program) == loads_of(one[0]));
  CHECK(absences_of(j.program) == absences_of(one[0]));
}

TEST_CASE("at every operation each job's load is that of its own that is running") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::vector<program> jobs{programs::tiny(3 * seed), programs::tiny(3 * seed + 1), programs::tiny(3 * seed + 2)};
    // No operation without time: which of several at one instant is running would be open.
    for (program& p : jobs) {
      for (time& t : p.operations) t = t * 100 + time(50);
    }
    joint_program const j = side_by_side(jobs).join();
    REQUIRE(find_fault(j.program) == nullptr);
    CHECK(j.stretch < 0.5);
    std::vector<bytes> const loads = loads_of(j.program);
    for (std::uint32_t i = 0; i < loads.size(); ++i) {
      bytes sum = 0;
      for (std::uint32_t k = 0; k < jobs.size(); ++k) sum += loads_of(jobs[k])[j.runs[k][i]];
      REQUIRE(loads[i] == sum);
    }
    for (std::uint32_t v = 0; v < j.origins.size(); ++v) {
      variable const& of = jobs[j.origins[v].job].variables[j.origins[v].variable];
      CHECK(j.program.variables[v].size == of.size);
      for (access const& a : j.program.variables[v].accesses) {
        std::uint32_t const own = j.runs[j.origins[v].job][a.operation];
        CHECK(std::ranges::count(of.accesses, own, &access::operation) == 1);
      }
    }
  }
}

TEST_CASE("planned together, jobs need less than each planned with its share of the channel") {
  std::vector<program> const jobs{programs::cnn(1, {.blocks = 2, .step_ns = 70e6, .peak = 8e9}),
                                  programs::cnn(2, {.blocks = 2, .step_ns = 105e6, .peak = 6e9})};
  joint_program const j = side_by_side(jobs).join();
  CHECK(find_fault(j.program) == nullptr);
  CHECK(j.steps == std::vector<std::uint32_t>{3, 2});
  CHECK(j.stretch < 0.001);
  channel half;
  half.out.bytes_per_second /= 2;
  half.in.bytes_per_second /= 2;
  bytes apart = 0, peaks = 0;
  for (program const& p : jobs) {
    setting const at(p, half);
    apart += lowest_peak(at).find().outcome.peak;
    peaks += at.peak();
  }
  setting const at(j.program, {});
  bytes const together = lowest_peak(at).find().outcome.peak;
  MESSAGE("peaks ", peaks, ", of the sum ", at.peak(), "; planned apart ", apart, ", together ", together,
          ", no less than ", peak_bound(at));
  CHECK(together < apart);
  CHECK(at.peak() <= peaks);
}

}  // namespace
}  // namespace gmlake::swap
