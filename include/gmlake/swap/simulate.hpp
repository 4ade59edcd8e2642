#pragma once
/// Runs a program's steps under a schedule, a channel and a limit, until one is like the one before it.
///
/// - The device runs operations in order, each when it has been launched, all that it accesses is there and what is
/// born
///   before it has room. That it waits for the launch is no stall.
/// - A variable leaves when its last operation is over and the lane out has come to it, and its memory is free when the
///   copy is whole; where the host has a copy, at once.
/// - It comes back, if it does at all, when the operations before `move::from` are over, the lane in has come to it,
///   its copy is whole and there is room; the room is taken when the transfer begins. Where an operation could have the
///   room, it goes first.
///
/// Never more is resident than the limit. Deterministic, in whole nanoseconds.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/outcome.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/schedule.hpp"

namespace gmlake::swap {

inline constexpr bytes no_limit = std::numeric_limits<bytes>::max();

/// One simulation. The first step finds away what is away over the step's end.
class simulation {
 public:
  /// Precondition: both are well-formed (`find_fault`).
  simulation(program const& p, schedule const& s, channel const& c, bytes limit)
      : program_(p),
        schedule_(s),
        channel_(c),
        limit_(limit),
        end_(static_cast<std::uint32_t>(p.operations.size())),
        births_(end_ + 1),
        deaths_(end_ + 1),
        due_(end_),
        back_(end_),
        whole_(s.moves.size()),
        dropped_(end_) {
    for (variable const& v : p.variables) {
      if (v.carried) {
        resident_ += v.size;
      } else {
        births_[v.birth] += v.size;
        deaths_[v.death] += v.size;
      }
    }
    for (std::uint32_t m = 0; m < s.moves.size(); ++m) {
      absence const& a = s.moves[m].away;
      if (of(m).has_copy) dropped_[a.after].push_back(m);
      else leaving_.push_back(m);
      if (!comes_back(p, a)) {
        deaths_[a.before] -= of(m).size;  // its memory is free when it has left
        continue;
      }
      ++due_[a.before % end_];
      if (a.before < end_) continue;
      whole_[m] = true;
      resident_ -= of(m).size;
    }
  }

  /// O((operations + moves) · steps), of which there are three as a rule and `most_steps` at most.
  [[nodiscard]] outcome run() {
    result_.settled = end_ == 0;
    result_.starts.assign(end_ + 1, time::zero());
    result_.ways_out.assign(schedule_.moves.size(), time::zero());
    result_.ways_back.assign(schedule_.moves.size(), time::zero());
    result_.moved = traffic_of(program_, schedule_);
    while (end_ != 0 && !result_.stuck && !over_) {
      complete();
      while (start_operation() || (!over_ && (start_out() || start_in()))) {
      }
      if (!over_) advance();
    }
    return std::move(result_);
  }

 private:
  static constexpr std::int64_t most_steps = 16;

  /// A lane, the device, or the host while the device waits for it: what it is at, until when.
  struct worker {
    std::int64_t done = 0;  ///< jobs over, counted through all steps
    std::optional<time> until;
  };

  /// All that the future depends on when a step begins: what has come before follows from where the lanes are.
  struct state {
    std::int64_t out_ahead, in_ahead;
    time out_left, in_left;
    friend bool operator==(state const&, state const&) = default;
  };

  [[nodiscard]] variable const& of(std::uint32_t m) const noexcept {
    return program_.variables[schedule_.moves[m].away.variable];
  }
  [[nodiscard]] bool has_room(bytes n) const noexcept { return resident_ <= limit_ && n <= limit_ - resident_; }

  void take(bytes n) noexcept {
    resident_ += n;
    peak_ = std::max(peak_, resident_);
  }

  [[nodiscard]] static bool completes(worker& w, time now) noexcept {
    if (w.until != now) return false;
    w.until.reset();
    ++w.done;
    return true;
  }

  void complete() {
    std::uint32_t const i = operation();
    if (completes(host_, now_)) idle_since_ = now_;
    if (completes(device_, now_)) {
      idle_since_ = now_;
      resident_ -= deaths_[i + 1];
      for (std::uint32_t const m : dropped_[i]) {
        leave(m);
        result_.ways_out[m] = now_;
      }
    }
    std::uint32_t const left = leaving_.empty() ? 0 : next_out();
    if (completes(out_, now_)) leave(left);
    std::uint32_t const returned = schedule_.returns.empty() ? 0 : next_in();
    if (completes(in_, now_)) {
      ++back_[schedule_.moves[returned].away.before % end_];
      arrived_ = schedule_.moves[returned].away.variable;
    }
  }

  void leave(std::uint32_t m) {
    resident_ -= of(m).size;
    whole_[m] = true;
  }

  [[nodiscard]] std::uint32_t operation() const noexcept { return static_cast<std::uint32_t>(device_.done % end_); }
  [[nodiscard]] std::uint32_t next_out() const noexcept {
    return leaving_[static_cast<std::size_t>(out_.done) % leaving_.size()];
  }
  [[nodiscard]] std::uint32_t next_in() const noexcept {
    return schedule_.returns[static_cast<std::size_t>(in_.done) % schedule_.returns.size()];
  }
  /// How many operations were over, through all steps, when `i` of the step of a lane's next transfer began.
  [[nodiscard]] std::int64_t over_before(std::int64_t i, std::int64_t transfers, std::size_t a_step) const noexcept {
    return transfers / static_cast<std::int64_t>(a_step) * end_ + i;
  }

