#pragma once
/// One GPU's memory for PyTorch: the main pool, the private pools of CUDA graphs and `MemPool`s, and which of them a
/// request goes to. All share one limit.
///
/// While a private pool is being allocated to, a capture may be under way: nothing is recorded, asked or waited for on
/// the device until the context ends, or its first request shows that its stream is not captured. A pool that a capture
/// has allocated from is pinned: its addresses stay its own until it is destroyed, which is when nobody uses it and no
/// block of it lives, or some time after (see `release`).
///
/// Thread-safe. Lock order: a pool's own lock is never held when `routes_` is taken.

#include <algorithm>
#include <atomic>
#include <compare>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gmlake/adapter/torch_pool.hpp"
#include "gmlake/adapter/torch_registry.hpp"
#include "gmlake/adapter/torch_swapper.hpp"

namespace gmlake {

/// PyTorch's name for a private pool; the main one is {0, 0}.
struct torch_pool_id {
  unsigned long long first = 0;
  unsigned long long second = 0;
  friend auto operator<=>(torch_pool_id const&, torch_pool_id const&) = default;
};

/// What a device's runtime gives the adapter.
struct torch_runtime {
  using maker = std::function<std::unique_ptr<torch_pool>(torch_making const&)>;
  maker make;  ///< throws on failure
  /// Of blocks that the main pool makes; throws on failure. Null: nothing can be swapped.
  std::function<std::unique_ptr<torch_swapper>(torch_pool& main, shared_limit& limit,
                                               std::shared_ptr<std::atomic<int> const> const& pauses)>
      make_swapper;
  std::function<bool(stream)> captured;  ///< whether the stream is being captured
  bytes total = 0;                       ///< the device's memory
};

class torch_device {
 public:
  using filter = std::function<bool(stream)>;

  /// Throws what the runtime's maker throws.
  torch_device(int ordinal, torch_settings settings, torch_runtime runtime, torch_registry& registry)
      : ordinal_(ordinal),
        settings_(std::move(settings)),
        runtime_(std::move(runtime)),
        registry_(&registry),
        limit_(limit_of(settings_, runtime_.total)),
        pauses_(std::make_shared<std::atomic<int>>(0)),
        main_(make(main_number_, 256_GiB, {}, runtime_.make)) {
    main_->on_out_of_memory([this](memory_account const& a) { return relieve(a); });
  }
  torch_device(torch_device const&) = delete;
  torch_device& operator=(torch_device const&) = delete;

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] bytes total() const noexcept { return runtime_.total; }
  [[nodiscard]] torch_pool& main() noexcept { return *main_; }
  [[nodiscard]] shared_limit& limit() noexcept { return limit_; }

  // ---- blocks

  /// For work queued on `s`; a movable block in a group, where there is a swapper. Errors: as the pool's;
  /// `account.limit` is the device's. Throws what filters throw.
  [[nodiscard]] result<address> allocate(bytes n, stream s, placement where = placement::anywhere,
                                         swap::tag group = {}) {
    request r{.size = n, .on = s, .where = where};
    if (contexts_open_.load(std::memory_order_acquire) > 0) [[unlikely]]
      return counted(allocate_routed(r, group));
    torch_swapper* const swapper = swapper_.load(std::memory_order_acquire);
    if (swapper != nullptr) [[unlikely]]
      return counted(allocate_swappable(*swapper, r, group));
    r.where = unless_movable(where);
    return counted(allocate_main(r));
  }

  /// `pool` is the block's, by the registry.
  [[nodiscard]] result<void> deallocate(torch_pool& pool, address block) noexcept {
    if (&pool == main_.get()) {
      torch_swapper* const swapper = swapper_.load(std::memory_order_acquire);
      return swapper == nullptr ? pool.deallocate(block) : swapper->deallocate(block);
    }
    result<void> done = pool.deallocate(block);
    if (doomed_.load(std::memory_order_acquire) > 0) reap();
    return done;
  }

