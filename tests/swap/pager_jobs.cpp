/// What a pager's jobs are told apart by: their numbers, and their priorities where memory is out.

#include <doctest/doctest.h>

#include "gmlake/swap/least_recent.hpp"
#include "gmlake/swap/pager.hpp"
#include "tests/swap/paged_program.hpp"
#include "tests/swap/swap_rig.hpp"

namespace gmlake::test {
namespace {

using swap::job_id;
using swap::residency;

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;

/// A block of four that are all there is, made by an operation of the job.
template <class Pager>
[[nodiscard]] address made(Pager& memory, job_id job, std::uint64_t value) {
  address const at = must(memory.allocate(4 * mib, work, {}, job));
  must(memory.access(at, work, false, true, job));
  stamp(at, 4 * mib, value);
  (void)memory.end_operation(job);
  return at;
}

TEST_CASE_TEMPLATE("where memory is out, blocks of jobs of lower priority leave first, whenever they were used",
                   Victims, swap::farthest_use, swap::least_recent) {
  for (bool const first_matters : {true, false}) {
    CAPTURE(first_matters);
    swap_rig r({.device = 8 * mib});
    swap::pager<swap_rig::pool_type, Victims> memory(*r.pool, {.limit = 8 * mib, .ahead = {}, .look_every = {}});
    job_id const one = memory.add_job(first_matters ? 2 : 1);
    job_id const other = memory.add_job(first_matters ? 1 : 2);
    memory.begin_step(one);
    memory.begin_step(other);
    address const earlier = made(memory, one, 1);
    address const later = made(memory, other, 2);
    address const third = made(memory, job_id{}, 3);
    CHECK(r.state(first_matters ? later : earlier) == residency::absent);
    CHECK(r.state(first_matters ? earlier : later) == residency::mapped);
    CHECK(stamped(first_matters ? earlier : later, 4 * mib, first_matters ? 1 : 2));
    for (address const at : {earlier, later, third}) must(memory.deallocate(at));
  }
}

TEST_CASE("what is no job, or none any more, is an error, and changes nothing") {
  swap_rig r({.device = 16 * mib});
  swap::pager<swap_rig::pool_type> memory(*r.pool, {});
  job_id const over = memory.add_job();
  memory.end_job(over);
  address const at = made(memory, job_id{}, 4);
  std::uint64_t const steps = memory.stats().steps;
  for (job_id const none : {over, job_id{7}, job_id{~0u}}) {
    CHECK(memory.allocate(mib, work, {}, none).error().code == errc::invalid_argument);
    CHECK(memory.access(at, work, true, false, none).error().code == errc::invalid_argument);
    CHECK(memory.end_operation(none) == 0);
    memory.took(0, 1000, none);
    memory.begin_step(none);
    CHECK(memory.may_go(none));
    CHECK_FALSE(memory.expected(none));
    memory.end_job(none);
  }
  CHECK(memory.stats().steps == steps);
  CHECK(stamped(at, 4 * mib, 4));
  must(memory.deallocate(at));
}

}  // namespace
}  // namespace gmlake::test
