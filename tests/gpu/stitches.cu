/// Kernels on memory that is stitched: what they write there is there at every address of the same memory, on every
/// stream, and stays while other stitches are unmapped, chunks are released and memory runs out.

#include "gmlake/pool/presets/lake.hpp"
#include "tests/gpu/device.cuh"

using namespace gmlake;
using namespace gmlake::literals;
using namespace gmlake::test;

namespace {

using pool = lake_pool<cuda_vmm, cuda_events>;

constexpr bytes piece = 2_MiB;  ///< of memory: a chunk, and a block
constexpr std::size_t pieces = 128;

/// Chunks of one size, and no more than `limit`.
with_gpu<pool> lake_of(bytes limit, lru_options const& evict = {}) {
  return with_gpu<pool>({.limit = limit},
                        {.growth = adaptive_chunks(adaptive_options::fixed(piece)), .evict = lru(evict)});
}

/// Fills the pool with blocks of a chunk each, every one with its number's pattern.
std::vector<address> fill(pool& p, checker& kernels, cuda_stream const& on) {
  std::vector<address> blocks;
  for (word i = 0; i < pieces; ++i) {
    blocks.push_back(must(p.allocate(piece, on.name())));
    kernels.write(blocks.back(), piece, i, on);
  }
  return blocks;
}

/// Frees every second block; checks the others, which go on living.
std::vector<address> thin_out(pool& p, std::vector<address> const& blocks) {
  std::vector<address> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 2 == 0) left.push_back(blocks[i]);
    else must(p.deallocate(blocks[i]));
  }
  return left;
}

void check_left(std::vector<address> const& left, checker& kernels, cuda_stream const& on, word time = no_time) {
  for (word i = 0; i < left.size(); ++i) kernels.check(left[i], piece, 2 * i, on, time);
}

/// The stitch that serves the block at `at`; without extents where none does.
stitch_snapshot stitch_beneath(pool const& p, address at) {
  for (stitch_snapshot const& s : p.snapshot().stitches) {
    if (s.live && s.begin <= at && at < s.begin + s.size) return s;
  }
  return {};
}

}  // namespace

TEST_CASE("what is written through a stitch is read there and at its homes, by kernels on any stream") {
  auto gpu = lake_of(pieces * piece);
  checker kernels;
  cuda_stream const writer, reader;
  auto const left = thin_out(gpu.pool, fill(gpu.pool, kernels, writer));

  // An odd size, so that the last chunk is used in part.
  constexpr bytes size = pieces / 2 * piece - 12'344;
  constexpr word seed = 1000;
  address const block = must(gpu.pool.allocate(size, writer.name()));
  stitch_snapshot const s = stitch_beneath(gpu.pool, block);
  REQUIRE(s.extents.size() == pieces / 2);
  REQUIRE(block == s.begin);
  kernels.write(block, size, seed, writer);
  check_left(left, kernels, writer);

  reader.follow(writer);
  kernels.check(block, size, seed, reader);
  bytes offset = 0;
  for (extent_snapshot const& e : s.extents) {
    kernels.check(e.home, std::min(e.size, size - offset), seed, reader, no_time, offset);
    offset += e.size;
  }
  CHECK(kernels.wrong_words() == 0);

  SUBCASE("and what is written at its homes is read through it") {
    for (std::size_t i = 0; i < s.extents.size(); ++i) kernels.write(s.extents[i].home, piece, 2000 + i, reader);
    writer.follow(reader);
    for (std::size_t i = 0; i < s.extents.size(); ++i) {
      bytes const at = i * piece;
      kernels.check(block + at, std::min(piece, size - at), 2000 + i, writer);
    }
    CHECK(kernels.wrong_words() == 0);
  }
  SUBCASE("and the next block of its size is served by the same mapping, with nothing asked of the driver") {
    auto const before = gpu.pool.stats().driver.total().calls;
    for (word i = 0; i < 20; ++i) {
      must(gpu.pool.deallocate(block));
      REQUIRE(must(gpu.pool.allocate(size, writer.name())) == block);
      kernels.write(block, size, i, writer);
      kernels.check(block, size, i, writer);
    }
    CHECK(gpu.pool.stats().driver.total().calls == before);
    CHECK(kernels.wrong_words() == 0);
  }
  CHECK(gpu.pool.validate() == nullptr);
}

TEST_CASE("a check would notice a single wrong word") {
  auto gpu = lake_of(pieces * piece);
  checker kernels;
  cuda_stream const s;
  address const block = must(gpu.pool.allocate(piece, s.name()));
  kernels.write(block, piece, 1, s);
  kernels.write(block + 4096, sizeof(word), 2, s);
  kernels.check(block, piece, 1, s);
  CHECK(kernels.wrong_words() == 1);
}

