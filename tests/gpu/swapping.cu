/// Blocks leave the GPU for pinned host memory and come back, at the same addresses: kernels find on them what kernels
/// wrote, however their memory is put together, whatever else runs, and whatever fails.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "gmlake/backend/cuda_pinned.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/swap/calibrate.hpp"
#include "gmlake/swap/cuda_copier.hpp"
#include "gmlake/swap/pin_ahead.hpp"
#include "gmlake/swap/swap_worker.hpp"
#include "gmlake/swap/swapping_pool.hpp"
#include "tests/gpu/device.cuh"
#include "tests/swap/flaky.hpp"
#include "tests/swap/swap_walk.hpp"

using namespace gmlake;
using namespace gmlake::literals;
using namespace gmlake::test;
using swap::residency;
using swap::tag;

namespace {

using device_pool = lake_pool<cuda_vmm, cuda_events>;
using mapped_host = lake_pool<cuda_vmm>;
using plain_host = lake_pool<placed_memory<cuda_pinned>>;

constexpr bytes piece = 2_MiB;  ///< of memory: a chunk
constexpr word long_time = 20 * millisecond;

[[nodiscard]] cuda_vmm host_memory() { return must(cuda_vmm::open({.lies_on = cuda_vmm_options::location::host})); }

/// A device of small chunks, and host memory of either kind.
template <class Host>
struct swap_on_gpu {
  using pool_type = swap::swapping_pool<device_pool, Host, cuda_events, swap::cuda_copier>;

  device_pool device;
  Host host;
  pool_type pool;

  explicit swap_on_gpu(bytes on_device = 1_GiB, bytes on_host = 1_GiB, swap::swap_options const& o = {},
                       swap::swap_file below = {})
    requires std::same_as<Host, mapped_host>
      : device(must(cuda_vmm::open()), must(cuda_events::open()), {.limit = on_device}, chunks()),
        host(host_memory(), {.limit = on_host}, {.growth = adaptive_chunks(adaptive_options::fixed(4 * piece))}),
        pool(device, host, must(cuda_events::open()), must(swap::cuda_copier::open()), std::move(below), o) {}
  explicit swap_on_gpu(bytes on_device = 1_GiB, bytes on_host = 1_GiB)
    requires std::same_as<Host, plain_host>
      : device(must(cuda_vmm::open()), must(cuda_events::open()), {.limit = on_device}, chunks()),
        host(placed_memory(must(cuda_pinned::open())), {.limit = on_host}),
        pool(device, host, must(cuda_events::open()), must(swap::cuda_copier::open())) {}

  [[nodiscard]] bytes free_on_device() { return must(device.backend().memory_info()).free; }

 private:
  [[nodiscard]] static typename device_pool::policies chunks() {
    return {.growth = adaptive_chunks(adaptive_options::fixed(piece))};
  }
};

}  // namespace

TEST_CASE_TEMPLATE("what kernels wrote is there when a block has come back", Host, mapped_host, plain_host) {
  swap_on_gpu<Host> gpu;
  checker kernels;
  cuda_stream const work, other;
  constexpr bytes size = 37 * piece + 12'344;
  address const b = must(gpu.pool.allocate(size, work.name()));
  for (word round = 1; round <= 4; ++round) {
    kernels.delay(millisecond, work);
    kernels.write(b, size, round, work);
    must(gpu.pool.swap_out(b, work.name()));
    must(gpu.pool.settle());
    REQUIRE(must(gpu.pool.residency_of(b)) == residency::absent);
    address const taken = must(gpu.pool.allocate(20 * piece, other.name()));  // other memory comes under it
    kernels.write(taken, 20 * piece, 99, other);
    must(gpu.pool.swap_in(b, work.name()));
    kernels.check(b, size, round, work);
    kernels.check(taken, 20 * piece, 99, other);
    must(gpu.pool.deallocate(taken));
    CHECK(kernels.wrong_words() == 0);
  }
  must(gpu.pool.settle());
  must(gpu.pool.deallocate(b));
  CHECK(gpu.host.stats().live.now == 0);
  CHECK(gpu.device.validate() == nullptr);
}

