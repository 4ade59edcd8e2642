#pragma once
/// A sequence of steps of its own, as a pager keeps it: what its threads are running, what its step has done, and how
/// far it has come in the plan in force.

#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "gmlake/swap/known_steps.hpp"
#include "gmlake/swap/return_order.hpp"
#include "gmlake/swap/step_log.hpp"

namespace gmlake::swap {

/// The first is there from the beginning.
enum class job_id : std::uint32_t {};

/// A page that an operation holds until it ends.
struct held_page {
  page* of = nullptr;
  bool reads = false, writes = false;
  time recompute{};  ///< what making its contents again would have taken instead of bringing them; none: it can't
};

/// A thread's running operation. One that holds nothing may go to another thread.
struct running {
  std::thread::id thread;
  std::vector<held_page> holds;
  page* recomputing = nullptr;  ///< what its callback is making again

  /// Whether one more can be held.
  [[nodiscard]] bool room_to_hold() noexcept {
    try {
      if (holds.size() == holds.capacity()) holds.reserve(2 * holds.size() + 16);
    } catch (std::bad_alloc const&) {
      return false;
    }
    return true;
  }
};

/// Whether a job's step has to wait for others' (`turns`).
enum class turn : std::uint8_t {
  none,     ///< it doesn't
  due,      ///< before its first access
  awaited,  ///< it does now
  taken,    ///< it runs
};

struct pager_job {
  pager_job(std::uint32_t number, std::uint32_t own_priority, pager_options const& o) noexcept
      : index(number), priority(own_priority), log(o.most_events), known(o.most_plans), launching(o.clock) {}

  std::uint32_t index;
  std::uint32_t priority;
  std::uint64_t life = 0;  ///< other than that of those that had its number before
  bool open = true;
  step_log log;
  known_steps known;
  launch_watch launching;
  std::vector<running> threads;

  std::uint64_t next_number = 0;    ///< of the operation that ends next, of all
  std::uint64_t step_number = 0;    ///< of the running step's first operation
  std::uint64_t before_number = 0;  ///< of the first of the step before
  std::uint64_t fingerprint = 0;    ///< of the step before; 0: not known

  std::shared_ptr<step_plan const> plan;  ///< in force; null: on demand
  std::size_t next_out = 0;
  std::size_t next_return = 0;             ///< beyond the end: of the next step's
  return_order returns;                    ///< of the plan in force
  bytes put_off = 0;                       ///< what was live when the next one found no memory; 0: it has not
  bool by_plan = false;                    ///< since the step's beginning
  time began{};                            ///< the step, by the pager's clock
  std::uint32_t trust = 0;                 ///< steps on end that went by plan
  std::uint32_t alike = 0;                 ///< of them, those of the last one's kind, but for the first
  plan_proof proof;                        ///< of the plan in force, as of the step's beginning
  bool left_mapped = false;                ///< something that is away may be
  bool waits = false;                      ///< for what is mapped (`foresight::waits`), by that plan
  known_steps::other_steps others_of_own;  ///< its own, from one of the plan's kind to the next
  std::uint64_t between = 0;  ///< other jobs' operations from one of its steps to the next, where they take turns
  std::uint64_t beside = 1;   ///< jobs that run at the same time, where they don't

  gmlake::swap::turn turn = gmlake::swap::turn::none;
  std::uint32_t held_up = 0;  ///< times on end that it got nowhere while others waited

  // In this step.
  bytes evicted = 0;
  bytes others = 0, others_before = 0;  ///< the most seen live beside the pages; in the step before

  /// This thread's; null for want of memory.
  [[nodiscard]] running* mine() noexcept {
    auto const self = std::this_thread::get_id();
    running* idle = nullptr;
    for (running& r : threads) {
      if (r.thread == self) return &r;
      if (r.holds.empty()) idle = &r;
    }
    try {
      if (idle == nullptr) idle = &threads.emplace_back();
    } catch (std::bad_alloc const&) {
      return nullptr;
    }
    idle->thread = self;
    return idle;
  }
};

}  // namespace gmlake::swap