TEST_CASE("stitches are unmapped while kernels run on others") {
  auto gpu = lake_of(pieces * piece, {.stitches = 0});  // none is kept longer than its kernels need it
  checker kernels;
  cuda_stream const other, busy;
  auto const left = thin_out(gpu.pool, fill(gpu.pool, kernels, other));
  busy.follow(other);
  address const watched = must(gpu.pool.allocate(4 * piece, busy.name()));
  REQUIRE(stitch_beneath(gpu.pool, watched).extents.size() == 4);
  kernels.write(watched, 4 * piece, 77, busy);

  // Each is larger than those before, whose stitches can't serve it.
  std::size_t const most = pieces / 2 - 4;
  for (word i = 2; i <= most; ++i) {
    kernels.check(watched, 4 * piece, 77, busy, 5 * millisecond);
    address const block = must(gpu.pool.allocate(i * piece, other.name()));
    kernels.write(block, i * piece, i, other);
    kernels.check(block, i * piece, i, other);
    must(gpu.pool.deallocate(block));
    must(cudaStreamSynchronize(other.get()));
  }
  CHECK(busy.busy());
  check_left(left, kernels, other);
  pool_stats const s = gpu.pool.stats();
  CHECK(s.stitches_made >= most);
  CHECK(s.stitches_live == 1);
  CHECK(s.stitches_cached <= 3);
  CHECK(gpu.pool.validate() == nullptr);
  CHECK(kernels.wrong_words() == 0);
}

TEST_CASE("trimming waits for the kernels on what it releases, and leaves the rest alone") {
  auto gpu = lake_of(pieces * piece);
  checker kernels;
  cuda_stream const first, second;
  auto const left = thin_out(gpu.pool, fill(gpu.pool, kernels, first));
  second.follow(first);
  address const kept = must(gpu.pool.allocate(8 * piece, second.name()));
  address const gone = must(gpu.pool.allocate(8 * piece, second.name()));
  kernels.write(kept, 8 * piece, 100, second);
  kernels.write(gone, 8 * piece, 101, second);
  kernels.check(gone, 8 * piece, 101, second, 30 * millisecond);
  must(gpu.pool.deallocate(gone));
  CHECK(second.busy());
  CHECK(must(gpu.pool.trim()) == (pieces / 2 - 8) * piece);
  CHECK_FALSE(second.busy());
  kernels.check(kept, 8 * piece, 100, second);
  check_left(left, kernels, first);
  CHECK(kernels.wrong_words() == 0);
  CHECK(gpu.pool.stats().reserved.now == (pieces / 2 + 8) * piece);
  CHECK(gpu.pool.validate() == nullptr);
}

TEST_CASE("where memory is out at the limit, all that lives is whole, and what is freed serves again") {
  auto gpu = lake_of(pieces * piece);
  checker kernels;
  cuda_stream const first, second;
  auto const left = thin_out(gpu.pool, fill(gpu.pool, kernels, first));
  second.follow(first);
  address const rest = must(gpu.pool.allocate(pieces / 2 * piece, second.name()));
  kernels.write(rest, pieces / 2 * piece, 500, second);

  auto const refused = gpu.pool.allocate(piece, first.name());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::out_of_memory);
  CHECK(refused.error().account.requested == piece);
  CHECK(refused.error().account.reserved == pieces * piece);
  CHECK(refused.error().account.limit == pieces * piece);
  CHECK_FALSE(refused.error().account.fragmented());
  kernels.check(rest, pieces / 2 * piece, 500, second, 5 * millisecond);
  check_left(left, kernels, first);

  SUBCASE("freed by the program") { must(gpu.pool.deallocate(rest)); }
  SUBCASE("freed by the callback") {
    gpu.pool.on_out_of_memory([&](memory_account const&) { return gpu.pool.deallocate(rest).has_value(); });
  }
  address const again = must(gpu.pool.allocate(3 * piece, first.name()));
  kernels.write(again, 3 * piece, 501, first);
  kernels.check(again, 3 * piece, 501, first);
  check_left(left, kernels, first);
  CHECK(kernels.wrong_words() == 0);
  CHECK(gpu.pool.stats().reserved.peak == pieces * piece);
  CHECK(gpu.pool.validate() == nullptr);
}

TEST_CASE("where others have taken the device's memory, the pool says so, and goes on once some is back") {
  auto gpu = lake_of(4_GiB);
  checker kernels;
  cuda_stream const s;
  auto const left = thin_out(gpu.pool, fill(gpu.pool, kernels, s));
  check_left(left, kernels, s);
  CHECK(kernels.wrong_words() == 0);

  auto others = must(cuda_vmm::open());
  std::vector<handle> taken;
  for (bytes size : {bytes{4_GiB}, bytes{64_MiB}, others.granularity()}) {
    for (auto h = others.create(size); h; h = others.create(size)) taken.push_back(*h);
  }
  auto const refused = gpu.pool.allocate(1_GiB, s.name());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::out_of_memory);
  CHECK(gpu.pool.validate() == nullptr);
  // What the pool holds serves still.
  address const held = must(gpu.pool.allocate(pieces / 2 * piece, s.name()));
  kernels.write(held, pieces / 2 * piece, 700, s);
  check_left(left, kernels, s);
  kernels.check(held, pieces / 2 * piece, 700, s);

  must(others.release(taken.front()));
  address const more = must(gpu.pool.allocate(1_GiB, s.name()));
  kernels.write(more, 1_GiB, 701, s);
  kernels.check(more, 1_GiB, 701, s);
  CHECK(kernels.wrong_words() == 0);
  for (std::size_t i = 1; i < taken.size(); ++i) must(others.release(taken[i]));
}
