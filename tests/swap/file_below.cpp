/// A file below the pinned pool: copies that have been there longest give way to new ones, and come back all the same.

#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::residency;
using swap::tag;

namespace {

constexpr bytes mib = 1_MiB;
constexpr stream work = swap_rig::work;

/// Room for two blocks of 2 MiB in pinned memory, beside the stages.
constexpr swap_rig_options two_fit{.host = 4 * mib + 512_KiB, .file = 16 * mib};

void send_away(swap_rig& r, address b) {
  must(r.pool->swap_out(b, work));
  must(r.pool->settle());
  REQUIRE(r.state(b) == residency::absent);
}

[[nodiscard]] std::vector<address> four_away(swap_rig& r) {
  std::vector<address> all;
  for (unsigned char i = 0; i < 4; ++i) {
    all.push_back(r.take(2 * mib));
    r.fill(all.back(), 2 * mib, static_cast<unsigned char>(i + 1));
  }
  for (address b : all) send_away(r, b);
  return all;
}

}  // namespace

TEST_CASE("the oldest copies are written to the file, and all come back") {
  swap_rig r(two_fit);
  auto const all = four_away(r);
  CHECK(r.pool->swaps().on_file == 4 * mib);
  CHECK(r.pool->swaps().on_host == 4 * mib);
  CHECK(r.pool->swaps().filed == 2);
  CHECK(r.pool->swaps().refusals == 0);
  must(r.pool->swap_in(all[3], work));  // the youngest is in memory
  CHECK(r.store->reads == 0);
  for (unsigned char i = 0; i < 4; ++i) {
    must(r.pool->swap_in(all[i], work));
    CHECK(r.holds(all[i], 2 * mib, static_cast<unsigned char>(i + 1)));
  }
  CHECK(r.store->reads == 2 * (2 * mib / swap_rig::stage));
  must(r.pool->settle());
  CHECK(r.pool->swaps().on_file == 0);
  CHECK(r.pool->swaps().on_host == 0);
}

TEST_CASE("what is in the file comes back though pinned memory is full, and goes again") {
  swap_rig r(two_fit);
  auto const all = four_away(r);
  must(r.pool->swap_in(all[0], work));
  CHECK(r.holds(all[0], 2 * mib, 1));
  r.fill(all[0], 2 * mib, 11);
  must(r.pool->settle());
  CHECK(r.pool->swaps().on_host == 4 * mib);
  send_away(r, all[0]);
  CHECK(r.pool->swaps().filed == 3);  // the third gave way
  must(r.pool->swap_in(all[2], work));
  CHECK(r.holds(all[2], 2 * mib, 3));
  must(r.pool->swap_in(all[0], work));
  CHECK(r.holds(all[0], 2 * mib, 11));
}

TEST_CASE("what neither pinned memory nor the file has room for stays on the device") {
  swap_rig r({.host = 4 * mib + 512_KiB, .file = 2 * mib});
  std::vector<address> all;
  for (unsigned char i = 0; i < 4; ++i) {
    all.push_back(r.take(2 * mib));
    r.fill(all.back(), 2 * mib, i);
  }
  for (int i = 0; i < 3; ++i) send_away(r, all[static_cast<std::size_t>(i)]);
  CHECK(r.pool->swap_out(all[3], work).error().code == errc::out_of_host_memory);
  CHECK(r.state(all[3]) == residency::mapped);
  CHECK(r.pool->swaps().refusals == 1);
  CHECK(r.holds(all[3], 2 * mib, 3));
  must(r.pool->deallocate(all[0]));  // from the file
  CHECK(r.pool->swaps().on_file == 0);
  send_away(r, all[3]);
  for (unsigned char i = 1; i < 4; ++i) {
    must(r.pool->swap_in(all[i], work));
    CHECK(r.holds(all[i], 2 * mib, i));
  }
}

TEST_CASE("a file that can't be written keeps the next block on the device, and what is away stays whole") {
  swap_rig r(two_fit);
  std::vector<address> all;
  for (unsigned char i = 0; i < 3; ++i) {
    all.push_back(r.take(2 * mib));
    r.fill(all.back(), 2 * mib, i);
  }
  send_away(r, all[0]);
  send_away(r, all[1]);
  r.store->write_fails = [] { return true; };
  CHECK(r.pool->swap_out(all[2], work).error().code == errc::out_of_host_memory);
  CHECK(r.state(all[2]) == residency::mapped);
  CHECK(r.pool->swaps().failures == 1);
  CHECK(r.pool->swaps().on_file == 0);
  r.store->write_fails = nullptr;
  send_away(r, all[2]);
  for (unsigned char i = 0; i < 3; ++i) {
    must(r.pool->swap_in(all[i], work));
    CHECK(r.holds(all[i], 2 * mib, i));
  }
}

