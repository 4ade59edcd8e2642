#pragma once
/// Whose steps run, where several jobs share memory that does not suffice for all of them at once: one job's after the
/// other. A step waits before its first access until those before it claim nothing more, which is before they are over:
/// the device always has work queued. So the peak is that of the sum of the jobs' loads over time, not the sum of their
/// peaks, and each finds memory as the last round has left it, with the mappings that it made then.
///
/// Those that wait go in rounds, in the order in which plans have the jobs: one whose steps are short has no more of
/// them than others, as what a plan foresees of its blocks lies behind a step of each other job's. Who is not there yet
/// is not waited for. A step that gets nowhere while others wait for it, or of which nobody knows when it ends, does
/// not hold them up for longer than they have patience; a job to which that happens several times on end neither waits
/// nor is waited for any more. Nothing is wrong then, only slower: memory is had on demand.
///
/// Not thread-safe: the pager's lock guards it, and is given up while a job waits.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "gmlake/swap/pager_job.hpp"
#include "gmlake/swap/pager_options.hpp"

namespace gmlake::swap {

class turns {
 public:
  using jobs = std::vector<std::unique_ptr<pager_job>>;

  turns(jobs const& all, pager_options const& options, pager_stats& seen) noexcept
      : jobs_(&all), options_(&options), seen_(&seen) {}

  /// The job's last step is over, and the next begins, by the plan in force or none.
  void step_begun(pager_job& j) noexcept {
    end(j);
    if (!in_force() || j.held_up >= most_held_up) return;
    j.turn = turn::due;
  }

  /// The job's next access will wait if it has to: from now on others know.
  static void ask(pager_job& j) noexcept {
    if (j.turn == turn::due) j.turn = turn::awaited;
  }
  /// Whether it waits for nobody.
  [[nodiscard]] bool may_go(pager_job const& j) const noexcept {
    if (j.turn == turn::none || j.turn == turn::taken) return true;
    return std::ranges::none_of(*jobs_, [&](auto const& o) {
      if (o.get() == &j || !o->open) return false;
      return o->turn == turn::taken ? !claims_little(*o) : o->turn == turn::awaited && goes_before(*o, j);
    });
  }

  /// Waits until it may, and takes its turn. Precondition: `lock` is the pager's, and the turn is not taken.
  void await(std::unique_lock<std::mutex>& lock, pager_job& j) noexcept {
    ask(j);
    if (!may_go(j)) ++seen_->turns_awaited;
    while (!may_go(j)) {
      if (!gets_on(lock)) pass(j);
      ask(j);  // another may have lost patience with it
    }
    if (j.turn != turn::awaited) return;  // it needs none any more, or another thread has taken it
    j.turn = turn::taken;
    last_ = j.index;
  }

  /// The job's operation has ended: the next may have its turn.
  void operation_ended(pager_job& j) noexcept {
    if (j.turn != turn::taken || j.plan == nullptr) return;
    ++ended_;
    if (j.log.operations() < j.plan->operations()) {
      if (claims_little(j)) changed_.notify_all();
      return;
    }
    j.held_up = 0;
    end(j);
  }

  /// Its step neither runs nor waits any more.
  void end(pager_job& j) noexcept {
    if (j.turn == turn::none) return;
    if (j.turn == turn::taken) ++over_;
    j.turn = turn::none;
    changed_.notify_all();
  }

  /// For a job that finds no memory: waits until the turn of one of the others is over, whose blocks may not be able to
  /// leave before. False where it is the job's own, or nobody's, or they get nowhere.
  [[nodiscard]] bool await_others(std::unique_lock<std::mutex>& lock, pager_job const& j) noexcept {
    auto const runs = [](auto const& o) { return o->open && o->turn == turn::taken; };
    if (j.turn == turn::taken || std::ranges::none_of(*jobs_, runs)) return false;
    std::uint64_t const over = over_;
    while (over_ == over && gets_on(lock)) {
    }
    return over_ != over;
  }

 private:
  static constexpr std::uint32_t most_held_up = 3;

  /// Waits for any change. False where there was none for as long as anybody has patience.
  [[nodiscard]] bool gets_on(std::unique_lock<std::mutex>& lock) noexcept {
    constexpr time most = std::chrono::hours(24 * 365);  // longer ones overflow the clock
    std::uint64_t const before = ended_;
    return changed_.wait_for(lock, std::min(options_->patience, most)) != std::cv_status::timeout || ended_ != before;
  }

  /// Whether some plan in force needs jobs to take turns.
  [[nodiscard]] bool in_force() const noexcept {
    return std::ranges::any_of(*jobs_,
                               [](auto const& j) { return j->open && j->plan != nullptr && j->plan->takes_turns(); });
  }
  [[nodiscard]] bool goes_before(pager_job const& a, pager_job const& b) const noexcept {
    auto const behind_last = [this](pager_job const& j) { return j.index > last_; };
    return std::tuple(!behind_last(a), a.index) < std::tuple(!behind_last(b), b.index);
  }
  /// What is left to come of a running step fits into what plans keep free.
  [[nodiscard]] bool claims_little(pager_job const& j) const noexcept {
    if (j.plan == nullptr) return false;
    auto const rate = static_cast<double>(options_->channel.out.bytes_per_second);
    auto const spare = static_cast<bytes>(rate * static_cast<double>(options_->ahead.count()) / 1e9);
    return j.plan->claim(j.log.operations()) <= spare;
  }

  /// Those that run are not waited for any longer, nor those that asked whether they may and don't come.
  [[gnu::cold]] void pass(pager_job const& j) noexcept {
    for (auto const& o : *jobs_) {
      if (o.get() == &j || !o->open) continue;
      if (o->turn == turn::awaited) o->turn = turn::due;  // who does come asks again
      if (o->turn != turn::taken) continue;
      ++o->held_up;
      ++seen_->turns_passed;
      o->turn = turn::none;
    }
    changed_.notify_all();
  }

  jobs const* jobs_;
  pager_options const* options_;
  pager_stats* seen_;
  std::condition_variable changed_;
  std::uint64_t ended_ = 0;  ///< operations of steps that run by plan
  std::uint64_t over_ = 0;   ///< turns
  std::uint32_t last_ = 0;   ///< the job that has taken the last one
};

}  // namespace gmlake::swap