  /// Work on `on` uses the block too. `pool` is the block's, by the registry.
  [[nodiscard]] result<void> record_stream(torch_pool& pool, address block, stream on) noexcept {
    torch_swapper* const swapper = &pool == main_.get() ? swapper_.load(std::memory_order_acquire) : nullptr;
    return swapper == nullptr ? pool.record_stream(block, on) : swapper->record_stream(block, on);
  }

  // ---- swapping

  /// Null where nothing was swappable yet.
  [[nodiscard]] torch_swapper* swapper() const noexcept { return swapper_.load(std::memory_order_acquire); }
  /// Made when it is first asked for. Throws what the runtime's maker throws; `std::logic_error` where there is none.
  [[nodiscard]] torch_swapper& make_swapper() {
    std::scoped_lock const lock(swapping_);
    if (torch_swapper* const there = swapper()) return *there;
    if (!runtime_.make_swapper) throw std::logic_error("gmlake: blocks can't be swapped here");
    owned_swapper_ = runtime_.make_swapper(*main_, limit_, pauses_);
    swapper_.store(owned_swapper_.get(), std::memory_order_release);
    return *owned_swapper_;
  }

  /// This thread's operation, about to be launched on `on`, uses these: see `torch_swapper::access`. What is captured
  /// is used again by the graph, without a word, and what `lingers` by streams that nobody has told of, when the
  /// operation has ended: it is brought in for good. Errors: the swapper's. Throws what the runtime's `captured`
  /// throws.
  [[nodiscard]] result<void> use(torch_swapper& by, std::span<swap::block_use const> uses, bool lingers,
                                 stream on) const {
    if (lingers || (paused() && runtime_.captured(on))) {
      for (swap::block_use const& u : uses) {
        if (result<void> done = by.pin(u.at, on); !done) return done;
      }
    }
    return by.access(uses, on);
  }

  // ---- private pools

  /// Creates the pool or adds a use to it; a new one by `maker`, if there is one. Throws what makers throw.
  void use_pool(torch_pool_id id, torch_runtime::maker const& maker = {}) {
    std::scoped_lock const lock(routes_);
    use_pool_locked(id, maker);
  }
  /// Requests whose stream `accepts` come from the pool until `end`. Adds a use. False if it is open already.
  [[nodiscard]] bool begin(torch_pool_id id, filter accepts) {
    std::scoped_lock const lock(routes_);
    if (std::ranges::any_of(contexts_, [&](context const& c) { return c.id == id; })) return false;
    contexts_.reserve(contexts_.size() + 1);
    private_pool& p = use_pool_locked(id);
    ++p.contexts;
    contexts_.push_back({&p, id, std::move(accepts), true});
    pauses_->fetch_add(1);
    contexts_open_.store(static_cast<int>(contexts_.size()), std::memory_order_release);
    return true;
  }
  /// False if it is not open.
  [[nodiscard]] bool end(torch_pool_id id) noexcept {
    {
      std::scoped_lock const lock(routes_);
      auto const c = std::ranges::find(contexts_, id, &context::id);
      if (c == contexts_.end()) return false;
      if (c->pausing) pauses_->fetch_sub(1);
      --c->pool->contexts;
      contexts_.erase(c);
      contexts_open_.store(static_cast<int>(contexts_.size()), std::memory_order_release);
    }
    if (doomed_.load() > 0) reap();
    return true;
  }
  /// Takes a use away; without any, the pool goes with its last block. One that was captured and still has blocks stays
  /// until memory is asked for (`trim`, a request that fails, another private pool): a graph may have captured a tensor
  /// of it that dies before the graph does. False if there is no such use.
  [[nodiscard]] bool release(torch_pool_id id) noexcept {
    {
      std::scoped_lock const lock(routes_);
      private_pool* const p = find(id);
      if (p == nullptr || p->uses == 0) return false;
      if (--p->uses > 0) return true;
      pool_stats const s = p->pool->stats();
      p->lingers = p->captured && s.allocations != s.deallocations;
      doomed_.fetch_add(1);
    }
    reap();
    return true;
  }
  [[nodiscard]] int uses(torch_pool_id id) const noexcept {
    std::scoped_lock const lock(routes_);
    private_pool const* const p = find(id);
    return p != nullptr ? p->uses : 0;
  }
  /// What the main pool can't serve may come from this pool. False if there is none.
  [[nodiscard]] bool serve_on_out_of_memory(torch_pool_id id, bool on) noexcept {
    std::scoped_lock const lock(routes_);
    private_pool* const p = find(id);
    if (p != nullptr) p->serves_others = on;
    return p != nullptr;
  }
  /// Blocks of the pool get chunks of their own from now on. False if there is none.
  [[nodiscard]] bool never_split(torch_pool_id id) noexcept {
    std::scoped_lock const lock(routes_);
    private_pool* const p = find(id);
    if (p != nullptr) p->whole = true;
    return p != nullptr;
  }

