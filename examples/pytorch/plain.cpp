/// The functions that PyTorch's CUDAPluggableAllocator is given, under names that it can look up.

#include "export.hpp"
#include "gmlake/adapter/torch_plain.hpp"

namespace plain = gmlake::torch_plain;

extern "C" {

GMLAKE_EXPORT void* gmlake_torch_malloc(std::ptrdiff_t size, int device, plain::cuda_stream on) {
  return plain::malloc(size, device, on);
}
GMLAKE_EXPORT void gmlake_torch_free(void* p, std::size_t size, int device, plain::cuda_stream on) {
  plain::free(p, size, device, on);
}
GMLAKE_EXPORT void gmlake_torch_init(int devices) { plain::init(devices); }
GMLAKE_EXPORT void gmlake_torch_reset() { plain::reset(); }
GMLAKE_EXPORT void gmlake_torch_memory_fraction(double fraction, int device) {
  plain::memory_fraction(fraction, device);
}
GMLAKE_EXPORT void* gmlake_torch_base_alloc(void* p, std::size_t* size) { return plain::base_alloc(p, size); }
GMLAKE_EXPORT void gmlake_torch_record_stream(void* p, plain::cuda_stream on) { plain::record_stream(p, on); }
// Their parameters are C++ types; only the names are C's.
GMLAKE_EXPORT void gmlake_torch_begin_allocate_to_pool(int device, plain::mempool_id id, plain::stream_filter accepts) {
  plain::begin_allocate_to_pool(device, id, std::move(accepts));
}
GMLAKE_EXPORT void gmlake_torch_end_allocate_to_pool(int device, plain::mempool_id id) {
  plain::end_allocate_to_pool(device, id);
}
GMLAKE_EXPORT void gmlake_torch_release_pool(int device, plain::mempool_id id) { plain::release_pool(device, id); }

}  // extern "C"
