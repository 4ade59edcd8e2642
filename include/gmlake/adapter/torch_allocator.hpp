#pragma once
/// PyTorch's allocator interface over gmlake's pools: what a program sees of PyTorch's own allocator, it sees of this.
/// Compiled against the PyTorch that is installed; `install` puts it in the place of PyTorch's own.
///
/// Errors are PyTorch's exceptions: `OutOfMemoryError` with the pool's account, `Error` for the rest.

#include <array>
#include <atomic>
#include <deque>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/headeronly/version.h>

static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 11,
              "the allocator interface of PyTorch 2.11 and later");

#include "gmlake/adapter/torch_figures.hpp"
#include "gmlake/adapter/torch_foreign_memory.hpp"
#include "gmlake/adapter/torch_history.hpp"
#include "gmlake/adapter/torch_sharing.hpp"

namespace gmlake {

class torch_allocator final : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
  using device_index = c10::DeviceIndex;
  using mempool = c10::MempoolId_t;
  using entry = torch_history::entry;
  using level = torch_history::level;

 public:
  /// Made when the library is loaded, and never destroyed.
  [[nodiscard]] static torch_allocator& get() noexcept { return *one_; }

  /// In the place of PyTorch's own, before that has given out memory. Throws `torch_failure` if it has.
  static void install() {
    auto& current = c10::cuda::CUDACachingAllocator::allocator;
    torch_allocator& ours = get();
    if (current.load() == &ours) return;
    TORCH_CHECK(current.load() == nullptr || !current.load()->initialized(),
                "gmlake: CUDA memory is in use already; gmlake has to be enabled before that");
    current.store(&ours);
    c10::SetAllocator(c10::kCUDA, &ours);
  }

  // ---- blocks