  /// The pool of that name, {0, 0} for the main one; null if there is none. It stays as long as it is used.
  [[nodiscard]] torch_pool* pool(torch_pool_id id) noexcept {
    if (id == torch_pool_id{}) return main_.get();
    std::scoped_lock const lock(routes_);
    private_pool* const p = find(id);
    return p != nullptr ? p->pool.get() : nullptr;
  }
  /// Calls f(id, pool) for all pools, the main one first. f must not call this class.
  template <class F>
  void each_pool(F&& f) {
    f(torch_pool_id{}, *main_);
    std::scoped_lock const lock(routes_);
    for (auto const& p : privates_) f(p->id, *p->pool);
  }

  /// PyTorch's figures of all pools, those that are gone included. Peaks of all requests are the device's, but for that
  /// of the number of segments, which like those of small and large requests are the pools' own, added up.
  [[nodiscard]] torch_lines lines() {
    torch_lines sum;
    each_pool([&](torch_pool_id, torch_pool& p) { sum.merge(p.lines()); });
    std::scoped_lock const lock(routes_);
    sum.merge(departed_);
    auto const is = [](torch_gauge& g, std::int64_t peak) { g.peak = std::max(g.current, peak); };
    is(sum.all.reserved_bytes, static_cast<std::int64_t>(limit_.peak()));
    if (counted_together_) {
      is(sum.all.allocation, together_.blocks.peak());
      is(sum.all.allocated_bytes, together_.placed.peak());
      is(sum.all.requested_bytes, together_.requested.peak());
    }
    return sum;
  }
  /// The pools' own figures of all pools, those that are gone included; `failures` are requests of the device's. Peaks
  /// are the device's, but for that of what is mapped, which is the pools', added up.
  [[nodiscard]] pool_stats stats() {
    pool_stats sum;
    each_pool([&](torch_pool_id, torch_pool& p) { merge(sum, p.stats()); });
    std::scoped_lock const lock(routes_);
    merge(sum, departed_stats_);
    sum.failures = failures_.load(std::memory_order_relaxed);
    auto const is = [](gauge& g, auto peak) { g.peak = std::max(g.now, static_cast<bytes>(peak)); };
    is(sum.reserved, limit_.peak());
    if (counted_together_) {
      is(sum.live, together_.placed.peak());
      is(sum.requested, together_.requested.peak());
    }
    return sum;
  }
  void reset_peaks() noexcept {
    each_pool([](torch_pool_id, torch_pool& p) { p.reset_peaks(); });
    together_.reset_peaks();
    limit_.reset_peak();
  }
  void reset_totals() noexcept {
    each_pool([](torch_pool_id, torch_pool& p) { p.reset_totals(); });
    std::scoped_lock const lock(routes_);
    departed_ = {};
  }

  // ---- the device's memory

