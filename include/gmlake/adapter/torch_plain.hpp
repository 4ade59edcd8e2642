#pragma once
/// What PyTorch's `CUDAPluggableAllocator` calls: functions of its signatures, with no header of PyTorch's. A shared
/// library exports them (`examples/pytorch/plain.cpp`); the same two serve `torch.cuda.MemPool(allocator)`.
///
/// Errors are thrown, as PyTorch expects: it turns them into a RuntimeError. That of a request out of memory begins
/// with "CUDA out of memory.", by which frameworks know it.

#include <cstddef>
#include <functional>
#include <utility>

#include "gmlake/adapter/torch_process.hpp"

struct CUstream_st;

namespace gmlake::torch_plain {

using cuda_stream = CUstream_st*;
/// `c10::cuda::MempoolId_t`, and the stream filter of `beginAllocateToPool`.
using mempool_id = std::pair<unsigned long long, unsigned long long>;
using stream_filter = std::function<bool(cuda_stream)>;

[[nodiscard]] inline stream to_stream(cuda_stream s) noexcept {
  return static_cast<stream>(reinterpret_cast<std::uintptr_t>(s));
}
[[nodiscard]] inline cuda_stream to_cuda(stream s) noexcept { return reinterpret_cast<cuda_stream>(to_integer(s)); }

inline void* malloc(std::ptrdiff_t size, int device, cuda_stream on) {
  if (size <= 0) return nullptr;
  torch_process& process = torch_process::get();
  if (process.forked()) throw torch_failure("gmlake: CUDA can't be used in a forked process");
  torch_device& d = process.device(device);
  auto const n = static_cast<bytes>(size);
  result<address> const block = d.allocate(n, to_stream(on), torch_process::where(), torch_process::group());
  if (block) [[likely]]
    return to_pointer(*block);
  error const& e = block.error();
  throw torch_failure(e.code == errc::out_of_memory ? torch_process::out_of_memory_text(d, n, e) : describe(e));
}

inline void free(void* p, std::size_t, int, cuda_stream) {
  if (p == nullptr) return;
  if (result<void> const done = torch_process::get().deallocate(p); !done) throw torch_failure(describe(done.error()));
}

/// Devices are opened when they are first used.
inline void init(int) {}

/// `emptyCache`.
inline void reset() {
  torch_process::get().each_device([](torch_device& d) { d.trim(); });
}

inline void memory_fraction(double fraction, int device) {
  torch_device& d = torch_process::get().device(device);
  if (!(fraction > 0 && fraction <= 1)) throw torch_failure("gmlake: the memory fraction is to be above 0, at most 1");
  d.limit().set(static_cast<bytes>(fraction * static_cast<double>(d.total())));
}

/// The beginning and size of the block at p.
inline void* base_alloc(void* p, std::size_t* size) {
  torch_registry::owner const o = torch_process::get().owner(p);
  bytes found = 0;
  if (o.pool != nullptr) o.pool->look_at(to_address(p), [&](block const& b, stream) { found = b.size; });
  if (found == 0) throw torch_failure("gmlake: no block begins at this pointer");
  if (size != nullptr) *size = found;
  return p;
}

/// No effect on memory that is not gmlake's: PyTorch tells of any.
inline void record_stream(void* p, cuda_stream on) {
  if (p == nullptr) return;
  result<void> const done = torch_process::get().record_stream(p, to_stream(on));
  if (!done && done.error().code != errc::unknown_pointer) {
    throw torch_failure(describe(done.error()));
  }
}

inline void begin_allocate_to_pool(int device, mempool_id id, stream_filter accepts) {
  bool const begun = torch_process::get().device(device).begin(
      {id.first, id.second}, [accepts = std::move(accepts)](stream s) { return accepts(to_cuda(s)); });
  if (!begun) throw torch_failure("gmlake: this pool is being allocated to already");
}

inline void end_allocate_to_pool(int device, mempool_id id) {
  if (!torch_process::get().device(device).end({id.first, id.second})) {
    throw torch_failure("gmlake: this pool is not being allocated to");
  }
}

inline void release_pool(int device, mempool_id id) {
  if (!torch_process::get().device(device).release({id.first, id.second})) {
    throw torch_failure("gmlake: this pool is not in use");
  }
}

}  // namespace gmlake::torch_plain
