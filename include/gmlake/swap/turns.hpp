#pragma once
/// Whose steps run, where several jobs share memory that does not suffice for all of them at once: one job's after the
/// other. A step waits before its first access until those before it claim nothing more, which is before they are over:
/// the device always has work queued. So the peak is that of the sum of the jobs' loads over time, not the sum of their
/// peaks, and each finds memory as the last round has left it, with the mappings that it made then.
///
/// Those that wait go in the order of the device time that they have had, the least first. A step that gets nowhere
/// while others wait for it, or of which nobody knows when it ends, does not hold them up for longer than they have
/// patience; a job to which that happens several times on end neither waits nor is waited for any more. Nothing is
/// wrong then, only slower: memory is had on demand.
///
/// Not thread-safe: the pager's lock guards it, and is given up while a job waits.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
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
    limit_credit(j);
    j.turn = turn::due;
  }

  /// Whether the job's next access waits for nobody.
  [[nodiscard]] bool may_go(pager_job const& j) const noexcept {
    if (j.turn == turn::none || j.turn == turn::taken) return true;
    return std::ranges::none_of(*jobs_, [&](auto const& o) {
      if (o.get() == &j || !o->open) return false;
      return o->turn == turn::taken ? !claims_little(*o) : o->turn == turn::awaited && goes_before(*o, j);
    });
  }

  /// Waits until it may, and takes its turn. Precondition: `lock` is the pager's, and the turn is not taken.
  void await(std::unique_lock<std::mutex>& lock, pager_job& j) noexcept {
    if (j.turn == turn::due) j.turn = turn::awaited;
    if (!may_go(j)) ++seen_->turns_awaited;
    while (!may_go(j)) {
      if (!gets_on(lock)) pass(j);
    }
    if (j.turn != turn::awaited) return;  // it needs none any more, or another thread has taken it
    j.turn = turn::taken;
    if (j.plan != nullptr) j.had += j.plan->work();
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
  [[nodiscard]] static bool goes_before(pager_job const& a, pager_job const& b) noexcept {
    return a.had != b.had ? a.had < b.had : a.index < b.index;
  }
  /// What is left to come of a running step fits into what plans keep free.
  [[nodiscard]] bool claims_little(pager_job const& j) const noexcept {
    if (j.plan == nullptr) return false;
    auto const rate = static_cast<double>(options_->channel.out.bytes_per_second);
    auto const spare = static_cast<bytes>(rate * static_cast<double>(options_->ahead.count()) / 1e9);
    return j.plan->claim(j.log.operations()) <= spare;
  }

  /// Who is new, or was away, does not get more than a few steps ahead of others.
  void limit_credit(pager_job& j) const noexcept {
    time least = time::max(), longest{};
    for (auto const& o : *jobs_) {
      if (!o->open || o->turn == turn::none || o->plan == nullptr) continue;
      least = std::min(least, o->had);
      longest = std::max(longest, o->plan->work());
    }
    if (least < time::max()) j.had = std::max(j.had, least - 2 * longest);
  }

  /// Those that run are not waited for any longer.
  [[gnu::cold]] void pass(pager_job const& j) noexcept {
    for (auto const& o : *jobs_) {
      if (o.get() == &j || !o->open || o->turn != turn::taken) continue;
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
};

}  // namespace gmlake::swap