  /// Gives back what is free, in the main pool or a private one that is not pinned, and pools that nobody uses.
  void trim(torch_pool_id id = {}) noexcept {
    reap(doomed::lingering);
    if (id == torch_pool_id{}) {
      static_cast<void>(main_->trim(!paused()));
      return;
    }
    private_pool* p = nullptr;
    {
      std::scoped_lock const lock(routes_);
      p = find(id);
      if (p == nullptr) return;
      ++p->contexts;
    }
    static_cast<void>(p->pool->trim(!paused()));
    leave(*p);
  }
  /// Another GPU is to reach this one's memory. Errors: the backend's.
  [[nodiscard]] result<void> grant(int peer) {
    std::scoped_lock const lock(routes_);
    result<void> done = main_->grant(peer);
    for (auto const& p : privates_) {
      if (done) done = p->pool->grant(peer);
    }
    if (done && std::ranges::find(peers_, peer) == peers_.end()) peers_.push_back(peer);
    return done;
  }
  /// Asked when the pools are out of memory, before the request fails; returns whether memory was freed.
  void on_out_of_memory(std::function<bool(memory_account const&)> callback) {
    std::scoped_lock const lock(routes_);
    helpers_.push_back(std::move(callback));
  }
  /// Is told of everything that the device's pools do from now on, and lives as long as the process; null: nobody is.
  void listen(torch_audience::kind k, torch_listener* l) noexcept {
    std::scoped_lock const lock(routes_);
    listener_.store(audience_.seat(k, l) ? &audience_ : nullptr, std::memory_order_release);
  }

  /// Where the memory of all pools is.
  [[nodiscard]] memory_account account() {
    memory_account sum{.limit = limit_.limit()};
    each_pool([&](torch_pool_id, torch_pool& p) {
      memory_account const a = p.account();
      sum.reserved += a.reserved;
      sum.live += a.live;
      sum.free += a.free;
      sum.largest_contiguous = std::max(sum.largest_contiguous, a.largest_contiguous);
    });
    return sum;
  }

  [[nodiscard]] bool paused() const noexcept { return pauses_->load() > 0; }

 private:
  struct private_pool {
    torch_pool_id id;
    torch_registry::number number = torch_registry::none;
    std::unique_ptr<torch_pool> pool;
    int uses = 0;
    int contexts = 0;            ///< open ones, and requests under way: it stays for them too
    bool captured = false;       ///< and so pinned
    bool serves_others = false;  ///< when the main pool is out of memory
    bool whole = false;          ///< blocks on chunks of their own
    bool lingers = false;        ///< without uses: stays until memory is asked for
  };
  struct context {
    private_pool* pool;
    torch_pool_id id;
    filter accepts;
    bool pausing;  ///< as long as it may be a capture
  };
  enum class doomed : std::uint8_t { at_once, lingering };  ///< those too

  /// Private pools are many and mostly small: fine chunks, and few addresses each.
  static constexpr adaptive_options private_chunks{.smallest = 4_MiB};
  static constexpr bytes private_addresses = 16_GiB;

  [[nodiscard]] static bytes limit_of(torch_settings const& s, bytes total) noexcept {
    if (s.limit_fraction) return static_cast<bytes>(*s.limit_fraction * static_cast<double>(total));
    return std::min(s.limit.value_or(total), total);
  }

  [[nodiscard]] std::unique_ptr<torch_pool> make(torch_registry::number& number, bytes addresses,
                                                 adaptive_options chunks, torch_runtime::maker const& maker) {
    number = registry_->reserve(*this);
    if (number == torch_registry::none) throw std::bad_alloc();
    torch_making with{.number = number,
                      .options = {.home_addresses = addresses, .shared = &limit_},
                      .chunks = chunks,
                      .pauses = pauses_,
                      .listener = &listener_,
                      .plans = &number == &main_number_,
                      .known = {}};
    if (settings_.small) with.options.small_limit = *settings_.small;
    if (settings_.chunk) with.chunks = adaptive_options::fixed(*settings_.chunk);
    try {
      std::unique_ptr<torch_pool> made = maker(with);
      for (int const peer : peers_) static_cast<void>(made->grant(peer));
      registry_->enter(number, *made);
      return made;
    } catch (...) {
      registry_->forget(number);
      throw;
    }
  }

  [[nodiscard]] private_pool* find(torch_pool_id id) const noexcept {
    auto const p = std::ranges::find_if(privates_, [&](auto const& q) { return q->id == id; });
    return p != privates_.end() ? p->get() : nullptr;
  }

