#pragma once
/// One of a device's pools as the adapter sees it, whichever preset it is made of.

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "gmlake/adapter/torch_counts.hpp"
#include "gmlake/adapter/torch_making.hpp"
#include "gmlake/adapter/torch_settings.hpp"
#include "gmlake/grow/fixed_chunks.hpp"
#include "gmlake/plan/plan_in_background.hpp"
#include "gmlake/pool/planner.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/stitch/no_stitch.hpp"

namespace gmlake {

/// The physical memory beneath a block: whole chunks side by side, in the block's order.
struct torch_pieces {
  struct piece {
    handle memory{};
    address home{};
    bytes size = 0;
  };
  std::vector<piece> chunks;
  bytes offset = 0;  ///< of the block's first byte in the first chunk
};

class torch_pool {
 public:
  virtual ~torch_pool() = default;

  [[nodiscard]] virtual result<address> allocate(request const& r) noexcept = 0;
  [[nodiscard]] virtual result<address> allocate_at(address at, request const& r) noexcept = 0;
  [[nodiscard]] virtual result<void> deallocate(address block) noexcept = 0;
  [[nodiscard]] virtual result<void> deallocate(address block, stream after) noexcept = 0;
  [[nodiscard]] virtual result<void> record_stream(address block, stream on) noexcept = 0;
  [[nodiscard]] virtual result<void> retire_stream(stream gone) noexcept = 0;
  /// The memory under a movable block goes, and comes back.
  [[nodiscard]] virtual result<void> vacate(address block, vacating way) noexcept = 0;
  [[nodiscard]] virtual result<void> vacate_behind(address block, stream after) noexcept = 0;
  [[nodiscard]] virtual result<void> foresee(address block, foresight const& f) noexcept = 0;
  [[nodiscard]] virtual result<std::uint64_t> awaited(address block, stream by) noexcept = 0;
  [[nodiscard]] virtual result<void> refill(address block, stream on, stream by, bool insist) noexcept = 0;
  /// Other memory is shown at a vacated block's address, and hidden again.
  [[nodiscard]] virtual result<void> show(address block, std::span<lent_memory const> pieces) noexcept = 0;
  [[nodiscard]] virtual result<void> hide(address block) noexcept = 0;
  /// Whether its memory came in segments, each with its address.
  [[nodiscard]] virtual bool placed() const noexcept = 0;
  /// After waiting on the host, or without.
  [[nodiscard]] virtual result<bytes> trim(bool wait) noexcept = 0;
  virtual void pin() noexcept = 0;
  virtual void on_out_of_memory(out_of_memory_callback callback) = 0;
  [[nodiscard]] virtual result<void> grant(int peer) noexcept = 0;

  /// Bytes of chunks that are wholly free. Linear in the chunks.
  [[nodiscard]] virtual bytes free_chunks() const noexcept = 0;
  [[nodiscard]] virtual memory_account account() const noexcept = 0;
  [[nodiscard]] virtual bytes movable_chunk() noexcept = 0;
  virtual void set_movable_chunk(bytes n) noexcept = 0;
  [[nodiscard]] virtual pool_stats stats() const noexcept = 0;
  [[nodiscard]] virtual pool_snapshot snapshot() const = 0;
  [[nodiscard]] virtual char const* validate() const noexcept = 0;
  virtual void each_live(std::function<void(block const&, stream)> const& f) const = 0;
  /// Whether there is a live block at `at`, for which f was called.
  virtual bool look_at(address at, std::function<void(block const&, stream)> const& f) const = 0;
  /// An optimizer has updated its parameters: see `basic_pool::note_update`.
  virtual void note_update() noexcept = 0;
  /// See `basic_pool::set_planning`. No effect where the pool doesn't plan.
  virtual void set_planning(bool on) noexcept = 0;
  /// What plans have done; all 0 where the pool doesn't plan.
  [[nodiscard]] virtual plan_stats planned() const noexcept = 0;
  /// The plans that it knows. Throws `std::bad_alloc`.
  [[nodiscard]] virtual std::vector<plan::plan> plans() const = 0;
  /// PyTorch's figures, and their resets.
  [[nodiscard]] virtual torch_lines lines() = 0;
  virtual void reset_peaks() noexcept = 0;
  /// See `torch_observer::count_in`.
  virtual void count_in(torch_together& all, bool first) noexcept = 0;
  virtual void reset_totals() noexcept = 0;
  /// A descriptor of a chunk's handle, the caller's to close. Error: `not_supported` where handles can't be shared.
  [[nodiscard]] virtual result<int> export_fd(handle h) noexcept = 0;
};

/// The memory beneath a live block. Throws `std::bad_alloc`.
[[nodiscard]] inline torch_pieces pieces_of(block const& b) {
  torch_pieces all;
  if (b.view != nullptr) {
    stitch const& s = *b.view;
    all.offset = s.base;
    bytes covered = 0;
    for (std::size_t i = 0; i < s.count && covered < s.base + b.size; ++i) {
      all.chunks.push_back({s.chunks[i]->memory, s.chunks[i]->home, s.chunks[i]->size});
      covered += s.chunks[i]->size;
    }
    return all;
  }
  all.offset = b.begin - b.first_chunk->home;
  for (chunk const* c = b.first_chunk; c != nullptr && c->home < b.end(); c = c->next) {
    all.chunks.push_back({c->memory, c->home, c->size});
  }
  return all;
}

/// A stitch policy with what GMLake's variables say on top: never, only from a size on, only once growth has failed.
template <StitchPolicy Inner>
class limited_stitch {
 public:
  limited_stitch() noexcept = default;
  explicit limited_stitch(torch_settings const& s) noexcept
      : on_(s.stitch), least_(s.frag_limit.value_or(0)), reuse_(s.reuse_limit), level_(s.defrag_level.value_or(0)) {}

