#pragma once
/// Swapping on one device: the main pool's blocks, a pool of host memory and a file below it, a worker that ends moves,
/// and a pager above.

#include <algorithm>
#include <atomic>
#include <concepts>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/adapter/torch_pool.hpp"
#include "gmlake/adapter/torch_settings.hpp"
#include "gmlake/adapter/torch_swapper.hpp"
#include "gmlake/pool/shared_limit.hpp"
#include "gmlake/swap/calibrate.hpp"
#include "gmlake/swap/pager.hpp"
#include "gmlake/swap/pin_ahead.hpp"
#include "gmlake/swap/swap_file.hpp"
#include "gmlake/swap/swap_worker.hpp"
#include "gmlake/swap/swapping_pool.hpp"

namespace gmlake {

/// A device's main pool, as a swapping pool takes it. Its limit is the device's.
class torch_movable {
 public:
  torch_movable(torch_pool& pool, shared_limit& limit) noexcept : pool_(&pool), limit_(&limit) {}

  [[nodiscard]] result<address> allocate(bytes n, stream on) noexcept { return allocate(request{.size = n, .on = on}); }
  [[nodiscard]] result<address> allocate(request const& r) noexcept {
    busy const now;
    return pool_->allocate(r);
  }
  [[nodiscard]] result<void> deallocate(address at) noexcept { return pool_->deallocate(at); }
  [[nodiscard]] result<void> deallocate(address at, stream after) noexcept { return pool_->deallocate(at, after); }
  [[nodiscard]] result<void> record_stream(address at, stream on) noexcept { return pool_->record_stream(at, on); }
  [[nodiscard]] result<void> vacate(address at, vacating way) noexcept { return pool_->vacate(at, way); }
  [[nodiscard]] result<void> vacate_behind(address at, stream after) noexcept {
    return pool_->vacate_behind(at, after);
  }
  [[nodiscard]] result<void> foresee(address at, foresight const& f) noexcept { return pool_->foresee(at, f); }
  [[nodiscard]] result<std::uint64_t> awaited(address at, stream by) noexcept { return pool_->awaited(at, by); }
  [[nodiscard]] result<void> refill(address at, stream on, stream by, bool insist) noexcept {
    busy const now;
    return pool_->refill(at, on, by, insist);
  }
  [[nodiscard]] result<void> show(address at, std::span<lent_memory const> pieces) noexcept {
    return pool_->show(at, pieces);
  }
  [[nodiscard]] result<void> hide(address at) noexcept { return pool_->hide(at); }
  [[nodiscard]] result<void> retire_stream(stream gone) noexcept { return pool_->retire_stream(gone); }
  [[nodiscard]] result<bytes> trim() noexcept { return pool_->trim(true); }
  [[nodiscard]] result<bytes> trim_passed() noexcept { return pool_->trim(false); }
  [[nodiscard]] pool_stats stats() const noexcept { return pool_->stats(); }
  /// What all of the device's pools hold counts as reserved.
  [[nodiscard]] memory_account account() const noexcept {
    memory_account a = pool_->account();
    a.limit = limit_->limit();
    a.reserved = std::max(a.reserved, limit_->held());
    return a;
  }
  [[nodiscard]] bytes movable_chunk() noexcept { return pool_->movable_chunk(); }
  void set_movable_chunk(bytes n) noexcept { pool_->set_movable_chunk(n); }
  void set_limit(bytes n) noexcept { limit_->set(n); }
  void set_planning(bool on) noexcept { pool_->set_planning(on); }

 private:
  /// What the pool asks for help is not to free blocks.
  struct busy {
    busy() noexcept : before(std::exchange(torch_swapper::busy(), true)) {}
    busy(busy const&) = delete;
    busy& operator=(busy const&) = delete;
    ~busy() { torch_swapper::busy() = before; }
    bool before;
  };

  torch_pool* pool_;
  shared_limit* limit_;
};

/// What copies between a device and the host.
template <StreamPolicy Streams, swap::Copier Copies>
struct torch_copying {
  Streams streams;
  Copies copies;
};

template <Pool Host, StreamPolicy Streams, swap::Copier Copies>
class torch_swapping final : public torch_swapper {
 public:
  using copying = torch_copying<Streams, Copies>;