  private_pool& use_pool_locked(torch_pool_id id, torch_runtime::maker const& maker = {}) {
    if (private_pool* const known = find(id)) {
      if (known->uses++ == 0) doomed_.fetch_sub(1);
      return *known;
    }
    reap_locked(doomed::lingering);
    auto fresh = std::make_unique<private_pool>();
    fresh->id = id;
    fresh->uses = 1;
    privates_.reserve(privates_.size() + 1);
    fresh->pool = make(fresh->number, private_addresses, private_chunks, maker ? maker : runtime_.make);
    fresh->pool->on_out_of_memory([this](memory_account const&) {
      reap(doomed::lingering);
      result<bytes> const freed = main_->trim(!paused());
      return freed && *freed > 0;
    });
    if (!std::exchange(counted_together_, true)) main_->count_in(together_, true);
    fresh->pool->count_in(together_, false);
    privates_.push_back(std::move(fresh));
    return *privates_.back();
  }

  /// What can't leave needs no chunks of its own for that.
  [[nodiscard]] static placement unless_movable(placement where) noexcept {
    return where == placement::movable ? placement::anywhere : where;
  }
  [[nodiscard]] result<address> counted(result<address> block) noexcept {
    if (!block && block.error().code == errc::out_of_memory) [[unlikely]]
      failures_.fetch_add(1, std::memory_order_relaxed);
    return block;
  }

  [[gnu::cold]] result<address> allocate_routed(request r, swap::tag group) {
    private_pool* chosen = nullptr;
    {
      std::scoped_lock const lock(routes_);
      for (auto c = contexts_.rbegin(); c != contexts_.rend() && chosen == nullptr; ++c) {
        if (!c->accepts(r.on)) continue;
        chosen = c->pool;
        r.where = chosen->whole ? placement::own_chunks : unless_movable(r.where);
        if (runtime_.captured(r.on)) {
          if (!std::exchange(chosen->captured, true)) chosen->pool->pin();
        } else if (std::exchange(c->pausing, false)) {
          pauses_->fetch_sub(1);
        }
      }
      if (chosen != nullptr) ++chosen->contexts;
    }
    if (chosen != nullptr) return allocate_from(*chosen, r);
    torch_swapper* const swapper = swapper_.load(std::memory_order_acquire);
    if (swapper != nullptr) return allocate_swappable(*swapper, r, group);
    r.where = unless_movable(r.where);
    return allocate_main(r);
  }

  [[nodiscard]] result<address> allocate_main(request const& r) noexcept {
    result<address> block = main_->allocate(r);
    if (block) [[likely]]
      return served(*block);
    return allocate_elsewhere(r, block.error());
  }

  [[nodiscard, gnu::cold]] result<address> allocate_swappable(torch_swapper& swapper, request const& r,
                                                              swap::tag group) {
    bool const asked = r.where == placement::movable;
    if (!asked && !(r.where == placement::anywhere && swapper.paging())) return allocate_main(r);
    result<address> block = swapper.allocate(r.size, r.on, group, asked);
    if (!block && block.error().code == errc::out_of_memory && ask_for_help(block.error().account)) {
      block = swapper.allocate(r.size, r.on, group, asked);
    }
    return block ? served(*block) : allocate_elsewhere(r, block.error());
  }

  [[nodiscard]] address served(address block) noexcept {
    if (torch_listener* const l = listener_.load(std::memory_order_acquire)) [[unlikely]]
      l->served(*this);
    return block;
  }

  /// From the private pools that are there for that.
  [[gnu::cold]] result<address> allocate_elsewhere(request const& r, error const& e) noexcept {
    if (e.code != errc::out_of_memory) return failure(e);
    error told = e;
    told.account.limit = limit_.limit();
    for (std::size_t i = 0;; ++i) {
      private_pool* spare = nullptr;
      {
        std::scoped_lock const lock(routes_);
        while (i < privates_.size() && (!privates_[i]->serves_others || privates_[i]->uses == 0)) ++i;
        if (i >= privates_.size()) return failure(told);
        spare = privates_[i].get();
        ++spare->contexts;
      }
      if (result<address> block = allocate_from(*spare, r)) return block;
    }
  }