TEST_CASE("blocks are put together of scattered chunks, and come back as others") {
  swap_on_gpu<mapped_host> gpu(128 * piece);
  checker kernels;
  cuda_stream const work;
  std::vector<address> all;
  for (int i = 0; i < 128; ++i) all.push_back(must(gpu.device.allocate(piece, work.name())));
  std::vector<address> left;
  for (std::size_t i = 0; i < all.size(); ++i) {
    kernels.write(all[i], piece, 500 + i, work);
    if (i % 2 == 0) must(gpu.device.deallocate(all[i]));
    else left.push_back(all[i]);
  }
  constexpr bytes size = 30 * piece;
  std::vector<address> swapped;
  for (word k = 0; k < 2; ++k) {
    swapped.push_back(must(gpu.pool.allocate(size, work.name())));
    kernels.write(swapped[k], size, k, work);
  }
  for (word round = 0; round < 6; ++round) {
    word const k = round % 2;
    must(gpu.pool.swap_out(swapped[k], work.name()));
    must(gpu.pool.settle());
    address const hole = must(gpu.device.allocate((1 + round % 4) * piece, work.name()));
    kernels.write(hole, (1 + round % 4) * piece, 77, work);
    must(gpu.pool.swap_in(swapped[k], work.name()));
    for (word i = 0; i < 2; ++i) kernels.check(swapped[i], size, i, work);
    kernels.check(hole, (1 + round % 4) * piece, 77, work);
    must(gpu.device.deallocate(hole));
  }
  for (std::size_t i = 0; i < left.size(); ++i) kernels.check(left[i], piece, 500 + 2 * i + 1, work);
  CHECK(kernels.wrong_words() == 0);
  CHECK(gpu.device.validate() == nullptr);
}

TEST_CASE("a block leaves behind all that uses it, and nobody waits on the host for that") {
  swap_on_gpu<mapped_host> gpu;
  checker kernels;
  cuda_stream const owner, user;
  constexpr bytes size = 16 * piece;
  address const b = must(gpu.pool.allocate(size, owner.name()));
  must(swap::pin_ahead(gpu.host, size));
  kernels.write(b, size, 1, owner);
  user.follow(owner);
  must(gpu.pool.record_stream(b, user.name()));
  kernels.delay(long_time, user);
  kernels.write(b, size, 2, user);
  must(gpu.pool.swap_out(b, owner.name()));
  CHECK(user.busy());
  CHECK(must(gpu.pool.progress()));
  must(gpu.pool.settle());
  must(gpu.pool.swap_in(b, owner.name()));
  kernels.check(b, size, 2, owner);
  CHECK(kernels.wrong_words() == 0);
}

TEST_CASE("a paused group's memory is the device's again, until it resumes") {
  swap_on_gpu<mapped_host> gpu(2_GiB, 2_GiB);
  checker kernels;
  cuda_stream const work;
  std::vector<address> blocks;
  constexpr bytes size = 100 * piece;
  for (word i = 0; i < 5; ++i) {
    blocks.push_back(must(gpu.pool.allocate(size, work.name(), tag{1})));
    kernels.write(blocks.back(), size, i, work);
  }
  bytes const before = gpu.free_on_device();
  auto const paused = gpu.pool.pause(tag{1});
  CHECK(paused.moved == 5 * size);
  CHECK(paused.stayed == 0);
  bytes const meanwhile = gpu.free_on_device();
  CHECK(meanwhile + 64_MiB >= before + 5 * size);
  auto const resumed = gpu.pool.resume(tag{1});
  CHECK(resumed.moved == 5 * size);
  for (word i = 0; i < 5; ++i) kernels.check(blocks[i], size, i, work);
  CHECK(kernels.wrong_words() == 0);
  CHECK(gpu.free_on_device() < meanwhile);
}

