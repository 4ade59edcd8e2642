/// Stands before whichever CUDA allocator PyTorch has, native or not, passes everything on, and adds up the time that
/// its blocks' allocation and freeing take. For `bench/pytorch_time.py`, which builds it against the PyTorch that is
/// there.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>

namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using device_index = c10::DeviceIndex;
using mempool = c10::MempoolId_t;

std::uint64_t now() noexcept {
  auto const since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

struct timed_calls {
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> ns{0};

  void add(std::uint64_t began) noexcept {
    ns.fetch_add(now() - began, std::memory_order_relaxed);
    count.fetch_add(1, std::memory_order_relaxed);
  }
};
timed_calls allocations;
timed_calls frees;
CUDAAllocator* of = nullptr;

void free_timed(void* p) {
  std::uint64_t const began = now();
  of->raw_delete(p);
  frees.add(began);
}

class timed_allocator final : public CUDAAllocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    device_index device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    void* const p = raw_alloc(n);
    return {p, p, &free_timed, c10::Device(c10::DeviceType::CUDA, device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_timed; }
  void* raw_alloc(std::size_t n) override {
    std::uint64_t const began = now();
    void* const p = of->raw_alloc(n);
    allocations.add(began);
    return p;
  }
  void* raw_alloc_with_stream(std::size_t n, cudaStream_t on) override { return of->raw_alloc_with_stream(n, on); }
  void raw_delete(void* p) override { free_timed(p); }
  void copy_data(void* to, void const* from, std::size_t n) const final { of->copy_data(to, from, n); }
  void recordStream(c10::DataPtr const& p, c10::cuda::CUDAStream on) override {
    // It looks at the deleter.
    c10::DataPtr as_its_own(p.get(), p.get(), of->raw_deleter(), p.device());
    of->recordStream(as_its_own, on);
    (void)as_its_own.release_context();
  }
  void* getBaseAllocation(void* p, std::size_t* size) override { return of->getBaseAllocation(p, size); }
  cudaError_t memcpyAsync(void* to, int to_device, void const* from, int from_device, std::size_t n, cudaStream_t on,
                          bool p2p_enabled) override {
    return of->memcpyAsync(to, to_device, from, from_device, n, on, p2p_enabled);
  }

  void init(int devices) override { of->init(devices); }
  bool initialized() override { return of->initialized(); }
  std::string name() override { return of->name(); }
  void enable(bool value) override { of->enable(value); }
  bool isEnabled() const override { return of->isEnabled(); }
  void emptyCache(mempool pool = {0, 0}) override { of->emptyCache(pool); }
  void cacheInfo(device_index device, std::size_t* largest) override { of->cacheInfo(device, largest); }
  double getMemoryFraction(device_index device) override { return of->getMemoryFraction(device); }
  void setMemoryFraction(double fraction, device_index device) override { of->setMemoryFraction(fraction, device); }
  std::vector<c10::cuda::CUDACachingAllocator::StreamSegmentSize> getExpandableSegmentSizes(
      device_index device) override {
    return of->getExpandableSegmentSizes(device);
  }
  void enablePeerAccess(device_index device, device_index to) override { of->enablePeerAccess(device, to); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(device_index device) override {
    return of->getDeviceStats(device);
  }
  void resetAccumulatedStats(device_index device) override { of->resetAccumulatedStats(device); }
  void resetPeakStats(device_index device) override { of->resetPeakStats(device); }
  c10::cuda::CUDACachingAllocator::SnapshotInfo snapshot(mempool pool = {0, 0}, bool traces = true) override {
    return of->snapshot(pool, traces);
  }
  bool isHistoryEnabled() override { return of->isHistoryEnabled(); }
  void recordHistory(bool on, c10::cuda::CUDACachingAllocator::CreateContextFn context, std::size_t entries,
                     c10::cuda::CUDACachingAllocator::RecordContext when, bool clear,
                     std::vector<std::string> const& skipped) override {
    of->recordHistory(on, context, entries, when, clear, skipped);
  }
  void attachOutOfMemoryObserver(c10::cuda::CUDACachingAllocator::OutOfMemoryObserver observer) override {
    of->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(c10::cuda::CUDACachingAllocator::AllocatorTraceTracker tracker) override {
    of->attachAllocatorTraceTracker(std::move(tracker));
  }
  void beginAllocateToPool(device_index device, mempool id, std::function<bool(cudaStream_t)> filter) override {
    of->beginAllocateToPool(device, id, std::move(filter));
  }
  void endAllocateToPool(device_index device, mempool id) override { of->endAllocateToPool(device, id); }
  void releasePool(device_index device, mempool id) override { of->releasePool(device, id); }
  std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> getCheckpointState(device_index device,
                                                                                      mempool id) override {
    return of->getCheckpointState(device, id);
  }
  c10::cuda::CUDACachingAllocator::CheckpointDelta setCheckpointPoolState(
      device_index device, std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state) override {
    return of->setCheckpointPoolState(device, std::move(state));
  }
  c10::cuda::CUDACachingAllocator::ShareableHandle shareIpcHandle(void* p) override { return of->shareIpcHandle(p); }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override { return of->getIpcDevPtr(std::move(handle)); }
};

}  // namespace

/// Before CUDA is used, and after the allocator that is to be timed is in place.
extern "C" void timed_install() {
  static timed_allocator one;
  of = c10::cuda::CUDACachingAllocator::allocator.load();
  c10::cuda::CUDACachingAllocator::allocator.store(&one);
  c10::SetAllocator(c10::kCUDA, &one, 1);
}

/// Allocations and frees so far, and the nanoseconds of each kind: count, ns, count, ns.
extern "C" void timed_figures(std::uint64_t* four) {
  four[0] = allocations.count;
  four[1] = allocations.ns;
  four[2] = frees.count;
  four[3] = frees.ns;
}