  /// The request was counted as under way, so that the pool stays.
  [[nodiscard]] result<address> allocate_from(private_pool& p, request const& r) noexcept {
    result<address> block = p.pool->allocate(r);
    leave(p);
    if (block) return served(*block);
    error told = block.error();
    told.account.limit = limit_.limit();
    return failure(told);
  }

  /// What was under way with the pool is over.
  void leave(private_pool& p) noexcept {
    {
      std::scoped_lock const lock(routes_);
      --p.contexts;
    }
    if (doomed_.load() > 0) reap();
  }

  /// The main pool is out of memory. Where a swapper has asked it, nobody may free blocks now.
  [[nodiscard]] bool relieve(memory_account const& account) {
    bool const freed = reap(doomed::lingering);
    return (!torch_swapper::busy() && ask_for_help(account)) || freed;
  }
  /// Whether anybody has freed memory.
  [[nodiscard]] bool ask_for_help(memory_account const& account) {
    std::vector<std::function<bool(memory_account const&)>> asked;
    {
      std::scoped_lock const lock(routes_);
      asked = helpers_;
    }
    bool freed = false;
    for (auto const& helper : asked) freed = helper(account) || freed;
    return freed;
  }

  /// Destroys the pools that nobody uses and that hold no live block. Whether there were any. No capture can begin
  /// meanwhile: a pool's destructor waits for the device.
  bool reap(doomed which = doomed::at_once) noexcept {
    std::scoped_lock const lock(routes_);
    return reap_locked(which);
  }
  bool reap_locked(doomed which) noexcept {
    if (doomed_.load() == 0 || paused()) return false;
    bool any = false;
    for (auto i = privates_.begin(); i != privates_.end();) {
      private_pool& p = **i;
      pool_stats const s = p.pool->stats();
      bool const stays = p.lingers && which == doomed::at_once;
      if (p.uses > 0 || p.contexts > 0 || s.allocations != s.deallocations || stays) {
        ++i;
        continue;
      }
      registry_->leave(p.number);
      torch_lines last = p.pool->lines();
      last.leave();
      departed_.merge(last);
      pool_stats done = p.pool->stats();
      gmlake::leave(done);
      merge(departed_stats_, done);
      if (torch_listener* const l = listener_.load()) {
        try {
          for (chunk_snapshot const& c : p.pool->snapshot().chunks) l->released(c.home, c.size);
        } catch (std::bad_alloc const&) {
          // Then what is reserved reads too high in the recording.
        }
      }
      p.pool.reset();
      registry_->forget(p.number);
      i = privates_.erase(i);
      doomed_.fetch_sub(1);
      any = true;
    }
    return any;
  }

  int ordinal_;
  torch_settings settings_;
  torch_runtime runtime_;
  torch_registry* registry_;
  shared_limit limit_;
  std::shared_ptr<std::atomic<int>> pauses_;
  torch_audience audience_;
  std::atomic<torch_listener*> listener_{nullptr};  ///< the audience, if there is any
  std::atomic<int> contexts_open_{0};
  std::atomic<int> doomed_{0};  ///< private pools that nobody uses
  mutable std::mutex routes_;
  torch_together together_;
  std::vector<context> contexts_;
  std::vector<std::unique_ptr<private_pool>> privates_;
  torch_lines departed_;                    ///< what the pools that are gone had given out and taken back
  pool_stats departed_stats_;               ///< and done
  bool counted_together_ = false;           ///< there has been a private pool
  std::atomic<std::uint64_t> failures_{0};  ///< requests that ended out of memory
  std::vector<int> peers_;
  std::vector<std::function<bool(memory_account const&)>> helpers_;
  torch_registry::number main_number_ = torch_registry::none;
  std::unique_ptr<torch_pool> main_;
  std::mutex swapping_;  ///< while the swapper is made
  std::unique_ptr<torch_swapper> owned_swapper_;
  std::atomic<torch_swapper*> swapper_{nullptr};
};

}  // namespace gmlake