  c10::DataPtr allocate(std::size_t n) override {
    TORCH_CHECK_WITH(OutOfMemoryError, n < one_exbibyte, "CUDA out of memory. Tried to allocate more than 1EB memory.");
    device_index device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    void* p = nullptr;
    if (n != 0) {
      p = enabled_.load(std::memory_order_relaxed) ? take(device, n, current_stream(device)) : take_uncached(n);
    }
    return {p, p, raw_deleter(), c10::Device(c10::DeviceType::CUDA, device)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return enabled_.load(std::memory_order_relaxed) ? &give_back : &give_back_uncached;
  }
  void* raw_alloc(std::size_t n) override {
    if (n == 0) return nullptr;
    device_index device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    return isEnabled() ? take(device, n, current_stream(device)) : take_uncached(n);
  }
  void* raw_alloc_with_stream(std::size_t n, cudaStream_t on) override {
    if (n == 0) return nullptr;
    device_index device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    // Of those that are not current nobody tells who made them.
    if (on != nullptr && on != current_stream(device)) torch_process::get().foreign().add(to_stream(on));
    return isEnabled() ? take(device, n, on) : take_uncached(n);
  }
  /// Whichever way it was allocated.
  void raw_delete(void* p) override {
    if (isEnabled() || torch_process::get().owner(p).pool != nullptr) give_back(p);
    else give_back_uncached(p);
  }
  void copy_data(void* to, void const* from, std::size_t n) const final {
    C10_CUDA_CHECK(cudaMemcpy(to, from, n, cudaMemcpyKind::cudaMemcpyDeviceToDevice));
  }
  void recordStream(c10::DataPtr const& p, c10::cuda::CUDAStream on) override {
    // Memory that isn't this allocator's, or is none, has nobody to wait for it.
    if (p.get() == nullptr || p.get_deleter() != &give_back) return;
    check(torch_process::get().record_stream(p.get(), to_stream(noted(on))));
  }
  using CUDAAllocator::recordStream;
  void* getBaseAllocation(void* p, std::size_t* size) override {
    bytes found = 0;
    if (torch_pool* const pool = torch_process::get().owner(p).pool) {
      pool->look_at(to_address(p), [&](block const& b, stream) { found = b.size; });
    }
    TORCH_CHECK(found != 0, "invalid device pointer: ", p);
    if (size != nullptr) *size = found;
    return p;
  }
  cudaError_t memcpyAsync(void* to, int to_device, void const* from, int from_device, std::size_t n, cudaStream_t on,
                          bool p2p_enabled) override {
    // Memory of the virtual-memory calls needs the peer call, unless access was granted.
    if (p2p_enabled || to_device == from_device) return cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, on);
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, n, on);
  }

  // ---- the whole

  void init(int devices) override {
    std::scoped_lock const lock(mutex_);
    int count = device_count_.load();
    for (; count < std::min(devices, torch_process::most_devices); ++count) {
      auto* const h = new torch_history(static_cast<device_index>(count));
      h->configure(history_options_, false);
      for (auto const& t : trackers_) h->track(t);
      histories_[static_cast<std::size_t>(count)] = h;
    }
    device_count_.store(count, std::memory_order_release);
  }
  bool initialized() override { return device_count_.load(std::memory_order_acquire) > 0; }
  std::string name() override { return "gmlake"; }
  void enable(bool value) override { enabled_.store(value); }
  bool isEnabled() const override { return enabled_.load(); }
  void emptyCache(mempool pool = {0, 0}) override {
    torch_process::get().each_device([&](torch_device& d) {
      torch_history* const h = history(d.ordinal());
      torch_history::cause const why(h != nullptr ? h->gather(level::ALL) : nullptr);
      d.trim({pool.first, pool.second});
    });
  }
  void cacheInfo(device_index device, std::size_t* largest) override {
    torch_device& d = device_of(device);
    memory_account const a = d.account();
    std::size_t const device_free = getMemoryInfo(device).first;
    *largest = std::max(*largest, a.free + std::min<bytes>(device_free, d.limit().left()));
  }
  double getMemoryFraction(device_index device) override {
    torch_device& d = device_of(device);
    return static_cast<double>(std::min(d.limit().limit(), d.total())) / static_cast<double>(d.total());
  }
  void setMemoryFraction(double fraction, device_index device) override {
    TORCH_CHECK_VALUE(0 <= fraction && fraction <= 1, "invalid fraction:", fraction, ". Please set within [0, 1].");
    torch_device& d = device_of(device);
    d.limit().set(static_cast<bytes>(fraction * static_cast<double>(d.total())));
  }
  void enablePeerAccess(device_index device, device_index to) override {
    c10::cuda::CUDAGuard const guard(device);
    cudaError_t const e = cudaDeviceEnablePeerAccess(to, 0);
    if (e == cudaErrorPeerAccessAlreadyEnabled) static_cast<void>(cudaGetLastError());
    else C10_CUDA_CHECK(e);
    check(device_of(to).grant(device));
  }

  // ---- figures

  c10::cuda::CUDACachingAllocator::DeviceStats getDeviceStats(device_index device) override {
    check_device(device);
    torch_device* const d = torch_process::get().opened(device);  // one that isn't used has no context, and gets none
    if (d == nullptr) return {};
    auto stats = device_stats(*d);
    std::scoped_lock const lock(mutex_);
    counts const& base = base_[static_cast<std::size_t>(device)];
    stats.num_alloc_retries -= base.retries;
    stats.num_ooms -= base.failures;
    stats.num_sync_all_streams -= base.waits;
    return stats;
  }
  void resetAccumulatedStats(device_index device) override {
    check_device(device);
    torch_device* const d = torch_process::get().opened(device);
    if (d == nullptr) return;
    d->reset_totals();
    std::scoped_lock const lock(mutex_);
    auto const seen = device_stats(*d);
    base_[static_cast<std::size_t>(device)] = {seen.num_alloc_retries, seen.num_ooms, seen.num_sync_all_streams};
  }
  void resetPeakStats(device_index device) override {
    check_device(device);
    if (torch_device* const d = torch_process::get().opened(device)) d->reset_peaks();
  }
  std::vector<c10::cuda::CUDACachingAllocator::StreamSegmentSize> getExpandableSegmentSizes(
      device_index device) override {
    std::vector<c10::cuda::CUDACachingAllocator::StreamSegmentSize> sizes;
    for (auto const& s : segments_of(device_of(device), device, nullptr)) {
      sizes.emplace_back(static_cast<cudaStream_t>(s.stream), !s.is_large, s.total_size);
    }
    return sizes;
  }
  c10::cuda::CUDACachingAllocator::SnapshotInfo snapshot(mempool pool = {0, 0}, bool traces = true) override {
    c10::cuda::CUDACachingAllocator::SnapshotInfo shot;
    torch_pool_id const only{pool.first, pool.second};
    auto const to_nanoseconds = clock_.makeConverter();
    for (torch_history* const h : histories()) {
      device_index const device = h->device();
      if (torch_device* const d = torch_process::get().opened(device)) {
        for (auto& s : segments_of(*d, device, only == torch_pool_id{} ? nullptr : &only)) {
          for (std::size_t i = 0, at = s.address; i < s.blocks.size(); at += s.blocks[i++].size) {
            if (s.blocks[i].allocated) s.blocks[i].context_when_allocated = h->context_of(at);
          }
          s.context_when_allocated = h->context_of_memory(s.address);
          shot.segments.push_back(std::move(s));
        }
      }
      shot.device_traces.emplace_back();
      for (entry& e : traces ? h->entries() : std::vector<entry>{}) {
        if (only != torch_pool_id{} && e.mempool_ != pool) continue;
        e.time_.t_ = to_nanoseconds(e.time_.approx_t_) / 1000;
        shot.device_traces.back().push_back(std::move(e));
      }
      if (h->active()) h->append(entry::SNAPSHOT, 0, 0, nullptr, {0, 0});
    }
    std::scoped_lock const lock(mutex_);
    for (auto note : annotations_) {
      note.time_.t_ = to_nanoseconds(note.time_.approx_t_) / 1000;
      shot.external_annotations.push_back(std::move(note));
    }
    shot.config_metadata.expandable_segments = true;
    shot.config_metadata.max_split_size = std::numeric_limits<std::size_t>::max();
    shot.config_metadata.last_allocator_settings = torch_process::get().settings_text();
    return shot;
  }
  bool isHistoryEnabled() override {
    std::scoped_lock const lock(mutex_);
    return history_options_.enabled;
  }
  void recordHistory(bool enabled, c10::cuda::CUDACachingAllocator::CreateContextFn recorder, std::size_t most,
                     level when, bool clear, std::vector<std::string> const& skipped) override {
    TORCH_CHECK(when == level::NEVER || recorder != nullptr);
    std::scoped_lock const lock(mutex_);
    history_options_ = {
        .enabled = enabled, .recorder = recorder, .most = std::max<std::size_t>(1, most), .when = when, .skipped = {}};
    for (std::string const& s : skipped) {
      history_options_.skipped.insert(static_cast<int>(c10::CachingDeviceAllocator::parseTraceEntryAction(s)));
    }
    for (torch_history* const h : histories()) h->configure(history_options_, clear);
    if (clear || !enabled) annotations_.clear();
    listen_locked();
  }
  void recordAnnotation(std::vector<std::pair<std::string, std::string>> const& all) override {
    device_index device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    c10::CachingDeviceAllocator::AnnotationEntry note(device, c10::getApproximateTime());
    for (auto const& [key, value] : all) note.recordUserMetadata(key, value);
    std::scoped_lock const lock(mutex_);
    if (!history_options_.enabled) return;
    annotations_.push_back(std::move(note));
    if (annotations_.size() > history_options_.most) annotations_.pop_front();
  }
  void pushCompileContext(std::string& name) override { torch_history::push_compile_context(name); }
  void popCompileContext() override { torch_history::pop_compile_context(); }
  void setUserMetadata(std::string const& text) override {
    for (torch_history* const h : histories()) h->set_metadata(text);
  }
  std::string getUserMetadata() override {
    return histories().empty() ? std::string() : histories().front()->metadata();
  }
  void attachOutOfMemoryObserver(c10::cuda::CUDACachingAllocator::OutOfMemoryObserver observer) override {
    std::scoped_lock const lock(mutex_);
    observers_.push_back(std::move(observer));
  }
