#pragma once
/// Programs that repeat their steps over a pager, on a GPU in emulated time: alone, or several jobs on one.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bench/support/emulated_gpu.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/swap/numbers.hpp"
#include "gmlake/swap/pager.hpp"
#include "gmlake/swap/swapping_pool.hpp"

namespace gmlake::bench {

/// A GPU with a pager, as PyTorch's, but nothing depends on the machine that this runs on. One at a time.
class emulated_machine {
  using device_pool = lake_pool<emulated_driver, emulated_streams>;
  using host_pool = lake_pool<emulated_driver>;
  using paged_pool = swap::swapping_pool<device_pool, host_pool, emulated_streams, emulated_copier>;

 public:
  explicit emulated_machine(emulated_costs const& costs)
      : gpu_(costs),
        device_(emulated_driver(gpu_), emulated_streams(gpu_)),
        host_(emulated_driver(gpu_)),
        pool_(device_, host_, emulated_streams(gpu_), emulated_copier(gpu_), {.smallest = smallest}),
        pager_(pool_, options) {
    in_use = &gpu_;
  }

  [[nodiscard]] emulated_gpu& gpu() noexcept { return gpu_; }
  [[nodiscard]] auto& pager() noexcept { return pager_; }
  /// Bytes of live blocks.
  [[nodiscard]] bytes live() const { return device_.stats().live.now; }

 private:
  static constexpr bytes smallest = 4_MiB;
  static inline emulated_gpu const* in_use = nullptr;  ///< whose clock it is
  /// It thinks the link to be as it is by default, until copies tell.
  static constexpr swap::pager_options options{.channel = emulated_costs{}.link,
                                               .smallest = 8_MiB,
                                               .smallest_logged = 1_MiB,
                                               .leave_mapped = true,
                                               .in_background = false,
                                               .look_every = swap::time::zero(),
                                               .clock = []() noexcept -> swap::time { return in_use->now(); }};

  emulated_gpu gpu_;
  device_pool device_;
  host_pool host_;
  paged_pool pool_;
  swap::pager<paged_pool> pager_;
};

/// What a program does that its trace does not tell.
struct emulated_habits {
  double jitter = 0;        ///< kernels take up to this share longer or shorter than recorded
  std::uint32_t reads = 0;  ///< of a step's operations that one's result is read, for which the host waits; 0: none
};

/// A program that takes its steps in turn, again and again, as a job on a stream of its own. What is carried is the
/// same in all of them, in order. Machine and steps outlive it.
class emulated_program {
 public:
  emulated_program(emulated_machine& on, std::span<swap::program const> steps, emulated_habits const& habits,
                   stream s = emulated_gpu::compute, swap::job_id job = {})
      : gpu_(&on.gpu()), pager_(&on.pager()), habits_(habits), stream_(s), job_(job) {
    for (swap::program const& p : steps) kinds_.emplace_back(p);
    std::size_t slots = 0;
    for (kind const& k : kinds_) slots = std::max(slots, k.of->variables.size());
    held_.resize(slots);
  }
  emulated_program(emulated_program const&) = delete;
  emulated_program& operator=(emulated_program const&) = delete;
  ~emulated_program() {
    for (address const at : held_) {
      if (at != address{}) (void)pager_->deallocate(at);
    }
  }

  /// Makes what lives from step to step, as a program does before its first step. Errors: the pager's.
  [[nodiscard]] result<void> begin() {
    for (use const& v : now().carried) {
      if (auto done = allocate(v); !done) return done;
      if (auto done = pager_->access(held_[v.slot], stream_, false, true, job_); !done) return done;
      (void)pager_->end_operation(job_);
      // Those too small to leave need none.
      if (now().of->variables[v.variable].has_copy) (void)pager_->set_read_only(held_[v.slot], true);
    }
    return {};
  }