TEST_CASE("a file that can't be read leaves the block absent, and it comes back when it can") {
  swap_rig r(two_fit);
  auto const all = four_away(r);
  std::uint64_t reads = 0;
  r.store->read_fails = [&reads] { return ++reads == 3; };  // two pieces are on their way by then
  auto const failed = r.pool->swap_in(all[0], work);
  REQUIRE_FALSE(failed);
  CHECK(std::string(failed.error().call) == "pread: injected");
  CHECK(r.state(all[0]) == residency::absent);
  CHECK(r.device.beneath(all[0], 1).empty());
  for (unsigned char i = 0; i < 4; ++i) {
    must(r.pool->swap_in(all[i], work));
    CHECK(r.holds(all[i], 2 * mib, static_cast<unsigned char>(i + 1)));
  }
}

TEST_CASE("read-only blocks in the file leave again without being written again") {
  swap_rig r(two_fit);
  auto const all = four_away(r);
  must(r.pool->set_read_only(all[0], true));
  for (int i = 0; i < 2; ++i) {
    must(r.pool->swap_in(all[0], work));
    CHECK(r.holds(all[0], 2 * mib, 1));
    must(r.pool->settle());
    CHECK(r.pool->swaps().on_file == 4 * mib);
    send_away(r, all[0]);
  }
  CHECK(r.pool->swaps().copied_out == 8 * mib);
  CHECK(r.store->writes == 2);
  must(r.pool->swap_in(all[0], work));
  must(r.pool->settle());
  must(r.pool->set_read_only(all[0], false));
  CHECK(r.pool->swaps().on_file == 2 * mib);
}

TEST_CASE("blocks in the file are paused without their contents, resumed and freed like others") {
  swap_rig r(two_fit);
  auto const all = four_away(r);
  must(r.pool->deallocate(all[1]));
  CHECK(r.pool->swaps().on_file == 2 * mib);
  CHECK(r.pool->resume(tag{}).stayed == 0);
  CHECK(r.holds(all[0], 2 * mib, 1));
  CHECK(r.pool->swaps().on_file == 0);
  CHECK(r.pool->pause(tag{}, false).stayed == 0);
  CHECK(r.pool->swaps().on_host == 0);
}

TEST_CASE("a group larger than pinned memory is paused into the file, and resumes") {
  swap_rig r(two_fit);
  std::vector<address> all;
  for (unsigned char i = 0; i < 6; ++i) {
    all.push_back(r.take(2 * mib, work, tag{1}));
    r.fill(all.back(), 2 * mib, i);
  }
  CHECK(r.pool->pause(tag{1}).moved == 12 * mib);
  CHECK(r.on_device->stats().reserved.now == 0);
  CHECK(r.pool->swaps().on_file == 8 * mib);
  CHECK(r.pool->swaps().refusals == 0);
  CHECK(r.pool->resume(tag{1}).moved == 12 * mib);
  for (unsigned char i = 0; i < 6; ++i) CHECK(r.holds(all[i], 2 * mib, i));
}

TEST_CASE("a pool that goes while copies are in the file leaves nothing behind") {
  swap_rig r(two_fit);
  auto const all = four_away(r);
  must(r.pool->prefetch(all[0]));
  r.pool.reset();
  CHECK(r.on_host->stats().live.now == 0);
}

TEST_CASE("a host pool that has no room for the stages does without the file") {
  swap_rig r({.host = 256_KiB, .file = 16 * mib});
  address const b = r.take(mib);
  CHECK(r.pool->swap_out(b, work).error().code == errc::out_of_host_memory);
  CHECK(r.state(b) == residency::mapped);
}

TEST_CASE("copies of blocks that are on the device give way where there is no room for others") {
  for (bytes const file : {bytes{0}, 64 * mib}) {
    CAPTURE(file);
    swap_rig r({.host = 4 * mib + (file > 0 ? 512_KiB : 0), .file = file});
    address const frozen = r.take(4 * mib), other = r.take(4 * mib);
    r.fill(frozen, 4 * mib, 1);
    r.fill(other, 4 * mib, 2);
    must(r.pool->set_read_only(frozen, true));
    send_away(r, frozen);
    must(r.pool->swap_in(frozen, work));
    must(r.pool->settle());
    REQUIRE(r.pool->swaps().on_host == 4 * mib);  // kept
    send_away(r, other);
    must(r.pool->swap_in(other, work));
    must(r.pool->settle());
    send_away(r, frozen);  // copied anew
    must(r.pool->swap_in(frozen, work));
    must(r.pool->settle());
    CHECK(r.holds(frozen, 4 * mib, 1));
    CHECK(r.holds(other, 4 * mib, 2));
  }
}
