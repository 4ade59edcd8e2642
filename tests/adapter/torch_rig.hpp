#pragma once
/// A GPU that PyTorch's adapter finds under itself in tests: simulated memory and streams that all pools of a device
/// share, as CUDA's are shared, under one lock; watched, so that a test knows what each pool's calls added up to.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/adapter/claimed.hpp"
#include "gmlake/adapter/torch_device.hpp"
#include "gmlake/adapter/torch_streams.hpp"
#include "gmlake/adapter/torch_swapping.hpp"
#include "gmlake/backend/simulated.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "tests/backend/must.hpp"

namespace gmlake::test {

// Not literals where they are used: Clang 14 leaves consteval literals in templates uncompiled.
inline constexpr bytes mib = 1_MiB;

struct simulated_gpu {
  explicit simulated_gpu(bytes capacity, std::uint64_t lag = timeline_options::endless)
      : memory({.capacity = capacity, .base = static_cast<address>(1_TiB)}),
        time(std::make_shared<simulated_timeline>(timeline_options{.lag = lag})) {}

  std::recursive_mutex mutex;
  simulated memory;
  std::shared_ptr<simulated_timeline> time;
  bytes most = 0;                        ///< that was ever created at once
  std::uint64_t unmaps = 0;              ///< calls, of all pools
  std::vector<int> granted;              ///< to whom, in order, by all pools
  int farthest_peer = 7;                 ///< beyond which none can reach
  std::set<std::uintptr_t> captured;     ///< streams
  torch_foreign_streams foreign;         ///< streams that PyTorch did not make
  std::function<void()> before_release;  ///< called as memory or addresses are about to go

  void set_captured(stream s, bool on) {
    std::scoped_lock const lock(mutex);
    if (on) captured.insert(to_integer(s));
    else captured.erase(to_integer(s));
    must(time->set_captured(s, on));
  }
  [[nodiscard]] bool is_captured(stream s) {
    std::scoped_lock const lock(mutex);
    return captured.contains(to_integer(s));
  }
  [[nodiscard]] bytes created() {
    std::scoped_lock const lock(mutex);
    return memory.created_bytes();
  }
  [[nodiscard]] simulated_timeline::counters counts() {
    std::scoped_lock const lock(mutex);
    return time->counts();
  }
};

/// The GPU's memory, as one pool calls it.
class lent_memory {
 public:
  explicit lent_memory(simulated_gpu& lender) noexcept : lender_(&lender) {}

  [[nodiscard]] bytes granularity() const noexcept { return lender_->memory.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    result<handle> made = lender_->memory.create(n);
    lender_->most = std::max(lender_->most, lender_->memory.created_bytes());
    return made;
  }
  [[nodiscard]] result<void> release(handle h) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->memory.release(h);
  }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->memory.reserve(n, alignment);
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->memory.unreserve(va, n);
  }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->memory.map(va, n, h);
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    ++lender_->unmaps;
    if (lender_->before_release) lender_->before_release();
    return lender_->memory.unmap(va, n);
  }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->memory.set_access(va, n, a);
  }
  [[nodiscard]] result<device_memory> memory_info() const noexcept {
    std::scoped_lock const lock(lender_->mutex);
    bytes const total = lender_->memory.capacity();
    return device_memory{.free = total - std::min(total, lender_->memory.created_bytes()), .total = total};
  }
  [[nodiscard]] result<void> grant(int peer) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    if (peer > lender_->farthest_peer) return failure(errc::invalid_argument, "grant");
    lender_->granted.push_back(peer);
    return {};
  }
  /// A number that stands for a descriptor.
  [[nodiscard]] result<int> export_fd(handle h) noexcept { return static_cast<int>(to_integer(h) & 0xffff); }

 private:
  simulated_gpu* lender_;
};
static_assert(MeasuredBackend<claimed<lent_memory>>);

/// The GPU's streams, as one pool calls them.
class lent_streams {
 public:
  using fence = simulated_timeline::fence;

  explicit lent_streams(simulated_gpu& lender) noexcept : lender_(&lender) {}

