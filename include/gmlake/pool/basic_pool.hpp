#pragma once
/// The pool: one lock around an engine, the callbacks that help it out of memory, and ways to look inside.
///
///     lake_pool<simulated> pool(simulated{});
///     result<address> block = pool.allocate(1_GiB);
///
/// Thread-safe with the default mutex; callbacks are called unlocked. Whatever the pool holds goes back when it is
/// destroyed, live blocks included, after the device has finished; that is quiet also when the driver has shut down.

#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/observe/snapshot.hpp"
#include "gmlake/plan/plan.hpp"
#include "gmlake/pool/engine.hpp"
#include "gmlake/pool/inspection.hpp"
#include "gmlake/pool/pool_concept.hpp"

namespace gmlake {

/// Asked when memory has run out, with the account at that time. It may deallocate, trim and allocate; it returns
/// whether another try is worth while.
using out_of_memory_callback = std::function<bool(memory_account const&)>;

template <PoolConfig Config>
class basic_pool {
 public:
  using config = Config;
  using backend_type = typename Config::backend;
  using streams_type = typename Config::streams;
  using policies = pool_policies<Config>;

  explicit basic_pool(backend_type backend, pool_options const& options = {}, policies chosen = {}) noexcept
    requires std::default_initializable<streams_type>
      : engine_(std::move(backend), streams_type{}, options, std::move(chosen)) {}
  basic_pool(backend_type backend, streams_type streams, pool_options const& options = {},
             policies chosen = {}) noexcept
      : engine_(std::move(backend), std::move(streams), options, std::move(chosen)) {}
  basic_pool(basic_pool const&) = delete;
  basic_pool& operator=(basic_pool const&) = delete;

  /// n bytes for work queued on `on`, aligned to 512. Size 0 gives a block like any other. Logarithmic in the free
  /// blocks where one fits. Errors: `out_of_memory` with the pool's account, after the last resorts (see `engine.hpp`)
  /// and the callbacks; `invalid_argument`; the driver's own. On any error nothing has changed hands.
  [[nodiscard]] result<address> allocate(bytes n, stream on = {}) noexcept {
    return allocate(request{.size = n, .on = on});
  }

  [[nodiscard]] result<address> allocate(request const& r) noexcept {
    lock_type lock(mutex_);
    result<address> block = engine_.allocate(r);
    if (block || !r.insist) [[likely]]
      return block;
    return at_last<address>(
        lock, r.size, block.error(), [&]() noexcept { return engine_.allocate(r); },
        [&]() noexcept { return engine_.last_resort(r); });
  }

  /// A block at an address that this pool gave out before and has back, to restore an arrangement of blocks. The caller
  /// answers for the order of the memory's uses. Errors: `out_of_memory` where not all of it is free or no such block
  /// was there. Linear in what the pool holds.
  [[nodiscard]] result<address> allocate_at(address at, request const& r) noexcept {
    lock_type const lock(mutex_);
    return engine_.allocate_at(at, r);
  }