  /// Those that a pager makes swappable by itself: each has the beginning of a chunk, and mappings of its own.
  static constexpr bytes smallest_paged = 8_MiB;
  /// Those whose comings and goings schedules know.
  static constexpr bytes smallest_logged = 1_MiB;

  /// Measures the channel; where that fails, an H200's is taken for it. `chunks_stay`: as large as the pool makes them.
  /// Throws `std::system_error` where no thread can be had, and `std::bad_alloc`.
  torch_swapping(torch_movable main, std::unique_ptr<Host> host, copying moving, copying measuring,
                 swap::swap_file below, bool in_place, bool leave_mapped, bool chunks_stay = false)
      : main_(main),
        host_(std::move(host)),
        pool_(main_, *host_, std::move(moving.streams), std::move(moving.copies), std::move(below),
              {.in_place = in_place, .smallest = smallest}) {
    swap::pager_options options{
        .smallest = smallest_paged,
        .smallest_logged = smallest_logged,
        .leave_mapped = leave_mapped,
        .in_background = true,
        .clock = []() noexcept -> swap::time { return std::chrono::steady_clock::now().time_since_epoch(); }};
    auto const measured = swap::calibrate(main_, *host_, measuring.streams, measuring.copies);
    if (measured) options.channel = *measured;
    if (chunks_stay) options.larger_chunks = -1;
    link_ = options.channel;
    // These streams end with this call, and the pool is not to ask them for anything any more.
    for (stream const s : {measuring.copies.stream_in(), measuring.copies.stream_out()}) (void)main_.retire_stream(s);
    pager_.emplace(pool_, options);
    (void)pager_->stop();
    worker_.emplace(pool_);
  }

  result<address> allocate(bytes n, stream on, swap::tag group, bool asked) noexcept override {
    return pager_->allocate(n, on, group, job_of(on).id, asked ? placement::movable : placement::anywhere);
  }
  result<void> deallocate(address block) noexcept override { return pager_->deallocate(block); }
  result<void> record_stream(address block, stream on) noexcept override { return pager_->record_stream(block, on); }

  result<void> swap_out(address block, stream last) noexcept override {
    return moved([&]() noexcept { return pager_->swap_out(block, last); });
  }
  result<void> swap_in(address block, stream on) noexcept override {
    return moved([&]() noexcept { return pager_->swap_in(block, on); });
  }
  result<void> prefetch(address block) noexcept override {
    return moved([&]() noexcept { return pager_->prefetch(block); });
  }
  bool knows(address block) const noexcept override { return pool_.residency_of(block).has_value(); }
  result<void> pin(address block, stream on) noexcept override { return swappable_only(pager_->pin(block, on)); }
  result<void> unpin(address block) noexcept override { return swappable_only(pager_->unpin(block)); }
  result<void> set_read_only(address block, bool read_only) noexcept override {
    return swappable_only(pager_->set_read_only(block, read_only));
  }
  swap::pause_outcome pause(swap::tag group, bool keeping) noexcept override { return pager_->pause(group, keeping); }
  swap::pause_outcome resume(swap::tag group) noexcept override { return pager_->resume(group); }
  result<void> pin_ahead(bytes n) noexcept override { return swap::pin_ahead(*host_, n); }