TEST_CASE("blocks move while another stream is captured in the strictest mode") {
  swap_on_gpu<mapped_host> gpu;
  checker kernels;
  cuda_stream const work, captured;
  constexpr bytes size = 8 * piece;
  address const b = must(gpu.pool.allocate(size, work.name()));
  kernels.write(b, size, 3, work);
  must(cudaStreamSynchronize(work.get()));
  cudaGraph_t graph = nullptr;
  must(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal));
  result<void> const out = gpu.pool.swap_out(b, work.name());
  result<void> const settled = gpu.pool.settle();
  result<residency> where = gpu.pool.residency_of(b);
  result<void> const in = gpu.pool.swap_in(b, work.name());
  must(cudaStreamEndCapture(captured.get(), &graph));
  must(cudaGraphDestroy(graph));
  for (result<void> const* const done : {&out, &settled, &in}) {
    REQUIRE_MESSAGE(done->has_value(), describe(done->error()));
  }
  CHECK(must(std::move(where)) == residency::absent);
  kernels.check(b, size, 3, work);
  CHECK(kernels.wrong_words() == 0);
}

TEST_CASE("kernels work on an absent block in place, and what they write comes back with it") {
  swap_on_gpu<mapped_host> gpu(64 * piece, 1_GiB, {.in_place = true});
  checker kernels;
  cuda_stream const work, other;
  constexpr bytes size = 17 * piece + 4096;
  address const b = must(gpu.pool.allocate(size, work.name()));
  must(gpu.pool.record_stream(b, other.name()));
  for (word round = 0; round < 4; ++round) {
    kernels.write(b, size, 10 * round, work);
    must(gpu.pool.swap_out(b, work.name()));
    must(gpu.pool.settle());
    REQUIRE(must(gpu.pool.residency_of(b)) == residency::absent);
    REQUIRE(must(gpu.pool.served_in_place(b)));
    address const taken = must(gpu.pool.allocate(40 * piece, work.name()));  // more than the device has beside it
    kernels.write(taken, 40 * piece, 99, work);
    other.follow(work);
    kernels.check(b, size, 10 * round, other);
    kernels.write(b, size, 10 * round + 1, other);
    kernels.delay(millisecond, other);
    kernels.check(b, size, 10 * round + 1, other);
    kernels.check(taken, 40 * piece, 99, work);
    must(gpu.pool.deallocate(taken));
    must(gpu.pool.swap_in(b, work.name()));  // waits for what runs on both streams
    CHECK_FALSE(other.busy());
    kernels.check(b, size, 10 * round + 1, work);
    CHECK(kernels.wrong_words() == 0);
  }
  must(gpu.pool.swap_out(b, work.name()));
  must(gpu.pool.settle());
  kernels.check(b, size, 31, work);
  must(gpu.pool.deallocate(b));  // while kernels are on it
  CHECK(kernels.wrong_words() == 0);
  CHECK(gpu.host.stats().live.now == 0);
}

TEST_CASE("blocks come back from a file below pinned memory") {
  swap_on_gpu<mapped_host> gpu(512 * piece, 80 * piece, {.stage_size = 4 * piece},
                               must(swap::swap_file::open({.directory = "/tmp", .capacity = 1_GiB})));
  checker kernels;
  cuda_stream const work;
  constexpr bytes size = 32 * piece + 12'288;
  std::vector<address> blocks;
  for (word i = 0; i < 5; ++i) {
    blocks.push_back(must(gpu.pool.allocate(size, work.name(), tag{1})));
    kernels.write(blocks.back(), size, i, work);
  }
  CHECK(gpu.pool.pause(tag{1}).moved == 5 * size);
  CHECK(gpu.pool.swaps().on_file >= 3 * size);
  for (word const i : {2, 0, 4, 1, 3}) {
    must(gpu.pool.swap_in(blocks[i], work.name()));
    kernels.check(blocks[i], size, i, work);
  }
  CHECK(kernels.wrong_words() == 0);
  must(gpu.pool.settle());
  CHECK(gpu.pool.swaps().on_file == 0);
}