  [[nodiscard]] bool stitches(bytes n, bool growth_failed) const noexcept {
    return on_ && n >= least_ && (level_ == 0 || growth_failed) && inner_.stitches(n, growth_failed);
  }
  [[nodiscard]] bool reuses(bytes capacity, bytes n) const noexcept {
    if (reuse_) return static_cast<double>(capacity) <= static_cast<double>(n) * *reuse_;
    return inner_.reuses(capacity, n);
  }
  [[nodiscard]] stitch_choice choose(stitch_candidates from, bytes n, std::span<extent> out) const noexcept {
    return inner_.choose(from, n, out);
  }

 private:
  Inner inner_;
  bool on_ = true;
  bytes least_ = 0;
  std::optional<double> reuse_;
  int level_ = 0;
};
static_assert(StitchPolicy<limited_stitch<largest_first>>);

/// Waits as `wait_before_growing` does, or never.
class optional_wait {
 public:
  explicit optional_wait(bool on = true) noexcept : on_(on) {}
  [[nodiscard]] bool before_stitching() const noexcept { return on_ && wait_before_growing{}.before_stitching(); }
  [[nodiscard]] bool before_growing() const noexcept { return on_ && wait_before_growing{}.before_growing(); }

 private:
  bool on_;
};
static_assert(WaitPolicy<optional_wait>);

template <PoolConfig Config>
class torch_pool_of final : public torch_pool {
 public:
  template <class... Parts>
  explicit torch_pool_of(Parts&&... parts) : pool_(std::forward<Parts>(parts)...) {}

  result<address> allocate(request const& r) noexcept override { return pool_.allocate(r); }
  result<address> allocate_at(address at, request const& r) noexcept override { return pool_.allocate_at(at, r); }
  result<void> deallocate(address block) noexcept override { return pool_.deallocate(block); }
  result<void> deallocate(address block, stream after) noexcept override { return pool_.deallocate(block, after); }
  result<void> record_stream(address block, stream on) noexcept override { return pool_.record_stream(block, on); }
  result<void> retire_stream(stream gone) noexcept override { return pool_.retire_stream(gone); }
  result<void> vacate(address block, vacating way) noexcept override { return pool_.vacate(block, way); }
  result<void> vacate_behind(address block, stream after) noexcept override {
    return pool_.vacate_behind(block, after);
  }
  result<void> foresee(address block, foresight const& f) noexcept override { return pool_.foresee(block, f); }
  result<std::uint64_t> awaited(address block, stream by) noexcept override { return pool_.awaited(block, by); }
  result<void> refill(address block, stream on, stream by, bool insist) noexcept override {
    return pool_.refill(block, on, by, insist);
  }
  result<void> show(address block, std::span<lent_memory const> pieces) noexcept override {
    return pool_.show(block, pieces);
  }
  result<void> hide(address block) noexcept override { return pool_.hide(block); }
  bool placed() const noexcept override { return PlacedBackend<typename Config::backend>; }
  result<bytes> trim(bool wait) noexcept override { return wait ? pool_.trim() : pool_.trim_passed(); }
  void pin() noexcept override { pool_.pin(); }
  void on_out_of_memory(out_of_memory_callback callback) override { pool_.on_out_of_memory(std::move(callback)); }
  result<void> grant(int peer) noexcept override {
    if constexpr (requires(typename Config::backend& b) { b.wrapped().grant(peer); }) {
      return pool_.change_access([peer](auto& backend) noexcept { return backend.wrapped().grant(peer); });
    } else {
      return failure(errc::not_supported, "grant");
    }
  }