  bool start(bytes limit) noexcept override {
    main_.set_planning(false);  // what is planned for is a program whose blocks stay
    pager_->go_on();
    program_timed_.store(true, std::memory_order_relaxed);
    paging_.store(true, std::memory_order_release);
    return pager_->set_limit(limit);
  }
  swap::pause_outcome stop(bytes limit) noexcept override {
    paging_.store(false, std::memory_order_release);
    (void)pager_->set_limit(limit);
    swap::pause_outcome const back = pager_->stop();
    main_.set_planning(true);
    return back;
  }
  bool paging() const noexcept override { return paging_.load(std::memory_order_acquire); }
  result<void> access(std::span<swap::block_use const> uses, stream on) noexcept override {
    return pager_->access(uses, on, job_of(on).id);
  }
  std::int64_t end_operation(stream on) noexcept override {
    swap::job_id const job = job_of(on).id;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(job) << number_bits | pager_->end_operation(job));
  }
  void took(std::int64_t operation, swap::measured_time time) noexcept override {
    if (operation < 0 || !time.known()) return;
    auto const number = static_cast<std::uint64_t>(operation);
    pager_->took(number & ((std::uint64_t{1} << number_bits) - 1), static_cast<std::uint64_t>(time.is.count()),
                 static_cast<swap::job_id>(number >> number_bits), time.guessed);
  }
  void begin_step(stream on, bool timed) noexcept override {
    job_stream const job = job_of(on);
    {
      std::scoped_lock const lock(jobs_mutex_);
      if (auto const found = find(job.on); found != jobs_.end()) found->timed = timed;
      else program_timed_.store(timed, std::memory_order_relaxed);
    }
    pager_->begin_step(job.id);
  }
  bool timed(stream on) noexcept override { return job_of(on).timed; }
  result<void> begin_job(stream on, std::uint32_t priority) noexcept override {
    std::scoped_lock const lock(jobs_mutex_);
    if (find(on) != jobs_.end()) return failure(errc::invalid_argument, "begin_job: the stream is a job's already");
    try {
      jobs_.reserve(jobs_.size() + 1);
      jobs_.push_back({on, pager_->add_job(priority)});
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "begin_job");
    }
    any_jobs_.store(true, std::memory_order_release);
    return {};
  }
  result<void> end_job(stream on) noexcept override {
    std::scoped_lock const lock(jobs_mutex_);
    auto const found = find(on);
    if (found == jobs_.end()) return failure(errc::invalid_argument, "end_job: the stream is no job's");
    pager_->end_job(found->id);
    jobs_.erase(found);
    any_jobs_.store(!jobs_.empty(), std::memory_order_release);
    return {};
  }

  torch_swap_figures figures() const noexcept override {
    return {.swaps = pool_.swaps(),
            .pages = pager_->stats(),
            .expected = pager_->expected(),
            .link = link_,
            .link_now = pager_->link()};
  }

 private:
  using pool_type = swap::swapping_pool<torch_movable, Host, Streams, Copies>;
  struct job_stream {
    stream on{};
    swap::job_id id{};
    bool timed = true;  ///< its step's operations
  };
  /// Of an operation's number, those below its job's.
  static constexpr unsigned number_bits = 40;

  [[nodiscard]] auto find(stream on) noexcept { return std::ranges::find(jobs_, on, &job_stream::on); }
  /// Whose work it is that is queued on `on` by this thread.
  [[nodiscard]] job_stream job_of(stream on) noexcept {
    static thread_local stream last{};
    if (any_jobs_.load(std::memory_order_acquire)) {
      std::shared_lock const lock(jobs_mutex_);
      auto found = find(on);
      if (found != jobs_.end()) last = on;
      else found = find(last);
      if (found != jobs_.end()) return *found;
    }
    return {on, {}, program_timed_.load(std::memory_order_relaxed)};
  }

  /// What is not swappable stays where it is anyway.
  [[nodiscard]] static result<void> swappable_only(result<void> done) noexcept {
    return !done && done.error().code == errc::unknown_pointer ? result<void>{} : done;
  }
  template <std::invocable Move>
  [[nodiscard]] result<void> moved(Move move) noexcept {
    result<void> done = move();
    worker_->wake();
    return done;
  }

  torch_movable main_;
  std::unique_ptr<Host> host_;
  pool_type pool_;
  swap::channel link_;
  std::optional<swap::pager<pool_type>> pager_;
  std::optional<swap::swap_worker> worker_;
  std::atomic<bool> paging_{false};
  std::atomic<bool> program_timed_{true};  ///< operations of its steps, as of a job's
  std::shared_mutex jobs_mutex_;           ///< taken before the pager's lock
  std::vector<job_stream> jobs_;
  std::atomic<bool> any_jobs_{false};
};

}  // namespace gmlake