#if TORCH_VERSION_MINOR >= 12
  void attachOomRejectionObserver(c10::cuda::CUDACachingAllocator::OomRejectionObserver observer) override {
    std::scoped_lock const lock(mutex_);
    rejection_observers_.push_back(std::move(observer));
  }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(void const* p) override {
    torch_registry::owner const o = torch_process::get().owner(p);
    torch_history const* const h = o.device != nullptr ? history(o.device->ordinal()) : nullptr;
    return h != nullptr ? h->context_of(reinterpret_cast<std::size_t>(p)) : nullptr;
  }
#endif
  void attachAllocatorTraceTracker(c10::cuda::CUDACachingAllocator::AllocatorTraceTracker tracker) override {
    std::scoped_lock const lock(mutex_);
    trackers_.push_back(tracker);
    for (torch_history* const h : histories()) h->track(tracker);
    listen_locked();
  }

  // ---- private pools, for CUDA graphs and MemPool

  void beginAllocateToPool(device_index device, mempool id, std::function<bool(cudaStream_t)> filter) override {
    bool const begun = device_of(device).begin({id.first, id.second}, [filter = std::move(filter)](stream s) {
      return filter(reinterpret_cast<cudaStream_t>(to_integer(s)));
    });
    TORCH_CHECK(begun, "beginAllocateToPool: already recording to mempool_id");
  }
  void endAllocateToPool(device_index device, mempool id) override {
    TORCH_CHECK(device_of(device).end({id.first, id.second}), "endAllocatePool: not currently recording to mempool_id");
  }
  void releasePool(device_index device, mempool id) override {
    TORCH_CHECK(device_of(device).release({id.first, id.second}), "releasePool: the pool is not in use");
  }
  int getPoolUseCount(device_index device, mempool id) override {
    return device_of(device).uses({id.first, id.second});
  }
  void createOrIncrefPool(device_index device, mempool id, std::shared_ptr<CUDAAllocator> foreign = nullptr) override {
    torch_runtime::maker maker;
    if (foreign != nullptr) {
      maker = torch_process::get().maker_over(
          device, [foreign, device] { return placed_memory(torch_foreign_memory(foreign, device)); });
    }
    device_of(device).use_pool({id.first, id.second}, maker);
  }
  void setUseOnOOM(device_index device, mempool id, bool on) override {
    static_cast<void>(device_of(device).serve_on_out_of_memory({id.first, id.second}, on));
  }
  void setNoSplit(device_index device, mempool id) override {
    static_cast<void>(device_of(device).never_split({id.first, id.second}));
  }
  bool checkPoolLiveAllocations(device_index device, mempool id, std::unordered_set<void*> const& expected) override {
    torch_pool* const pool = device_of(device).pool({id.first, id.second});
    TORCH_CHECK(pool != nullptr, "Could not find pool of id");
    std::size_t live = 0;
    bool known = true;
    pool->each_live([&](block const& b, stream) {
      ++live;
      known = known && expected.contains(to_pointer(b.begin));
    });
    return known && live == expected.size();
  }
  std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> getCheckpointState(device_index device,
                                                                                      mempool id) override {
    torch_pool* const pool = device_of(device).pool({id.first, id.second});
    TORCH_CHECK(pool != nullptr, "Could not find pool of id");
    auto state = std::make_shared<arrangement>();
    state->pool = id;
    pool->each_live([&](block const& b, stream on) {
      bool const own = b.in != nullptr && b.in->kind == area::own;
      state->blocks.push_back({b.begin, b.requested, on, own ? placement::own_chunks : placement::anywhere});
    });
    return state;
  }
  c10::cuda::CUDACachingAllocator::CheckpointDelta setCheckpointPoolState(
      device_index device, std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state) override {
    auto const wanted = std::dynamic_pointer_cast<arrangement>(state);
    TORCH_CHECK(wanted != nullptr, "Expected the state of a gmlake pool");
    torch_device& d = device_of(device);
    torch_pool* const pool = d.pool({wanted->pool.first, wanted->pool.second});
    TORCH_CHECK(pool != nullptr, "Could not find pool of id");
    c10::cuda::CUDACachingAllocator::CheckpointDelta delta;
    pool->each_live([&](block const& b, stream) { delta.ptrs_freed.push_back(to_pointer(b.begin)); });
    // Within the graphs of one pool, which never run at once, order is the graphs', and the streams that they were
    // captured on mean nothing: the restored blocks' does for all.
    for (void* const p : delta.ptrs_freed) {
      check(wanted->blocks.empty() ? pool->deallocate(to_address(p))
                                   : pool->deallocate(to_address(p), wanted->blocks.front().on));
    }
    for (auto const& b : wanted->blocks) {
      result<address> const there = pool->allocate_at(b.at, {.size = b.requested, .on = b.on, .where = b.where});
      TORCH_CHECK(there.has_value(),
                  "gmlake: a block of the pool's state can't be brought back: ", there ? "" : describe(there.error()));
      delta.dataptrs_allocd.emplace_back(to_pointer(b.at), to_pointer(b.at), &give_back,
                                         c10::Device(c10::DeviceType::CUDA, device));
    }
    return delta;
  }

  // ---- other processes

  c10::cuda::CUDACachingAllocator::ShareableHandle shareIpcHandle(void* p) override {
    torch_sharing::shared_block const b = torch_sharing::get().share(p);
    return {static_cast<std::ptrdiff_t>(b.offset), b.name};
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    device_index device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    return torch_sharing::get().open(handle, device);
  }

 private:
  static constexpr std::size_t one_exbibyte = std::size_t{1} << 60;

  /// The live blocks of a pool at one moment.
  struct arrangement final : c10::cuda::CUDACachingAllocator::AllocatorState {
    struct place {
      address at;
      bytes requested;
      stream on;
      placement where;
    };
    mempool pool;
    std::vector<place> blocks;
  };

  /// What is counted without end, as it was at the last reset.
  struct counts {
    std::int64_t retries = 0;
    std::int64_t failures = 0;
    std::int64_t waits = 0;
  };

  torch_allocator() = default;

  [[nodiscard]] static stream to_stream(cudaStream_t s) noexcept {
    return static_cast<stream>(reinterpret_cast<std::uintptr_t>(s));
  }
  static void check(result<void> const& done) { TORCH_CHECK(done.has_value(), done ? "" : describe(done.error())); }
  void check_device(device_index device) const {
    TORCH_CHECK(device >= 0 && device < device_count_.load(), "Invalid device argument ", static_cast<int>(device),
                ": did you call init?");
  }

  [[nodiscard]] torch_device& device_of(device_index device) {
    if (torch_device* const d = torch_process::get().opened(device)) [[likely]]
      return *d;
    return open(device);
  }
  [[gnu::cold]] torch_device& open(device_index device) {
    torch_device& d = torch_process::get().device(device);
    std::scoped_lock const lock(mutex_);
    if (!std::exchange(known_[static_cast<std::size_t>(device)], true)) {
      d.on_out_of_memory([](memory_account const&) {
        bool freed = false;
        for (auto const& name : c10::FreeCudaMemoryCallbacksRegistry()->Keys()) {
          freed = c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute() || freed;
        }
        return freed;
      });
    }
    listen_locked();
    return d;
  }
  /// Histories listen to their devices once somebody wants them to.
  void listen_locked() {
    for (torch_history* const h : histories()) {
      if (torch_device* const d = torch_process::get().opened(h->device())) {
        d->listen(torch_audience::history, h->active() ? h : nullptr);
      }
    }
  }
  [[nodiscard]] std::span<torch_history* const> histories() const noexcept {
    return std::span(histories_).first(static_cast<std::size_t>(device_count_.load(std::memory_order_acquire)));
  }
  /// The device's history if anybody wants one.
  [[nodiscard]] torch_history* history(int device) const noexcept {
    auto const all = histories();
    if (static_cast<std::size_t>(device) >= all.size()) return nullptr;
    torch_history* const h = all[static_cast<std::size_t>(device)];
    return h->active() ? h : nullptr;
  }

  /// The stream that this thread works on. One that PyTorch did not make is noted: its number is its address, which is
  /// even; those that PyTorch made have odd numbers, and the default stream has 0.
  [[nodiscard]] static cudaStream_t current_stream(device_index device) {
    return noted(c10::cuda::getCurrentCUDAStream(device));
  }
  [[nodiscard]] static cudaStream_t noted(c10::cuda::CUDAStream const& s) {
    if (s.id() != 0 && s.id() % 2 == 0) [[unlikely]]
      torch_process::get().foreign().add(to_stream(s.stream()));
    return s.stream();
  }

  [[nodiscard]] void* take(device_index device, std::size_t n, cudaStream_t on) {
    torch_history* const h = history(device);
    torch_history::context context = h != nullptr ? h->gather(level::STATE) : nullptr;
    torch_device& d = device_of(device);
    result<address> const block = h == nullptr
                                      ? d.allocate(n, to_stream(on), torch_process::where(), torch_process::group())
                                      : allocate_because(context, d, n, to_stream(on));
    if (!block) [[unlikely]]
      fail(d, n, on, block.error(), std::move(context));
    void* const p = to_pointer(*block);
    if (h != nullptr) [[unlikely]]
      h->append(entry::ALLOC, to_integer(*block), n, on, pool_id(d, p), std::move(context));
    if (c10::memoryProfilingEnabled()) [[unlikely]]
      report(d, p, static_cast<std::int64_t>(placed(p)));
    if (c10::impl::PyInterpreter const* const python = c10::impl::GPUTrace::get_trace()) [[unlikely]] {
      (*python)->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(p));
    }
    return p;
  }

  [[nodiscard, gnu::cold]] static result<address> allocate_because(torch_history::context why, torch_device& d,
                                                                   std::size_t n, stream on) {
    torch_history::cause const noted(std::move(why));
    return d.allocate(n, on, torch_process::where(), torch_process::group());
  }

  static void give_back(void* p) {
    if (p == nullptr) return;
    torch_process& process = torch_process::get();
    if (process.forked()) return;
    torch_registry::owner const o = process.owner(p);
    TORCH_CHECK(o.pool != nullptr, "invalid device pointer: ", p);
    torch_device& d = *o.device;
    if (c10::impl::PyInterpreter const* const python = c10::impl::GPUTrace::get_trace()) [[unlikely]] {
      (*python)->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(p));
    }
    bool const profiled = c10::memoryProfilingEnabled();
    std::int64_t const size = profiled ? static_cast<std::int64_t>(placed(p)) : 0;
    if (torch_history* const h = get().history(d.ordinal())) [[unlikely]]
      note_free(*h, d, *o.pool, p);
    result<void> const done = d.deallocate(*o.pool, to_address(p));
    TORCH_CHECK(done.has_value(), done ? "" : describe(done.error()), ": ", p);
    if (profiled) report(d, p, -size);
  }

  [[gnu::cold]] static void note_free(torch_history& h, torch_device& d, torch_pool& pool, void* p) {
    bytes requested = 0;
    void* on = nullptr;
    pool.look_at(to_address(p), [&](block const& b, stream s) {
      requested = b.requested;
      on = reinterpret_cast<void*>(to_integer(s));
    });
    torch_history::context const context = h.gather(level::ALL);
    mempool const id = pool_id(d, p);
    auto const at = reinterpret_cast<std::size_t>(p);
    h.append(entry::FREE_REQUESTED, at, requested, on, id, context);
    h.append(entry::FREE_COMPLETED, at, requested, on, id, context);
  }

  [[nodiscard]] void* take_uncached(std::size_t n) {
    void* p = nullptr;
    C10_CUDA_CHECK(cudaMalloc(&p, n));
    return p;
  }
  static void give_back_uncached(void* p) { C10_CUDA_CHECK(cudaFree(p)); }

  /// The size of the block at p as placed.
  [[nodiscard]] static bytes placed(void* p) {
    bytes n = 0;
    if (torch_pool* const pool = torch_process::get().owner(p).pool) {
      pool->look_at(to_address(p), [&](block const& b, stream) { n = b.size; });
    }
    return n;
  }
  [[nodiscard]] static mempool pool_id(torch_device& d, void* p) {
    torch_pool const* const pool = torch_process::get().owner(p).pool;
    mempool id{0, 0};
    d.each_pool([&](torch_pool_id i, torch_pool const& q) {
      if (&q == pool) id = {i.first, i.second};
    });
    return id;
  }

  static void report(torch_device& d, void* p, std::int64_t n) {
    memory_account const a = d.account();
    c10::reportMemoryUsageToProfiler(p, n, a.live, a.reserved,
                                     c10::Device(c10::DeviceType::CUDA, static_cast<device_index>(d.ordinal())));
  }

  [[noreturn, gnu::cold]] void fail(torch_device& d, std::size_t n, cudaStream_t on, error const& e,
                                    torch_history::context context) {
    TORCH_CHECK(e.code == errc::out_of_memory, describe(e));
    auto const device = static_cast<device_index>(d.ordinal());
    std::size_t free = 0, total = 0;
    static_cast<void>(cudaMemGetInfo(&free, &total));
    memory_account const a = d.account();
    c10::reportOutOfMemoryToProfiler(static_cast<std::int64_t>(n), a.live, a.reserved,
                                     c10::Device(c10::DeviceType::CUDA, device));
    if (torch_history* const h = history(device)) {
      h->append(entry::OOM, free, n, on, {0, 0}, std::move(context));
    }
    std::vector<c10::cuda::CUDACachingAllocator::OutOfMemoryObserver> observers;
    {
      std::scoped_lock const lock(mutex_);
      observers = observers_;
    }
    for (auto const& o : observers) o(device, n, std::min<bytes>(total, d.limit().limit()), free);
#if TORCH_VERSION_MINOR >= 12
    decltype(rejection_observers_) rejection_observers;
    {
      std::scoped_lock const lock(mutex_);
      rejection_observers = rejection_observers_;
    }
    for (auto const& o : rejection_observers) o(device, n, a.live, total);
#endif
    TORCH_CHECK_WITH(OutOfMemoryError, false, torch_process::out_of_memory_text(d, n, e));
  }

  std::mutex mutex_;  ///< of what follows; a pool may be asked while it is held, but never calls back
  std::array<torch_history*, torch_process::most_devices> histories_{};  ///< by device; those of `init`
  std::atomic<int> device_count_{0};
  std::array<bool, torch_process::most_devices> known_{};  ///< devices that ask PyTorch for help
  std::array<counts, torch_process::most_devices> base_{};
  torch_history::options history_options_;
  std::vector<torch_history::tracker> trackers_;
  std::vector<c10::cuda::CUDACachingAllocator::OutOfMemoryObserver> observers_;
#if TORCH_VERSION_MINOR >= 12
  std::vector<c10::cuda::CUDACachingAllocator::OomRejectionObserver> rejection_observers_;
#endif
  std::deque<c10::CachingDeviceAllocator::AnnotationEntry> annotations_;
  c10::ApproximateClockToUnixTimeConverter clock_;
  std::atomic<bool> enabled_{true};

  static torch_allocator* const one_;
};
inline torch_allocator* const torch_allocator::one_ = new torch_allocator;

}  // namespace gmlake
