/// The least that can stand behind `CUDAPluggableAllocator`: a list of free blocks for each of a few sizes, without a
/// lock, a check or a figure. What is left of a call's time is PyTorch's own. For `bench/pytorch_calls.py`.
///
///     c++ -O2 -fPIC -shared bench/support/free_list.cpp -o free_list.so -ldl

#include <cstddef>
#include <cstdint>

#include <dlfcn.h>

namespace {

struct block {
  block* next;
  std::uint64_t at;
};
constexpr std::size_t sizes = 64;
block* spare[sizes];
block* handed_out;  ///< nodes without a block

std::size_t slot(std::size_t n) noexcept {
  return n == 0 ? 0 : sizes - 1 - static_cast<std::size_t>(__builtin_clzll(n));
}

std::uint64_t from_driver(std::size_t n) noexcept {
  using allocate = int (*)(std::uint64_t*, std::size_t);
  static auto const call = reinterpret_cast<allocate>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"));
  std::uint64_t at = 0;
  return call != nullptr && call(&at, n) == 0 ? at : 0;
}

}  // namespace

extern "C" {

void* free_list_malloc(std::ptrdiff_t size, int, void*) {
  std::size_t const n = static_cast<std::size_t>(size);
  block*& first = spare[slot(n)];
  if (first == nullptr) return reinterpret_cast<void*>(from_driver(std::size_t{2} << slot(n)));
  block* const b = first;
  first = b->next;
  b->next = handed_out;
  handed_out = b;
  return reinterpret_cast<void*>(b->at);
}

void free_list_free(void* p, std::size_t size, int, void*) {
  block* b = handed_out;
  if (b == nullptr) b = new block{};
  else handed_out = b->next;
  b->at = reinterpret_cast<std::uint64_t>(p);
  b->next = spare[slot(size)];
  spare[slot(size)] = b;
}

}  // extern "C"