  [[nodiscard]] bool concurrent() const noexcept { return true; }
  [[nodiscard]] result<fence> record(stream s) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->time->record(s);
  }
  [[nodiscard]] result<bool> reached(fence& f) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->time->reached(f);
  }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->time->wait(s, f);
  }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->time->synchronize(f);
  }
  [[nodiscard]] result<void> synchronize_device() noexcept {
    std::scoped_lock const lock(lender_->mutex);
    return lender_->time->synchronize_device();
  }
  void release(fence& f) noexcept {
    std::scoped_lock const lock(lender_->mutex);
    lender_->time->release(f);
  }

 private:
  simulated_gpu* lender_;
};

/// A pool that tells a test before it does what it is asked, so that the test can come in between.
class hooked_pool final : public torch_pool {
 public:
  struct hooks {
    std::function<void()> after_each_live, lines;
    bool once = true;  ///< each hook is called once
  };
  hooked_pool(std::unique_ptr<torch_pool> inner, std::shared_ptr<hooks> h)
      : inner_(std::move(inner)), h_(std::move(h)) {}

  result<address> allocate(request const& r) noexcept override { return inner_->allocate(r); }
  result<address> allocate_at(address at, request const& r) noexcept override { return inner_->allocate_at(at, r); }
  result<void> deallocate(address block) noexcept override { return inner_->deallocate(block); }
  result<void> deallocate(address block, stream after) noexcept override { return inner_->deallocate(block, after); }
  result<void> record_stream(address block, stream on) noexcept override { return inner_->record_stream(block, on); }
  result<void> retire_stream(stream gone) noexcept override { return inner_->retire_stream(gone); }
  result<void> vacate(address block, vacating way) noexcept override { return inner_->vacate(block, way); }
  result<void> vacate_behind(address block, stream after) noexcept override {
    return inner_->vacate_behind(block, after);
  }
  result<void> foresee(address block, foresight const& f) noexcept override { return inner_->foresee(block, f); }
  result<std::uint64_t> awaited(address block, stream by) noexcept override { return inner_->awaited(block, by); }
  result<void> refill(address block, stream on, stream by, bool insist) noexcept override {
    return inner_->refill(block, on, by, insist);
  }
  result<void> show(address block, std::span<gmlake::lent_memory const> pieces) noexcept override {
    return inner_->show(block, pieces);
  }
  result<void> hide(address block) noexcept override { return inner_->hide(block); }
  result<bytes> trim(bool wait) noexcept override { return inner_->trim(wait); }
  void pin() noexcept override { inner_->pin(); }
  void on_out_of_memory(out_of_memory_callback callback) override { inner_->on_out_of_memory(std::move(callback)); }
  result<void> grant(int peer) noexcept override { return inner_->grant(peer); }
  bytes free_chunks() const noexcept override { return inner_->free_chunks(); }
  memory_account account() const noexcept override { return inner_->account(); }
  bytes movable_chunk() noexcept override { return inner_->movable_chunk(); }
  void set_movable_chunk(bytes n) noexcept override { inner_->set_movable_chunk(n); }
  pool_stats stats() const noexcept override { return inner_->stats(); }
  bool placed() const noexcept override { return inner_->placed(); }
  pool_snapshot snapshot() const override { return inner_->snapshot(); }
  char const* validate() const noexcept override { return inner_->validate(); }
  void each_live(std::function<void(block const&, stream)> const& f) const override {
    inner_->each_live(f);
    call(h_->after_each_live);
  }
  bool look_at(address at, std::function<void(block const&, stream)> const& f) const override {
    return inner_->look_at(at, f);
  }
  torch_lines lines() override {
    call(h_->lines);
    return inner_->lines();
  }
  void note_update() noexcept override { inner_->note_update(); }
  void set_planning(bool on) noexcept override { inner_->set_planning(on); }
  plan_stats planned() const noexcept override { return inner_->planned(); }
  std::vector<plan::plan> plans() const override { return inner_->plans(); }
  void reset_peaks() noexcept override { inner_->reset_peaks(); }
  void count_in(torch_together& all, bool first) noexcept override { inner_->count_in(all, first); }
  void reset_totals() noexcept override { inner_->reset_totals(); }
  result<int> export_fd(handle h) noexcept override { return inner_->export_fd(h); }

