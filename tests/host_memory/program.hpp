#pragma once
/// A program that trains on a pool that may run out of host memory, with the naive model beside it. Only what the pool
/// itself allocates is scarce: not what the device, the streams and the model note down.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/host_memory/scarcity.hpp"
#include "tests/pool/rig.hpp"
#include "tests/pool/training.hpp"

namespace gmlake::test {

class spared_device {
 public:
  spared_device(borrowed_device d) noexcept : wrapped_(d) {}  // NOLINT: a rig gives its pool a borrowed device

  [[nodiscard]] bytes granularity() const noexcept { return wrapped_.granularity(); }
  [[nodiscard]] result<handle> create(bytes n) noexcept {
    return with_plenty([&] { return wrapped_.create(n); });
  }
  [[nodiscard]] result<void> release(handle h) noexcept {
    return with_plenty([&] { return wrapped_.release(h); });
  }
  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    return with_plenty([&] { return wrapped_.reserve(n, alignment); });
  }
  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    return with_plenty([&] { return wrapped_.unreserve(va, n); });
  }
  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    return with_plenty([&] { return wrapped_.map(va, n, h); });
  }
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    return with_plenty([&] { return wrapped_.unmap(va, n); });
  }
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    return with_plenty([&] { return wrapped_.set_access(va, n, a); });
  }

 private:
  borrowed_device wrapped_;
};
static_assert(PhysicalBackend<spared_device>);

class spared_streams {
 public:
  using fence = simulated_streams::fence;

  explicit spared_streams(std::shared_ptr<simulated_timeline> timeline) noexcept : wrapped_(std::move(timeline)) {}

  [[nodiscard]] bool concurrent() const noexcept { return true; }
  [[nodiscard]] result<fence> record(stream s) noexcept {
    return with_plenty([&] { return wrapped_.record(s); });
  }
  [[nodiscard]] result<bool> reached(fence& f) noexcept { return wrapped_.reached(f); }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    return with_plenty([&] { return wrapped_.wait(s, f); });
  }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept { return wrapped_.synchronize(f); }
  [[nodiscard]] result<void> synchronize_device() noexcept { return wrapped_.synchronize_device(); }
  void release(fence& f) noexcept { wrapped_.release(f); }

 private:
  simulated_streams wrapped_;
};
static_assert(StreamPolicy<spared_streams>);

/// Two streams, steps that are marked; its blocks by slot.
template <PoolConfig Config>
class program {
 public:
  program() : rig_(options()), model_(rig_.device, rig_.time) {}

  /// What comes before the steps: `small` blocks, so that nodes run short at various points, and room for the steps, in
  /// pieces that don't touch.
  void begin(std::size_t small) {
    std::uint32_t slot = apart;
    while (small-- > 0) allocate(slot++, small_block, 0);
    before_pieces_ = slot;
    for (bytes n = largest_piece; n >= quarter_chunk; n -= granule) {
      allocate(slot++, granule, 0);
      allocate(slot++, n, 0);
    }
    allocate(slot, granule, 0);
    for (std::uint32_t piece = before_pieces_ + 1; piece < slot; piece += 2) release(piece);
  }
  /// The first piece of the room for steps becomes a part of a larger one.
  void widen_first_piece() { release(before_pieces_); }
  void adopt(std::vector<plan::plan> plans)
    requires(Config::planning::enabled)
  {
    result<void> const done = call([&] { return pool().adopt(std::move(plans)); });
    if (!done && done.error().code != errc::out_of_host_memory)
      blame("only host memory keeps plans from being adopted");
  }

  [[nodiscard]] basic_pool<Config>& pool() noexcept { return rig_.pool(); }
  /// The first thing that went wrong; empty: nothing did.
  [[nodiscard]] std::string const& fault() const noexcept { return model_.fault().empty() ? fault_ : model_.fault(); }
  [[nodiscard]] script const& one_step() const noexcept { return step_; }
  /// Requests refused so far.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