  /// Begins a step, or runs its next operation. Errors: the pager's; the program can't go on then.
  [[nodiscard]] result<void> advance() {
    if (!std::exchange(begun_, true)) {
      pager_->begin_step(job_);
      return {};
    }
    kind const& k = now();
    if (auto done = free(k.operations[next_].deaths); !done) return done;
    if (auto done = run(k, next_); !done) return done;
    if (++next_ < k.of->operations.size()) return {};
    next_ = 0;
    begun_ = false;
    ++steps_;
    return free(k.operations.back().deaths);
  }
  /// A step, and waits for it. Errors likewise.
  [[nodiscard]] result<void> step() {
    do {
      if (auto done = advance(); !done) return done;
      gpu_->idle_until(idle_until());
    } while (begun_);
    return {};
  }

  [[nodiscard]] bool between_steps() const noexcept { return !begun_; }
  [[nodiscard]] std::uint32_t steps() const noexcept { return steps_; }
  [[nodiscard]] swap::job_id job() const noexcept { return job_; }
  /// Until then it does nothing: it waits for a step's end, or for a result that it reads.
  [[nodiscard]] swap::time idle_until() const noexcept { return between_steps() ? gpu_->end(stream_) : read_; }

 private:
  struct use {
    std::uint32_t variable;
    std::uint32_t slot;  ///< of what holds it
    bool reads = false, writes = false;
  };
  /// What comes before an operation, and what it uses.
  struct operation {
    std::vector<use> deaths, births, uses;
  };
  /// A step's; what is carried has the first slots.
  struct kind {
    swap::program const* of;
    std::vector<use> carried;
    std::vector<operation> operations;  ///< the last: the step's end

    explicit kind(swap::program const& p) : of(&p), operations(p.operations.size() + 1) {
      auto const lasts = static_cast<std::uint32_t>(std::ranges::count_if(p.variables, &swap::variable::carried));
      std::uint32_t others = lasts;
      for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
        swap::variable const& x = p.variables[v];
        use const of_v{v, x.carried ? static_cast<std::uint32_t>(carried.size()) : others++};
        if (x.carried) {
          carried.push_back(of_v);
        } else {
          operations[x.birth].births.push_back(of_v);
          operations[x.death].deaths.push_back(of_v);
        }
        for (swap::access const& a : x.accesses) {
          operations[a.operation].uses.push_back({v, of_v.slot, a.reads, a.writes});
        }
      }
    }
  };

  [[nodiscard]] kind const& now() const noexcept { return kinds_[steps_ % kinds_.size()]; }

  [[nodiscard]] result<void> allocate(use const& v) {
    auto const at = pager_->allocate(now().of->variables[v.variable].size, stream_, {}, job_);
    if (!at) return failure(at.error());
    held_[v.slot] = *at;
    return {};
  }

  [[nodiscard]] result<void> free(std::vector<use> const& all) {
    for (use const& v : all) {
      if (auto done = pager_->deallocate(held_[v.slot]); !done) return done;
      held_[v.slot] = address{};
    }
    return {};
  }

  [[nodiscard]] result<void> run(kind const& k, std::uint32_t i) {
    for (use const& v : k.operations[i].births) {
      if (auto done = allocate(v); !done) return done;
    }
    for (use const& u : k.operations[i].uses) {
      auto done = pager_->access(held_[u.slot], stream_, u.reads, u.writes, job_);
      if (!done) return done;
    }
    swap::time const kernel = jittered(k.of->operations[i]);
    gpu_->launch(kernel, stream_);
    pager_->took(pager_->end_operation(job_), static_cast<std::uint64_t>(kernel.count()), job_);
    if (i + 1 == habits_.reads) read_ = gpu_->end(stream_);
    return {};
  }

  [[nodiscard]] swap::time jittered(swap::time recorded) {
    double const factor = 1 + habits_.jitter * (2 * random_.share() - 1);
    return swap::time(std::llround(factor * static_cast<double>(recorded.count())));
  }

  emulated_gpu* gpu_;
  decltype(&std::declval<emulated_machine&>().pager()) pager_;
  emulated_habits habits_;
  stream stream_;
  swap::job_id job_;
  swap::numbers random_{};
  std::vector<kind> kinds_;    ///< in turn
  std::vector<address> held_;  ///< by slot
  swap::time read_{};          ///< when the last result that was read is there
  bool begun_ = false;         ///< a step
  std::uint32_t next_ = 0;     ///< operation
  std::uint32_t steps_ = 0;
};

}  // namespace gmlake::bench