 private:
  static void call(std::function<void()>& hook) {
    if (auto const f = std::exchange(hook, nullptr)) f();
  }
  std::unique_ptr<torch_pool> inner_;
  std::shared_ptr<hooks> h_;
};

struct torch_rig_options {
  bytes capacity = 1_GiB;
  std::uint64_t lag = timeline_options::endless;
  torch_settings settings = {};
  bool swaps = false;  ///< blocks can
};

/// The pools that the rig's device asks for. Apart, because every preset is compiled here.
[[nodiscard]] std::unique_ptr<torch_pool> make_rigged_pool(simulated_gpu& gpu, torch_registry& registry,
                                                           torch_settings const& settings, torch_making with);

[[nodiscard]] std::unique_ptr<torch_swapper> make_rigged_swapper(simulated_gpu& gpu, torch_movable main);

class torch_rig {
 public:
  explicit torch_rig(torch_rig_options const& o = {}) : gpu(o.capacity, o.lag), settings_(o.settings) {
    torch_runtime runtime;
    runtime.total = o.capacity;
    runtime.captured = [this](stream s) { return gpu.is_captured(s); };
    runtime.make = [this](torch_making const& with) {
      if (refusing) throw std::bad_alloc();
      ++made;
      return std::unique_ptr<torch_pool>(
          std::make_unique<hooked_pool>(make_rigged_pool(gpu, registry, settings_, with), hooks));
    };
    if (o.swaps) {
      runtime.make_swapper = [this](torch_pool& main, shared_limit& limit, auto const&) {
        return make_rigged_swapper(gpu, torch_movable(main, limit));
      };
    }
    device_ = std::make_unique<torch_device>(0, settings_, std::move(runtime), registry);
  }
  torch_rig(torch_rig const&) = delete;
  torch_rig& operator=(torch_rig const&) = delete;
  ~torch_rig() {
    if (device_) sound();
  }

  simulated_gpu gpu;
  torch_registry registry;
  bool refusing = false;  ///< no more pools
  int made = 0;           ///< pools
  std::shared_ptr<hooked_pool::hooks> hooks = std::make_shared<hooked_pool::hooks>();

  [[nodiscard]] torch_device& device() noexcept { return *device_; }

  [[nodiscard]] address take(bytes n, stream on = {}) { return must(device_->allocate(n, on)); }
  void give(address at) {
    torch_registry::owner const o = registry.find(at);
    REQUIRE(o.pool != nullptr);
    REQUIRE(o.device == device_.get());
    must(o.device->deallocate(*o.pool, at));
  }
  /// Whose the block is: {0, 0} is the main pool; nobody's fails the test.
  [[nodiscard]] torch_pool_id home(address at) {
    torch_pool const* const owner = registry.find(at).pool;
    torch_pool_id found{~0ull, ~0ull};
    device_->each_pool([&](torch_pool_id id, torch_pool& p) { found = &p == owner ? id : found; });
    CHECK_MESSAGE(found.first != ~0ull, "the block is no pool's");
    return found;
  }
  [[nodiscard]] std::size_t pools() {
    std::size_t n = 0;
    device_->each_pool([&](torch_pool_id, torch_pool&) { ++n; });
    return n;
  }

  void sound() {
    bytes reserved = 0;
    device_->each_pool([&](torch_pool_id id, torch_pool& p) {
      CAPTURE(id.second);
      char const* const fault = p.validate();
      CHECK_MESSAGE(fault == nullptr, fault);
      reserved += p.stats().reserved.now;
    });
    CHECK(device_->limit().held() == reserved);
    CHECK(gpu.created() == reserved);
    CHECK(gpu.most <= gpu.memory.capacity());
  }

  /// The device goes, and leaves nothing.
  void destroy() {
    device_.reset();
    CHECK(gpu.memory.idle());
    CHECK(gpu.time->counts().live_fences == 0);
    CHECK(gpu.time->counts().misuses == 0);
  }

 private:
  torch_settings settings_;
  std::unique_ptr<torch_device> device_;
};

/// Requests on these streams.
[[nodiscard]] inline torch_device::filter only(std::vector<stream> accepted) {
  return [accepted = std::move(accepted)](stream s) { return std::ranges::find(accepted, s) != accepted.end(); };
}

}  // namespace gmlake::test
