#include "gmlake/trace/verifier.hpp"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/trace/reader.hpp"
#include "tests/trace/bump_pool.hpp"

namespace {
using namespace gmlake;

/// Memory of which only the bytes written exist.
struct sparse_backend {
  std::map<address, std::byte> memory;
  bool broken = false;

  bytes granularity() const noexcept { return 2_MiB; }
  result<handle> create(bytes) noexcept { return handle{1}; }
  result<void> release(handle) noexcept { return {}; }
  result<address> reserve(bytes, bytes) noexcept { return address{1}; }
  result<void> unreserve(address, bytes) noexcept { return {}; }
  result<void> map(address, bytes, handle) noexcept { return {}; }
  result<void> unmap(address, bytes) noexcept { return {}; }
  result<void> set_access(address, bytes, gmlake::access) noexcept { return {}; }
  result<void> write(address va, std::span<std::byte const> from) noexcept {
    if (broken) return failure(errc::driver_failure, "write");
    for (bytes i = 0; i < from.size(); ++i) memory[va + i] = from[i];
    return {};
  }
  result<void> read(std::span<std::byte> to, address va) noexcept {
    if (broken) return failure(errc::driver_failure, "read");
    for (bytes i = 0; i < to.size(); ++i) to[i] = memory[va + i];
    return {};
  }
};
static_assert(CopyingBackend<sparse_backend>);

using verifier = trace::verifier<sparse_backend>;
constexpr trace::verify_options tiny{.whole = 1_KiB, .page = 64, .boundary = 4_KiB};
constexpr address base = static_cast<address>(1_GiB + 512);

TEST_CASE("blocks that keep their contents pass") {
  sparse_backend b;
  verifier v(b, 3, tiny);
  for (bytes n : {bytes{0}, bytes{1}, bytes{13}, 1_KiB, 1_KiB + 1, 64_KiB + 7}) {
    CAPTURE(n);
    CHECK(v.allocated(0, base, n));
    CHECK(v.deallocating(0, base));
  }
  CHECK(v.message().empty());
}

TEST_CASE("small blocks are filled throughout, large ones at their ends and where chunks may meet") {
  sparse_backend b;
  verifier v(b, 2, tiny);
  CHECK(v.allocated(0, base, 1000));
  CHECK(b.memory.size() == 1000);
  b.memory.clear();
  CHECK(v.allocated(1, base, 10000));
  for (bytes offset : {bytes{0}, bytes{63}, 4_KiB - 512 - 64, 4_KiB - 512 - 1, 4_KiB - 512, 4_KiB - 512 + 63,
                       8_KiB - 512 - 1, 8_KiB - 512, bytes{9936}, bytes{9999}}) {
    CAPTURE(offset);
    CHECK(b.memory.count(base + offset) == 1);
  }
  CHECK(b.memory.size() == 64 * 6);
  CHECK(b.memory.rbegin()->first == base + 9999);
}

TEST_CASE("where only some boundaries are visited, each block visits others") {
  trace::verify_options few = tiny;
  few.most_boundaries = 2;
  sparse_backend b;
  verifier v(b, 9, few);
  for (std::uint32_t id = 0; id < 9; ++id) {  // 15 boundaries, every ninth
    std::size_t const before = b.memory.size();
    CHECK(v.allocated(id, base, 64_KiB));
    CHECK(b.memory.size() > before);
    CHECK(v.deallocating(id, base));
    if (id == 0) CHECK(b.memory.size() <= 64 * (2 + 2 * 3));
  }
  for (bytes offset = 4_KiB - 512; offset < 64_KiB; offset += 4_KiB) {
    CAPTURE(offset);
    CHECK(b.memory.count(base + offset) == 1);
    CHECK(b.memory.count(base + offset - 1) == 1);
  }
}

TEST_CASE("a change is found, with the block and the offset") {
  sparse_backend b;
  verifier v(b, 2, tiny);
  CHECK(v.allocated(0, base, 100));
  CHECK(v.allocated(1, base + 512, 100));
  b.memory[base + 512 + 37] ^= std::byte{1};
  CHECK(v.deallocating(0, base));
  CHECK_FALSE(v.deallocating(1, base + 512));
  CHECK(v.message().starts_with("block 1 at offset 37 holds "));
}

TEST_CASE("a replay through a pool whose blocks overlap is stopped") {
  auto const t = trace::read("a,0,100,0\na,1,100,0\nf,0\n");
  test::bump_pool pool;
  pool.overlap = true;
  sparse_backend b;
  verifier v(b, t.value.allocations);
  trace::no_timeline none;
  auto const r = trace::replay(t.value, pool, none, v);
  CHECK(r.outcome == trace::replay_outcome::stopped);
  CHECK(r.failed_event == 2);
  CHECK(v.message().starts_with("block 0 at offset "));
}

TEST_CASE("blocks live at the end are checked too") {
  sparse_backend b;
  verifier v(b, 2);
  address const addresses[] = {base, base + 512};
  CHECK(v.allocated(0, addresses[0], 100));
  CHECK(v.allocated(1, addresses[1], 100));
  SUBCASE("sound") { CHECK(v.finish(addresses)); }
  SUBCASE("spoilt") {
    b.memory[base + 512 + 99] ^= std::byte{128};
    CHECK_FALSE(v.finish(addresses));
    CHECK(v.message().starts_with("block 1 at offset 99 "));
  }
}

TEST_CASE("memory that can't be reached is a failure") {
  sparse_backend b;
  verifier v(b, 1);
  b.broken = true;
  CHECK_FALSE(v.allocated(0, base, 1));
  CHECK(v.message() == "block 0 at offset 0 can't be written: driver failure");
}

}  // namespace