  /// Takes the memory from under a movable block, which keeps its address and is as good as unmapped; the memory serves
  /// others. Its contents are gone: whoever wants them has copied them. The caller vouches that all work that uses the
  /// block has finished. A block without memory is unmapped, if it is to be. Errors: `unknown_pointer`, `double_free`;
  /// `invalid_argument` where the block is not movable or the pool is pinned; the driver's own. On any error nothing
  /// has changed.
  [[nodiscard]] result<void> vacate(address block, vacating how = vacating::unmap) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.vacate(block, how);
  }
  /// The same at once, behind the work queued on `after` so far, which may be what saves the contents: the memory
  /// serves others that wait for that on the device. The mapping stays, as with `vacating::leave`. The caller vouches
  /// that all other work that uses the block comes before. No effect on a block without memory. Errors as for `vacate`,
  /// and the stream policy's.
  [[nodiscard]] result<void> vacate_behind(address block, stream after) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.vacate_behind(block, after);
  }

  /// What is known of a movable block from now on, in the place of what its request said. Errors: `unknown_pointer`,
  /// `double_free`, `invalid_argument` where the block is not movable.
  [[nodiscard]] result<void> foresee(address block, foresight const& f) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.foresee(block, f);
  }

  /// Compares vacated blocks by when what `by` does next may have the memory that is mapped for them, in the order of
  /// frees: less is sooner; 0 at once; the maximum: only once the host knows all use of the block to be over. What
  /// others have, and is replaced, does not count. Errors as for `foresee`.
  [[nodiscard]] result<std::uint64_t> awaited(address block, stream by) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.awaited(block, by);
  }

  /// Puts memory under a vacated block again, with undefined contents, as if it had just been allocated for work queued
  /// on `on`; without the last resorts unless it is to `insist`. No effect on a block that has memory. Errors as for
  /// `vacate` and `allocate`; then it has none still.
  [[nodiscard]] result<void> refill(address block, stream on = {}, bool insist = true) noexcept {
    return refill(block, on, on, insist);
  }
  /// The same where what `by` does next uses it first, as a copy does that brings the contents: that waits for others'
  /// use of the memory, and work on `on` is to wait for it.
  [[nodiscard]] result<void> refill(address block, stream on, stream by, bool insist) noexcept {
    lock_type lock(mutex_);
    result<void> done = engine_.refill(block, on, by, false);
    if (done || !insist) return done;
    return at_last<void>(
        lock, engine_.size_at(block), done.error(), [&]() noexcept { return engine_.refill(block, on, by, false); },
        [&]() noexcept { return engine_.refill(block, on, by, true); });
  }

  /// Maps memory of the caller's at a vacated block's address, whole handles from its beginning on, until `hide` or
  /// until it is freed: what touches the block works on that. It may be longer than the block. The caller keeps it
  /// alive and mappable by this pool's backend, and vouches before hiding or freeing that no work uses the block any
  /// more. Errors: `unknown_pointer`, `double_free`; `invalid_argument` where the block has memory; `out_of_addresses`
  /// where its addresses have no room for all (256 MiB and more beyond the block); the driver's. Then nothing has
  /// changed.
  [[nodiscard]] result<void> show(address block, std::span<lent_memory const> pieces) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.show(block, pieces);
  }
  /// Takes it away again. No effect where none is shown. Errors: `unknown_pointer`, `double_free`, the driver's.
  [[nodiscard]] result<void> hide(address block) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.hide(block);
  }

  /// Takes a block back, to be used again after the work queued on the stream that it was allocated for, and after
  /// that of all streams recorded. Errors: `unknown_pointer`, `double_free`.
  [[nodiscard]] result<void> deallocate(address block) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.deallocate(block, nullptr);
  }
  /// The same, to be used again after the work queued on `after`.
  [[nodiscard]] result<void> deallocate(address block, stream after) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.deallocate(block, &after);
  }

  /// Work on `on` uses the block too, and is waited for as well when it is deallocated.
  /// Errors: `unknown_pointer`, `double_free`, `out_of_host_memory`.
  [[nodiscard]] result<void> record_stream(address block, stream on) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.record_stream(block, on);
  }

  /// To be called before a stream that the pool has seen is destroyed: nothing can be recorded on it afterwards.
  [[nodiscard]] result<void> retire_stream(stream gone) noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.retire(gone);
  }

  /// Waits for the streams on the host, unmaps all idle stitches and releases all chunks that are wholly free. Returns
  /// the bytes released.
  [[nodiscard]] result<bytes> trim() noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.trim();
  }

  /// The same without waiting: what the device may still use stays.
  [[nodiscard]] result<bytes> trim_passed() noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.trim_passed();
  }

  /// Changes whom the backend gives access to, by `change(backend)`, which returns a `result<void>`, and sets access to
  /// everything mapped anew. Error: the backend's; then some may still lack it.
  template <class F>
    requires std::is_nothrow_invocable_r_v<result<void>, F, backend_type&>
  [[nodiscard]] result<void> change_access(F&& change) noexcept {
    std::scoped_lock const lock(mutex_);
    if (result<void> done = std::forward<F>(change)(backend()); !done) return done;
    return engine_.renew_access();
  }

  /// Calls `f(block const&, stream)` for every live block, with whom it was handed out to, under the lock, in no
  /// particular order.
  template <std::invocable<block const&, stream> F>
  void each_live(F&& f) const {
    std::scoped_lock const lock(mutex_);
    engine_.live().for_each([&](block const& b) { f(b, engine_.state().space.time().name(b.on)); });
    if constexpr (Config::planning::enabled) engine_.plan().each_live(f);
  }
  /// The same for the live block at `at`. Whether there is one.
  template <std::invocable<block const&, stream> F>
  bool look_at(address at, F&& f) const {
    std::scoped_lock const lock(mutex_);
    block const* const b = engine_.live().find(at);
    if (b != nullptr) f(*b, engine_.state().space.time().name(b->on));
    if constexpr (Config::planning::enabled) {
      if (b == nullptr) return engine_.plan().look_at(at, f);
    }
    return b != nullptr;
  }

  /// From now on nothing is unmapped or released before the pool is destroyed (see `pool_options::pinned`).
  void pin() noexcept {
    std::scoped_lock const lock(mutex_);
    engine_.state().options.pinned = true;
  }

  /// What is held beyond a new limit stays until it is free and trimmed.
  void set_limit(bytes limit) noexcept {
    std::scoped_lock const lock(mutex_);
    engine_.state().options.limit = limit;
  }

  /// New chunks for movable blocks have n bytes, rounded up to the granule; 0: as the growth policy says.
  void set_movable_chunk(bytes n) noexcept {
    std::scoped_lock const lock(mutex_);
    engine_.state().options.movable_chunk = n;
  }

  /// Callbacks are asked in the order of their entry, all of them. May throw `std::bad_alloc`.
  void on_out_of_memory(out_of_memory_callback callback) {
    std::scoped_lock const lock(mutex_);
    callbacks_.push_back(std::move(callback));
  }

  /// Constant time. Requested, live and their peaks only with an observer that counts.
  [[nodiscard]] pool_stats stats() const noexcept {
    std::scoped_lock const lock(mutex_);
    return stats_of(engine_.state());
  }
  /// Whether it plans from now on. False gives up the plan that is followed, and learns nothing, until it is true
  /// again.
  void set_planning(bool on) noexcept
    requires(Config::planning::enabled)
  {
    std::scoped_lock const lock(mutex_);
    engine_.set_planning(on);
  }
  /// A step of the program, which may repeat, begins with the next request. Steps are found without that too, but less
  /// surely; once told, the pool relies on it.
  void mark_step() noexcept
    requires(Config::planning::enabled)
  {
    std::scoped_lock const lock(mutex_);
    engine_.plan().mark_step();
  }
  /// Something was done that a program does once a step, such as an optimizer's update. It need not be where the step
  /// ends; loops within a step are told from steps by it.
  void note_update() noexcept
    requires(Config::planning::enabled)
  {
    std::scoped_lock const lock(mutex_);
    engine_.plan().note_update();
  }
  /// Updates will be noted as soon as there are any: until then what repeats is planned only when it has come often.
  void expect_updates() noexcept
    requires(Config::planning::enabled)
  {
    std::scoped_lock const lock(mutex_);
    engine_.plan().expect_updates();
  }
  /// Plans made before, of this program: the prologue first, if there is one. To be called before the first request.
  /// A plan that doesn't fit costs time and never data. Errors: `invalid_argument` where a plan breaks a rule
  /// (`plan_rules.hpp`) or it is too late: then none is taken; `out_of_host_memory`.
  [[nodiscard]] result<void> adopt(std::vector<plan::plan> plans) noexcept
    requires(Config::planning::enabled)
  {
    std::scoped_lock const lock(mutex_);
    return engine_.plan().adopt(std::move(plans));
  }
  /// The plans that the pool knows now, and one of what the program did before its steps, to be kept for another run.
  /// Throws `std::bad_alloc`.
  [[nodiscard]] std::vector<plan::plan> plans() const
    requires(Config::planning::enabled)
  {
    std::vector<plan::plan> known;
    {
      std::scoped_lock const lock(mutex_);
      known = engine_.plan().plans();
    }
    return planner_of<Config>::placed_all(std::move(known));
  }
  /// What plans have done so far.
  [[nodiscard]] auto plans_seen() const noexcept
    requires(Config::planning::enabled)
  {
    std::scoped_lock const lock(mutex_);
    return engine_.plan().seen();
  }
  /// Where the memory is now.
  [[nodiscard]] memory_account account() const noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.account(0);
  }
  /// The size of the chunks that movable blocks get under the present limit, in bytes: each takes whole ones.
  [[nodiscard]] bytes movable_chunk() noexcept {
    std::scoped_lock const lock(mutex_);
    return engine_.movable_chunk();
  }
  /// Bytes of chunks that are wholly free, whoever may still use them. Linear in the chunks.
  [[nodiscard]] bytes free_chunks() const noexcept {
    std::scoped_lock const lock(mutex_);
    return free_chunks_of(engine_.state());
  }
  /// Linear in what the pool holds. Throws `std::bad_alloc`.
  [[nodiscard]] pool_snapshot snapshot() const {
    std::scoped_lock const lock(mutex_);
    pool_snapshot shot = snapshot_of(engine_.state());
    if constexpr (Config::planning::enabled) engine_.plan().add_to(shot);
    return shot;
  }
  /// Walks every invariant. Null, or the one that is broken: then the pool has a bug. Linear in what the pool holds.
  [[nodiscard]] char const* validate() const noexcept {
    std::scoped_lock const lock(mutex_);
    char const* fault = find_fault(engine_.state(), engine_.live());
    if constexpr (Config::planning::enabled) {
      if (fault == nullptr) fault = engine_.plan().find_fault();
    }
    return fault;
  }

  /// Calls `f(observer)` under the lock.
  template <std::invocable<typename Config::observer&> F>
  decltype(auto) observe(F&& f) {
    std::scoped_lock const lock(mutex_);
    return std::forward<F>(f)(engine_.state().observer);
  }

  /// The backend, for what it can do beside mapping. Not locked.
  [[nodiscard]] backend_type& backend() noexcept { return engine_.state().backend.wrapped(); }
  [[nodiscard]] streams_type& streams() noexcept { return engine_.state().space.time().streams(); }

 private:
  using lock_type = std::unique_lock<typename Config::mutex>;

  /// Callbacks that keep promising are not believed for ever.
  static constexpr int most_rounds = 8;

  [[nodiscard]] static bool mended_by_waiting(error const& e) noexcept {
    return e.code == errc::out_of_memory || e.code == errc::out_of_addresses;
  }

  /// After the failure `e` of `once` for n bytes: the engine's last resorts, and what the callbacks can do, who are
  /// asked unlocked.
  template <class T, std::invocable Once, std::invocable LastResort>
  [[nodiscard, gnu::cold]] result<T> at_last(lock_type& lock, bytes n, error e, Once once,
                                             LastResort last_resort) noexcept {
    for (int rounds = 0;; ++rounds) {
      if (mended_by_waiting(e)) {
        result<T> done = last_resort();
        if (done) return done;
        e = done.error();
      }
      e.account = engine_.account(n);
      if (e.code != errc::out_of_memory) return failure(e);
      if (callbacks_.empty() || rounds == most_rounds) break;
      lock.unlock();
      bool const again = ask_for_help(e.account);
      lock.lock();
      if (!again) break;
      result<T> done = once();
      if (done) return done;
      e = done.error();
    }
    engine_.state().observer.failed(e.account);
    return failure(e);
  }

  [[nodiscard]] bool ask_for_help(memory_account const& account) noexcept {
    std::vector<out_of_memory_callback> asked;
    try {
      std::scoped_lock const lock(mutex_);
      asked = callbacks_;
    } catch (std::bad_alloc const&) {
      return false;
    }
    bool again = false;
    for (out_of_memory_callback const& callback : asked) again = callback(account) || again;
    return again;
  }

  mutable typename Config::mutex mutex_;
  engine<Config> engine_;
  std::vector<out_of_memory_callback> callbacks_;
};

}  // namespace gmlake
