#pragma once
/// What the tests on a GPU share: kernels that write patterns and count what differs, streams, and the entry point,
/// which skips aloud where there is no GPU. Each .cu file is a program of its own and includes this once.
///
/// Nothing here waits for the device unless its name says so, so that the pool under test is the only order there is.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "gmlake/backend/cuda_vmm.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/stream/cuda_events.hpp"
#include "tests/backend/must.hpp"

namespace gmlake::test {

/// What memory is written and compared in.
using word = unsigned long long;

/// Word i of the pattern called `seed`: no other seed has it there. (The mixing steps of splitmix64.)
__host__ __device__ constexpr word pattern(word seed, word i) {
  word z = (seed << 40) ^ i;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

__device__ inline word nanoseconds() {
  word t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__global__ void write_pattern(word* to, word words, word seed) {
  word const stride = word{gridDim.x} * blockDim.x;
  for (word i = word{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride) to[i] = pattern(seed, i);
}

/// Adds to `wrong` the words that are not the pattern's from its word `first` on, looking again until `time` is over.
__global__ void count_wrong(word const volatile* from, word words, word seed, word first, word time, word* wrong) {
  word const stride = word{gridDim.x} * blockDim.x;
  word const begin = nanoseconds();
  do {
    word here = 0;
    for (word i = word{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride) {
      if (from[i] != pattern(seed, first + i)) ++here;
    }
    if (here > 0) atomicAdd(wrong, here);
  } while (nanoseconds() - begin < time);
}

__global__ void wait_for(word time) {
  word const begin = nanoseconds();
  while (nanoseconds() - begin < time) {
  }
}

inline constexpr word no_time = 0;
inline constexpr word millisecond = 1'000'000;

inline void must(cudaError_t e) { REQUIRE_MESSAGE(e == cudaSuccess, cudaGetErrorString(e)); }

/// A stream that the default stream does not order.
class cuda_stream {
 public:
  cuda_stream() { must(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking)); }
  cuda_stream(cuda_stream&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  cuda_stream& operator=(cuda_stream&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~cuda_stream() {
    if (handle_ != nullptr) static_cast<void>(cudaStreamDestroy(handle_));
  }

  [[nodiscard]] cudaStream_t get() const noexcept { return handle_; }
  /// As a pool knows it.
  [[nodiscard]] stream name() const noexcept { return static_cast<stream>(reinterpret_cast<std::uintptr_t>(handle_)); }
  [[nodiscard]] bool busy() const noexcept { return cudaStreamQuery(handle_) == cudaErrorNotReady; }

  /// Work queued here from now on comes after what is queued there.
  void follow(cuda_stream const& other) const {
    cudaEvent_t e = nullptr;
    must(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    must(cudaEventRecord(e, other.handle_));
    must(cudaStreamWaitEvent(handle_, e));
    must(cudaEventDestroy(e));
  }

 private:
  cudaStream_t handle_ = nullptr;
};

/// Queues kernels that write and check, and keeps the count of what was wrong.
class checker {
 public:
  checker() {
    must(cudaMalloc(&wrong_, sizeof(word)));
    // A kernel's first launch loads it, which may wait for those that run.
    cuda_stream const once;
    write(static_cast<address>(reinterpret_cast<std::uintptr_t>(wrong_)), sizeof(word), 0, once);
    check(static_cast<address>(reinterpret_cast<std::uintptr_t>(wrong_)), sizeof(word), 0, once);
    delay(no_time, once);
    (void)wrong_words();
  }
  checker(checker const&) = delete;
  checker& operator=(checker const&) = delete;
  ~checker() { static_cast<void>(cudaFree(wrong_)); }

  /// Fills n bytes, whole words of them.
  void write(address at, bytes n, word seed, cuda_stream const& on) {
    word const words = n / sizeof(word);
    if (words == 0) return;
    write_pattern<<<blocks(words), threads, 0, on.get()>>>(reinterpret_cast<word*>(at), words, seed);
    must(cudaGetLastError());
  }
  /// Counts in n bytes what differs from the pattern's bytes from `offset` on, for so long at least.
  void check(address at, bytes n, word seed, cuda_stream const& on, word time = no_time, bytes offset = 0) {
    word const words = n / sizeof(word);
    if (words == 0) return;
    count_wrong<<<blocks(words), threads, 0, on.get()>>>(reinterpret_cast<word const*>(at), words, seed,
                                                         offset / sizeof(word), time, wrong_);
    must(cudaGetLastError());
  }
  void delay(word time, cuda_stream const& on) {
    wait_for<<<1, 1, 0, on.get()>>>(time);
    must(cudaGetLastError());
  }

  /// Waits for the device, and returns how many words were wrong since the last time.
  [[nodiscard]] word wrong_words() {
    must(cudaDeviceSynchronize());
    word n = 0;
    must(cudaMemcpy(&n, wrong_, sizeof n, cudaMemcpyDeviceToHost));
    must(cudaMemset(wrong_, 0, sizeof(word)));
    must(cudaDeviceSynchronize());
    return n;
  }

 private:
  static constexpr unsigned threads = 256;
  static unsigned blocks(word words) {
    constexpr word most = 264;  // two for each of an H200's processors, so that kernels run side by side
    return static_cast<unsigned>(std::min((words + threads - 1) / threads, most));
  }

  word* wrong_ = nullptr;
};

/// Any pool over the device's memory, ordered by its events.
template <class Pool>
struct with_gpu {
  Pool pool;

  explicit with_gpu(pool_options const& o = {}, typename Pool::policies p = {})
      : pool(must(cuda_vmm::open()), must(cuda_events::open()), o, std::move(p)) {}
};

}  // namespace gmlake::test

int main(int argc, char** argv) {
  if (auto const device = gmlake::cuda_vmm::open(); !device) {
    std::printf("skipped: these tests take a GPU; %s\n", gmlake::test::describe(device.error()).c_str());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