  bytes free_chunks() const noexcept override { return pool_.free_chunks(); }
  memory_account account() const noexcept override { return pool_.account(); }
  bytes movable_chunk() noexcept override { return pool_.movable_chunk(); }
  void set_movable_chunk(bytes n) noexcept override { pool_.set_movable_chunk(n); }
  pool_stats stats() const noexcept override { return pool_.stats(); }
  pool_snapshot snapshot() const override { return pool_.snapshot(); }
  char const* validate() const noexcept override { return pool_.validate(); }
  void each_live(std::function<void(block const&, stream)> const& f) const override { pool_.each_live(f); }
  bool look_at(address at, std::function<void(block const&, stream)> const& f) const override {
    return pool_.look_at(at, f);
  }
  void expect_updates() noexcept
    requires(Config::planning::enabled)
  {
    pool_.expect_updates();
  }
  void note_update() noexcept override {
    if constexpr (Config::planning::enabled) pool_.note_update();
  }
  void set_planning(bool on) noexcept override {
    if constexpr (Config::planning::enabled) pool_.set_planning(on);
  }
  plan_stats planned() const noexcept override {
    if constexpr (Config::planning::enabled) return pool_.plans_seen();
    else return {};
  }
  std::vector<plan::plan> plans() const override {
    if constexpr (Config::planning::enabled) return pool_.plans();
    else return {};
  }
  [[nodiscard]] result<void> adopt(std::vector<plan::plan> known) noexcept
    requires(Config::planning::enabled)
  {
    return known.empty() ? result<void>{} : pool_.adopt(std::move(known));
  }
  torch_lines lines() override {
    return pool_.observe([](torch_observer& o) { return o.lines(); });
  }
  void reset_peaks() noexcept override {
    pool_.observe([](torch_observer& o) { o.reset_peaks(); });
  }
  void count_in(torch_together& all, bool first) noexcept override {
    pool_.observe([&](torch_observer& o) { o.count_in(all, first); });
  }
  void reset_totals() noexcept override {
    pool_.observe([](torch_observer& o) { o.reset_totals(); });
  }
  result<int> export_fd(handle h) noexcept override {
    if constexpr (requires(typename Config::backend& b) { b.wrapped().export_fd(h); }) {
      return pool_.backend().wrapped().export_fd(h);
    } else {
      return failure(errc::not_supported, "export_fd");
    }
  }

 private:
  basic_pool<Config> pool_;
};

/// A pool over memory that comes with its address: nothing is stitched, whatever the settings say. Throws
/// `std::bad_alloc`.
template <PlacedBackend Backend, StreamPolicy Streams>
[[nodiscard]] std::unique_ptr<torch_pool> make_torch_pool(torch_settings const& s, Backend backend, Streams streams,
                                                          torch_making const& with) {
  pool_options const& options = with.options;
  using config = typename lake_config<Backend, Streams>::template with_observer<torch_observer>::template with_stitch<
      no_stitch>::template with_wait<optional_wait>::template with_growth<fixed_chunks>;
  return std::make_unique<torch_pool_of<config>>(
      std::move(backend), std::move(streams), options,
      pool_policies<config>{.wait = optional_wait(s.wait.value_or(true)),
                            .growth = fixed_chunks(options.small_chunk),
                            .observer = torch_observer(with.listener, options.small_limit, options.small_chunk)});
}

/// A pool of the preset that the settings name. Throws `std::bad_alloc`.
template <PhysicalBackend Backend, StreamPolicy Streams>
[[nodiscard]] std::unique_ptr<torch_pool> make_torch_pool(torch_settings const& s, Backend backend, Streams streams,
                                                          torch_making const& with) {
  pool_options const& options = with.options;
  torch_observer const observer(with.listener, options.small_limit, options.small_chunk);
  lru_options idle;
  if (s.idle_addresses) idle.addresses = *s.idle_addresses;
  if (s.preset == torch_settings::preset_kind::gmlake) {
    using base = gmlake_config<Backend, Streams>;
    using config = typename base::template with_observer<torch_observer>::template with_stitch<
        limited_stitch<gmlake_limits>>::template with_wait<optional_wait>;
    return std::make_unique<torch_pool_of<config>>(std::move(backend), std::move(streams), options,
                                                   pool_policies<config>{.wait = optional_wait(s.wait.value_or(false)),
                                                                         .growth = granule_chunks(s.chunk.value_or(0)),
                                                                         .stitch = limited_stitch<gmlake_limits>(s),
                                                                         .evict = lru(idle),
                                                                         .observer = observer});
  }
  using base = lake_config<Backend, Streams>;
  using config = typename base::template with_observer<torch_observer>::template with_stitch<
      limited_stitch<largest_first>>::template with_wait<optional_wait>;
  auto const make = [&]<class Config>(std::type_identity<Config>) {
    return std::make_unique<torch_pool_of<Config>>(std::move(backend), std::move(streams), options,
                                                   pool_policies<Config>{.wait = optional_wait(s.wait.value_or(true)),
                                                                         .growth = adaptive_chunks(with.chunks),
                                                                         .stitch = limited_stitch<largest_first>(s),
                                                                         .evict = lru(idle),
                                                                         .observer = observer});
  };
  if (!with.plans || s.plan == torch_settings::no_plan) return make(std::type_identity<config>{});
  using planning = typename config::template with_planning<plan::plan_in_background>;
  auto made = make(std::type_identity<planning>{});
  made->expect_updates();
  if (!made->adopt(with.known)) throw std::runtime_error("gmlake: the plans given can't be taken");
  return made;
}

}  // namespace gmlake