TEST_CASE("the channel is measured") {
  swap_on_gpu<mapped_host> gpu;
  auto streams = must(cuda_events::open());
  auto copies = must(swap::cuda_copier::open());
  swap::channel const c = must(swap::calibrate(gpu.device, gpu.host, streams, copies));
  for (swap::lane const& l : {c.out, c.in}) {
    MESSAGE("latency ", l.latency.count(), " ns, ", static_cast<double>(l.bytes_per_second) * 1e-9, " GB/s");
    CHECK(l.bytes_per_second > 1'000'000'000);
    CHECK(l.latency < std::chrono::milliseconds(1));
  }
  CHECK(gpu.device.stats().live.now == 0);
  CHECK(gpu.host.stats().live.now == 0);
}

TEST_CASE("large copies are timed where they run, each once, and small ones are not") {
  swap_on_gpu<mapped_host> gpu;
  cuda_stream const work;
  constexpr bytes large = 16 * piece, small = 2 * piece;
  static_assert(small < swap::cuda_lane_timer::smallest && large >= swap::cuda_lane_timer::smallest);
  for (bytes const n : {small, large}) {
    address const block = must(gpu.pool.allocate(n, work.name()));
    for (int i = 0; i < 20; ++i) {
      must(gpu.pool.swap_out(block, work.name()));
      must(gpu.pool.settle());  // or it would be called back
      must(gpu.pool.swap_in(block, work.name()));
      must(gpu.pool.settle());
    }
    must(gpu.pool.deallocate(block));
    swap::carried const all = gpu.pool.take_carried();
    for (swap::lane_load const& way : {all.out, all.in}) {
      CHECK((way.transfers > 0) == (n == large));
      CHECK(way.transfers <= 20);
      CHECK(way.size == way.transfers * n);
      if (n == small) continue;
      double const rate = static_cast<double>(way.size) / static_cast<double>(way.took.count());
      MESSAGE(way.transfers, " copies at ", rate, " GB/s");
      CHECK(rate > 1);
      CHECK(rate < 1000);
    }
    swap::carried const again = gpu.pool.take_carried();
    CHECK(again.out.transfers + again.in.transfers == 0);
  }
}

namespace {

/// What threads walk over: a GPU whose driver, streams and copies fail at random.
class gpu_rig {
 public:
  using device_type = lake_pool<flaky_backend<cuda_vmm>, cuda_events>;
  using host_type = lake_pool<flaky_backend<cuda_vmm>>;
  using pool_type =
      swap::swapping_pool<device_type, host_type, flaky_streams<cuda_events>, flaky_copier<swap::cuda_copier>>;

  static constexpr std::size_t threads = 4;

  explicit gpu_rig(unsigned sides)
      : sides_(sides),
        on_device(flaky_backend(must(cuda_vmm::open()), die(sides_, 1)), must(cuda_events::open()), {.limit = 512_MiB},
                  {.growth = adaptive_chunks(adaptive_options::fixed(piece))}),
        on_host(flaky_backend(host_memory(), die(sides_, 2)), {.limit = 384_MiB}),
        pool(std::make_unique<pool_type>(on_device, on_host, flaky_streams(must(cuda_events::open()), die(sides_, 3)),
                                         flaky_copier(must(swap::cuda_copier::open()), die(sides_, 4)))),
        streams_(threads),
        kernels_(threads) {}

  [[nodiscard]] stream name(std::size_t i) const { return streams_[i].name(); }

  void fill(address at, bytes n, unsigned value, stream on) {
    std::size_t const i = index(on);
    kernels_[i].write(at, n, seed(value, i), streams_[i]);
  }
  /// By a kernel; now and then by the host too, from what a copy brings back.
  void expect(address at, bytes n, unsigned value, stream on) {
    std::size_t const i = index(on);
    kernels_[i].check(at, n, seed(value, i), streams_[i]);
    if (value % 4 != 0) return;
    word const words = n / sizeof(word);
    std::vector<word> back(words);
    must(cudaMemcpyAsync(back.data(), to_pointer(at), words * sizeof(word), cudaMemcpyDeviceToHost, streams_[i].get()));
    must(cudaStreamSynchronize(streams_[i].get()));
    for (word k = 0; k < words; ++k) wrong += back[k] != pattern(seed(value, i), k) ? 1u : 0u;
  }
  void upset(std::mt19937_64&) {}
  void calm() { sides_ = 0; }
  [[nodiscard]] word wrong_words() {
    word sum = wrong;
    for (checker& c : kernels_) sum += c.wrong_words();
    return sum;
  }

 private:
  [[nodiscard]] std::size_t index(stream on) const {
    std::size_t i = 0;
    while (streams_[i].name() != on) ++i;
    return i;
  }
  [[nodiscard]] static word seed(unsigned value, std::size_t i) { return word{value} * threads + i; }

  std::atomic<unsigned> sides_;

 public:
  device_type on_device;
  host_type on_host;
  std::unique_ptr<pool_type> pool;
  std::atomic<word> wrong{0};

 private:
  std::vector<cuda_stream> streams_;
  std::vector<checker> kernels_;
};

}  // namespace

TEST_CASE("ten thousand random moves, frees, requests and failures by four threads: no byte is wrong, nothing leaks") {
  for (unsigned const sides : {0u, 50u}) {
    CAPTURE(sides);
    std::uint64_t const seed = first_seed();
    CAPTURE(seed);
    gpu_rig rig(sides);
    {
      swap::swap_worker worker(*rig.pool);
      std::vector<swap_walk<gpu_rig>> walks;
      walks.reserve(4);
      for (unsigned id = 0; id < gpu_rig::threads; ++id) {
        walks.emplace_back(rig, swap_walk_options{.seed = seed * 4 + id,
                                                  .smallest = 1_MiB,
                                                  .largest = 24_MiB,
                                                  .on = rig.name(id),
                                                  .groups_from = id * 3});
      }
      std::vector<std::thread> threads;
      threads.reserve(walks.size());
      for (auto& walk : walks) {
        threads.emplace_back([&walk, &worker] {
          for (int i = 0; i < 2500; ++i) {
            walk.step();
            if (i % 8 == 0) worker.wake();
          }
        });
      }
      for (std::thread& t : threads) t.join();
      rig.calm();
      for (auto& walk : walks) walk.finish();
    }
    must(cudaDeviceSynchronize());
    must(rig.pool->settle());
    CHECK(rig.wrong_words() == 0);
    swap::swap_stats const s = rig.pool->swaps();
    MESSAGE("left ", s.departures, ", came back ", s.arrivals, ", called back ", s.called_back, ", refused ",
            s.refusals, ", failed ", s.failures);
    CHECK(s.departures > 500);
    CHECK(s.arrivals > 200);
    CHECK(s.swappable == 0);
    CHECK(s.absent == 0);
    CHECK(s.on_host == 0);
    if (sides > 0) CHECK(s.failures > 20);
    CHECK(rig.on_device.stats().live.now == 0);
    CHECK(rig.on_host.stats().live.now == 0);
    CHECK(rig.on_device.validate() == nullptr);
    CHECK(rig.on_host.validate() == nullptr);
    must(rig.on_device.trim());
    CHECK(rig.on_device.stats().reserved.now == 0);
  }
}

namespace {

/// A block of the device's, mapped by nobody's pool, and pinned memory of its size.
struct copied_block {
  static constexpr bytes size = 40_MiB;

  cuda_vmm device = must(cuda_vmm::open());
  cuda_pinned host = must(cuda_pinned::open());
  handle memory = must(device.create(size));
  address there = must(device.reserve(size, 0));
  address here = must(host.allocate(size));

  copied_block() {
    must(device.map(there, size, memory));
    must(device.set_access(there, size, access::read_write));
  }
  copied_block(copied_block const&) = delete;
  copied_block& operator=(copied_block const&) = delete;
  ~copied_block() {
    static_cast<void>(device.unmap(there, size));
    static_cast<void>(device.unreserve(there, size));
    static_cast<void>(device.release(memory));
    static_cast<void>(host.deallocate(here, size));
  }

  void fill(int byte) const {
    must(cudaMemset(to_pointer(there), byte, size));
    std::memset(to_pointer(here), 0, size);
    must(cudaDeviceSynchronize());
  }
  [[nodiscard]] bool copied(int byte) const {
    auto const* const at = static_cast<unsigned char const*>(to_pointer(here));
    return std::all_of(at, at + size, [byte](unsigned char c) { return c == byte; });
  }
};

}  // namespace

TEST_CASE("copies out wait for a gate that is closed, and not for ever") {
  copied_block const block;
  auto copies = must(swap::cuda_copier::open());
  auto streams = must(cuda_events::open());
  block.fill(7);
  {
    auto const closed = cuda_copy_gate(0)->close();
    must(copies.copy_out(block.here, block.there, block.size));
    auto whole = must(streams.record(copies.stream_out()));
    std::this_thread::sleep_for(std::chrono::milliseconds(8));  // ten times what the copy takes
    CHECK_FALSE(must(streams.reached(whole)));
    must(streams.synchronize(whole));  // the copier's keeper opens it
    streams.release(whole);
  }
  CHECK(block.copied(7));
  block.fill(8);
  must(copies.copy_out(block.here, block.there, block.size));
  must(streams.synchronize_device());
  CHECK(block.copied(8));
}

TEST_CASE("what others copy, as a number that is read back, comes in between copies that are queued") {
  copied_block const block, other;
  auto copies = must(swap::cuda_copier::open());
  auto streams = must(cuda_events::open());
  cuda_stream const work;
  block.fill(5);
  other.fill(6);
  constexpr int queued = 64;  // of some 0.7 ms each
  bool out = true;
  bytes n = sizeof(word);
  SUBCASE("out") {}
  SUBCASE("in") {
    out = false;
    n = 4_MiB;
  }
  for (int i = 0; i < queued; ++i) {
    if (out) must(copies.copy_out(block.here, block.there, block.size));
    else must(copies.copy_in(block.there, block.here, block.size));
  }
  auto all = must(streams.record(out ? copies.stream_out() : copies.stream_in()));
  void* const there = to_pointer(other.there);
  void* const here = to_pointer(other.here);
  must(cudaMemcpyAsync(out ? here : there, out ? there : here, n, cudaMemcpyDefault, work.get()));
  must(cudaStreamSynchronize(work.get()));
  CHECK_FALSE(must(streams.reached(all)));
  must(streams.synchronize(all));
  streams.release(all);
  CHECK(block.copied(out ? 5 : 0));
  CHECK(*static_cast<unsigned char const*>(here) == (out ? 6 : 0));
}

TEST_CASE("who queues hundreds of copies does not wait for the device meanwhile") {
  copied_block const block;
  auto copies = must(swap::cuda_copier::open());
  auto streams = must(cuda_events::open());
  block.fill(4);
  constexpr int queued = 400;
  using clock = std::chrono::steady_clock;
  for (bool const out : {true, false}) {
    auto const began = clock::now();
    for (int i = 0; i < queued; ++i) {
      if (out) must(copies.copy_out(block.here, block.there, block.size));
      else must(copies.copy_in(block.there, block.here, block.size));
    }
    auto const all_queued = clock::now();
    must(streams.synchronize_device());
    CHECK(all_queued - began < (clock::now() - began) / 3);
  }
  CHECK(block.copied(4));
}

TEST_CASE("memory is mapped beside copies out, and beside calls that wait for them") {
  copied_block const block;
  cuda_vmm device = must(cuda_vmm::open());
  constexpr bytes size = 4 * piece;
  handle const memory = must(device.create(size));
  address const at = must(device.reserve(size, 0));
  block.fill(9);
  std::atomic<bool> over{false};
  std::atomic<int> copied{0};
  std::thread copying([&] {
    auto copies = must(swap::cuda_copier::open());
    auto streams = must(cuda_events::open());
    while (!over) {
      for (int i = 0; i < 8; ++i) must(copies.copy_out(block.here, block.there, block.size));
      auto whole = must(streams.record(copies.stream_out()));
      must(streams.synchronize(whole));
      streams.release(whole);
      ++copied;
    }
  });
  std::thread waiting([&] {
    while (!over) {
      void* p = nullptr;
      must(cudaMalloc(&p, 4_MiB));
      must(cudaFree(p));
    }
  });
  while (copied == 0) std::this_thread::yield();
  auto const began = std::chrono::steady_clock::now();
  for (int i = 0; i < 300; ++i) {
    must(device.map(at, size, memory));
    must(device.set_access(at, size, access::read_write));
    must(device.unmap(at, size));
  }
  std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - began;
  over = true;
  copying.join();
  waiting.join();
  MESSAGE("300 mappings took ", took.count(), " ms");
  CHECK(block.copied(9));
  CHECK(cuda_copy_gate(0)->word() == 0);
  must(device.unreserve(at, size));
  must(device.release(memory));
}
