#include "gmlake/pool/arena.hpp"

#include "tests/host_memory/scarcity.hpp"
#include "tests/pool/parts_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE("an arena that is short of host memory holds nothing, and the order of frees is as it was") {
  for (bytes const wanted : {chunk_bytes, 4 * chunk_bytes}) {  // one run, and all there are
    bool over = false;
    for (std::uint64_t n = 0; !over; ++n) {
      CAPTURE(wanted);
      CAPTURE(n);
      parts_rig r({.stitched_from = parts_rig::nothing_stitched});
      (void)r.enter(two);  // so that what is free for all is nobody's
      r.lay_chunks(3);
      must(r.order().synchronize());
      r.parts.space.settle();
      arena<parts_rig::config> memory(r.parts, r.stitch, r.grow);
      std::uint64_t const before = refusals();
      run_short({.first = n});
      result<bool> claimed = [&] {
        scarce const now;
        return memory.claim(r.first, wanted, false);
      }();
      run_short({});
      over = refusals() == before;
      if (over) {
        CHECK(must(std::move(claimed)));
        CHECK(memory.size() == (wanted == chunk_bytes ? 1 : 3) * chunk_bytes);
      } else {
        fails_with(claimed, errc::out_of_host_memory);
        CHECK(memory.size() == 0);
        CHECK(memory.taken() == 0);
        CHECK(r.free() == 3 * chunk_bytes);
      }
      char const* const fault = memory.find_fault();
      CHECK_MESSAGE(fault == nullptr, fault);
      memory.let_go(r.first, r.stamp(r.first));
      must(r.order().synchronize());
      CHECK(r.order().quiet());
    }
  }
}