  [[nodiscard]] bool start_operation() {
    if (over_ || device_.until) return false;
    std::uint32_t const i = operation();
    if (time const at = launched(i); now_ < at) {
      host_.until = at;
      return false;
    }
    if (back_[i] < due_[i]) {
      blocked_ = waits_for::arrival;
      return false;
    }
    if (!has_room(births_[i])) {
      blocked_ = waits_for::room;
      return false;
    }
    if (i == 0) begin_step();
    if (over_) return false;
    take(births_[i]);
    back_[i] = 0;
    result_.starts[i] = now_ - began_;
    if (now_ > idle_since_) result_.stalls.push_back(stall_before(i));
    device_.until = now_ + program_.operations[i];
    return true;
  }

  /// The first operation of a step is when it begins: it is what others' launches are counted from.
  [[nodiscard]] time launched(std::uint32_t i) const noexcept {
    return i == 0 || program_.launched.empty() ? time::zero() : began_ + program_.launched[i];
  }

  [[nodiscard]] stall stall_before(std::uint32_t i) const noexcept {
    return {i, now_ - idle_since_, blocked_, blocked_ == waits_for::arrival ? arrived_ : 0};
  }

  [[nodiscard]] bool start_out() {
    if (out_.until || leaving_.empty()) return false;
    std::uint32_t const m = next_out();
    if (device_.done <= over_before(schedule_.moves[m].away.after, out_.done, leaving_.size())) return false;
    out_.until = now_ + channel_.out.time_of(of(m).size);
    result_.ways_out[m] = now_;
    return true;
  }

  [[nodiscard]] bool start_in() {
    if (in_.until || schedule_.returns.empty()) return false;
    std::uint32_t const m = next_in();
    move const& back = schedule_.moves[m];
    std::int64_t const left_before = back.away.before < end_ ? 0 : end_;  // it left in the step before
    std::int64_t const from = over_before(back.from - left_before, in_.done, schedule_.returns.size());
    if (!whole_[m] || device_.done < from || !has_room(of(m).size)) return false;
    take(of(m).size);
    whole_[m] = false;
    in_.until = now_ + channel_.in.time_of(of(m).size);
    result_.ways_back[m] = now_;
    return true;
  }

  void advance() {
    std::optional<time> next;
    for (worker const* w : {&device_, &host_, &out_, &in_}) {
      if (w->until && (!next || *w->until < *next)) next = w->until;
    }
    if (next) now_ = *next;
    else result_.stuck = operation();
  }

  /// A step is over, unless it is the first that begins.
  void begin_step() {
    std::int64_t const step = device_.done / end_;
    auto const left = [&](worker const& w) { return w.until ? *w.until - now_ : time::zero(); };
    state const here{out_.done - step * static_cast<std::int64_t>(leaving_.size()),
                     in_.done - step * static_cast<std::int64_t>(schedule_.returns.size()), left(out_), left(in_)};
    if (step > 0) end_step(step, last_ == here);
    if (over_) return;
    last_ = here;
    began_ = now_;
    peak_ = resident_;
    // What this operation waited for is the last step's.
    idle_since_ = now_;
    result_.stalls.clear();
  }

  void end_step(std::int64_t step, bool like_the_last) {
    if (now_ > idle_since_) result_.stalls.insert(result_.stalls.begin(), stall_before(0));
    time const took = now_ - began_;
    slowest_ = std::max(slowest_, took);
    over_ = like_the_last || step == most_steps;
    if (!over_) return;
    result_.settled = like_the_last;
    result_.total = like_the_last ? took : slowest_;
    result_.starts[end_] = took;
    result_.peak = peak_;
    for (stall const& s : result_.stalls) result_.stalled += s.length;
    for (auto* const ways : {&result_.ways_out, &result_.ways_back}) {
      for (time& t : *ways) t = within_step(t - began_);
    }
  }

  /// What began in the step before began so in the last one too, if it was like it.
  [[nodiscard]] time within_step(time since) const noexcept {
    if (result_.total == time::zero()) return time::zero();
    since %= result_.total;
    return since < time::zero() ? since + result_.total : since;
  }

  program const& program_;
  schedule const& schedule_;
  channel const& channel_;
  bytes limit_;
  std::uint32_t end_;
  std::vector<bytes> births_, deaths_;               ///< before each operation, of what is not carried
  std::vector<std::uint32_t> due_, back_;            ///< how many an operation waits for, and how many of them are back
  std::vector<bool> whole_;                          ///< of each move: it is away, and the host has all of it
  std::vector<std::vector<std::uint32_t>> dropped_;  ///< after each operation, without a transfer
  std::vector<std::uint32_t> leaving_;               ///< the others, in order

  time now_{}, began_{}, idle_since_{}, slowest_{};
  worker device_, host_, out_, in_;
  bytes resident_ = 0, peak_ = 0;
  waits_for blocked_ = waits_for::room;
  std::uint32_t arrived_ = 0;
  state last_{};
  bool over_ = false;
  outcome result_;
};

/// What a step comes to. Precondition: both are well-formed (`find_fault`). O(operations + moves), some three times.
[[nodiscard]] inline outcome simulate(program const& p, schedule const& s, channel const& c, bytes limit = no_limit) {
  return simulation(p, s, c, limit).run();
}

}  // namespace gmlake::swap