  void allocate(std::uint32_t slot, bytes n, std::size_t on) {
    rig_.time->advance();
    if (live_.contains(slot)) return;
    request const r{.size = n, .on = stream{1 + on}};
    result<address> const got = call([&] { return pool().allocate(r); });
    if (got) {
      model_.allocated(r, *got);
      live_[slot] = *got;
    } else {
      ++refused_;
      if (got.error().code != errc::out_of_host_memory) blame("only host memory runs out");
    }
  }
  void release(std::uint32_t slot, std::optional<std::size_t> after = {}) {
    rig_.time->advance();
    auto const at = live_.find(slot);
    if (at == live_.end() || !fault().empty()) return;
    std::optional<stream> const on = after ? std::optional(stream{1 + *after}) : std::nullopt;
    model_.freeing(at->second, on);
    result<void> const done =
        call([&] { return on ? pool().deallocate(at->second, *on) : pool().deallocate(at->second); });
    if (!done) blame("a live block can be freed");
    live_.erase(at);
  }
  void record(std::uint32_t slot, std::size_t on) {
    auto const at = live_.find(slot);
    if (at == live_.end() || !fault().empty()) return;
    result<void> const done = call([&] { return pool().record_stream(at->second, stream{1 + on}); });
    if (done) model_.recording(at->second, stream{1 + on});
    else if (done.error().code != errc::out_of_host_memory) blame("only host memory keeps a use from being recorded");
  }
  /// Gives back what is free. Waits for nothing, so that streams stay apart.
  void trim() {
    result<bytes> const done = call([&] { return pool().trim_passed(); });
    if (!done && done.error().code != errc::out_of_host_memory) blame("only host memory keeps a pool from trimming");
  }

  /// Leaves `n` nodes or so for blocks before another page of them is needed, and no other memory.
  void use_up_nodes(std::size_t n) {
    run_short({.first = 0, .count = shortage::endless});
    std::uint32_t slot = filling;
    for (std::uint64_t const before = refused_; refused_ == before;) allocate(slot++, small_block, 0);
    while (n-- > 0) release(--slot - 1);
  }

  /// Events [from, to) of the step.
  void run(std::size_t from, std::size_t to) {
    if (from == 0) call([&] { mark(); });
    for (std::size_t i = from; i < to && fault().empty(); ++i) {
      event const& e = step_[i];
      if (e.allocates) allocate(e.slot, e.size, e.stream);
      else release(e.slot);
    }
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) run(0, step_.size());
  }

  /// Every invariant, with memory to spare.
  void look() {
    if (char const* const broken = pool().validate()) blame(broken);
    if (std::string const broken = broken_rule(pool().snapshot(), pool().stats()); !broken.empty()) blame(broken);
    pool_stats const s = pool().stats();
    if (s.allocations - s.deallocations != live_.size()) blame("blocks are counted");
    if (s.requested.now != model_.requested()) blame("what was requested is what is live");
  }
  /// All goes back, and the pool goes.
  void finish() {
    while (!live_.empty() && fault().empty()) release(live_.begin()->first);
    if (!pool().trim()) blame("trim succeeds");
    if (pool().stats().reserved.now != 0) blame("trim releases everything free");
    look();
    model_.close();
    rig_.destroy();
    if (rig_.time->counts().live_fences != 0) blame("destruction leaves no fence");
    if (rig_.time->counts().misuses != 0) blame("fences are used rightly");
  }

  /// Slots beyond the step's.
  static constexpr std::uint32_t apart = 1000;
  static constexpr std::uint32_t filling = 10'000;
  /// Of the room for steps; the next one is a granule smaller, and so on.
  static constexpr bytes largest_piece = 10 * granule;

 private:
  static rig_options options() {
    rig_options o;
    o.time.lag = 200;
    return o;
  }
  void mark() noexcept {
    if constexpr (Config::planning::enabled) pool().mark_step();
  }
  template <class F>
  static decltype(auto) call(F&& f) {
    scarce const host_memory;
    return f();
  }
  void blame(std::string const& rule) {
    if (fault_.empty()) fault_ = rule;
  }

  rig<Config> rig_;
  naive_model model_;
  script step_ = training_step({.layers = 6, .streams = 2, .largest = 300'000});
  std::map<std::uint32_t, address> live_;
  std::uint32_t before_pieces_ = 0;
  std::uint64_t refused_ = 0;
  std::string fault_;
};

}  // namespace gmlake::test
