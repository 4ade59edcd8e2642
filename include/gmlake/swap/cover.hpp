#pragma once
/// Chooses what leaves so that no operation's resident bytes exceed a limit: from the operation with the least load on,
/// each operation that exceeds it takes absences that cover it, best first, each with a stretch of time in both lanes:
/// out as early as is free, in as late as is free. What is chosen is never given up.
///
/// "Best" weighs how late the next access is, a step later where there is none, against how early the last one was: the
/// next use farthest away (Belady, IBM Systems Journal 5(2), 1966) leaves most of the lane in to others; the earliest
/// last use of the lane out. The same from the step's end backwards, with the lanes exchanged, is a different choice,
/// and sometimes the better one.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "gmlake/swap/chosen.hpp"
#include "gmlake/swap/numbers.hpp"
#include "gmlake/swap/pace.hpp"
#include "gmlake/swap/setting.hpp"
#include "gmlake/swap/timetable.hpp"

namespace gmlake::swap {

struct cover_options {
  double farthest = 1;  ///< weight of the next access's lateness, against that of the last access's earliness: 0 to 1
  bool backwards = false;  ///< from the step's end
  /// Where no absence has time in both lanes, takes one that hasn't, instead of failing.
  bool may_stall = false;
  bytes least_size = 0;  ///< leaves alone what is smaller
  /// Shifts each absence in the order by up to so much of the step's time, as the seed has it.
  double shuffle = 0;
  std::uint64_t seed = 0;
};

class cover {
 public:
  cover(setting const& at, pace const& p, cover_options const& o)
      : at_(at), options_(o), n_(at.size()), out_(p.step), in_(p.step) {
    items_.reserve(at.absences().size());
    if (o.backwards) reflect(p);
    else keep(p);
  }

  /// Nothing where `limit` can't be met so. O((operations + absences) log absences), and the reservations that are
  /// passed over; where it may stall, what is taken for each operation that the lanes fail. Precondition: there are
  /// operations. May be called once.
  [[nodiscard]] std::optional<std::vector<chosen>> meet(bytes limit) {
    begin_ = std::ranges::min_element(loads_) - loads_.begin();
    change_.assign(std::size_t{n_} + 1, 0);
    std::vector<std::vector<occurrence>> entering = occurrences();
    bytes away = 0;
    for (std::int64_t q = begin_; q < begin_ + n_; ++q) {
      away += change_[index(q)];
      for (occurrence const& o : entering[index(q)]) waiting_.push(o);
      revive(q);
      while (loads_[static_cast<std::size_t>(q % n_)] > limit + away) {
        std::optional<bytes> const more = take_one(q);
        if (!more) return std::nullopt;
        away += *more;
      }
    }
    std::vector<chosen> all;
    for (std::uint32_t const k : taken_) all.push_back(named(items_[k]));
    return all;
  }

 private:
  /// An absence, in the direction that is chosen in.
  struct item {
    std::uint32_t absence;
    std::int64_t first, last;  ///< operations that it covers at most; the first is of this step
    time release, deadline, out_time, in_time;
    bytes size;
    double lead;  ///< by which it comes before others in the order: a step where it does not come back
    // Once it is taken:
    time out{}, in{};                ///< when its transfers are meant to begin
    std::int64_t from = 0, to = -1;  ///< the operations for which it is counted as away
    std::int64_t step = 0;           ///< for which it was taken
    bool taken = false;
  };
  /// An item in this step or one before or after.
  struct occurrence {
    double rank;
    std::uint32_t item;
    std::int64_t step;
    friend bool operator<(occurrence const& a, occurrence const& b) noexcept {
      return a.rank != b.rank ? a.rank < b.rank : a.item > b.item;
    }
  };
  using delayed = std::pair<time, occurrence>;  // when its way out would be over
  struct later {
    bool operator()(delayed const& a, delayed const& b) const noexcept {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    }
  };

  void keep(pace const& p) {
    pace_ = p;
    loads_ = at_.loads();
    bytes const least = std::max(options_.least_size, at_.smallest());
    for (std::uint32_t k = 0; k < at_.absences().size(); ++k) {
      absence const& a = at_.absences()[k];
      if (at_.size_of(a) < least) continue;
      items_.push_back({k, a.after + 1, std::int64_t{a.before} - 1, p.end_of(a.after), p.begin_of(a.before),
                        at_.out_time(a), at_.in_time(a), at_.size_of(a), lead_of(a)});
    }
  }

  /// Time runs backwards from the step's end; what comes in leaves.
  void reflect(pace const& p) {
    pace_.step = p.step;
    for (std::uint32_t i = n_; i-- > 0;) {
      pace_.begins.push_back(p.step - p.ends[i]);
      pace_.ends.push_back(p.step - p.begins[i]);
    }
    loads_.assign(at_.loads().rbegin(), at_.loads().rend());
    bytes const least = std::max(options_.least_size, at_.smallest());
    for (std::uint32_t k = 0; k < at_.absences().size(); ++k) {
      absence const& a = at_.absences()[k];
      if (at_.size_of(a) < least) continue;
      std::int64_t const step = a.before > n_ ? 1 : 0;  // so that the first is of this one
      std::int64_t const last = std::int64_t{n_} - 2 - a.after + step * n_;
      std::int64_t const first = std::int64_t{n_} - a.before + step * n_;
      items_.push_back({k, first, last, pace_.end_of(first - 1), pace_.begin_of(last + 1), at_.in_time(a),
                        at_.out_time(a), at_.size_of(a), lead_of(a)});
    }
  }

  /// There is no next access, or backwards no last one: as if it were a step away.
  [[nodiscard]] double lead_of(absence const& a) const noexcept {
    double const weight = options_.backwards ? 1 - options_.farthest : options_.farthest;
    return at_.comes_back(a) ? 0 : weight * static_cast<double>(pace_.step.count());
  }

  [[nodiscard]] std::size_t index(std::int64_t q) const noexcept { return static_cast<std::size_t>(q - begin_); }

  [[nodiscard]] std::vector<std::vector<occurrence>> occurrences() const {
    std::vector<std::vector<occurrence>> entering(n_);
    for (std::uint32_t k = 0; k < items_.size(); ++k) {
      item const& x = items_[k];
      for (std::int64_t step = -1; step <= 1; ++step) {
        std::int64_t const enters = std::max(x.first + step * n_, begin_);
        if (enters > x.last + step * n_ || enters >= begin_ + n_) continue;
        double const late = static_cast<double>((x.deadline + step * pace_.step).count());
        double const early = -static_cast<double>((x.release + step * pace_.step).count());
        double const rank = options_.farthest * late + (1 - options_.farthest) * early + shift_of(x.absence) + x.lead;
        entering[index(enters)].push_back({rank, k, step});
      }
    }
    return entering;
  }

  [[nodiscard]] double shift_of(std::uint32_t absence) const {
    if (options_.shuffle == 0) return 0;
    numbers random{options_.seed + absence};
    return options_.shuffle * random.share() * static_cast<double>(pace_.step.count());
  }

  /// What was too late for operations before may be in time now.
  void revive(std::int64_t q) {
    while (!late_.empty() && late_.top().first <= pace_.begin_of(q)) {
      waiting_.push(late_.top().second);
      late_.pop();
    }
  }

  /// The bytes by which operation `q` is relieved.
  [[nodiscard]] std::optional<bytes> take_one(std::int64_t q) {
    while (!waiting_.empty()) {
      occurrence const o = waiting_.top();
      waiting_.pop();
      item& x = items_[o.item];
      if (x.taken || x.last + o.step * n_ < q) continue;
      time const shift = o.step * pace_.step;
      // The lane in is reserved backwards.
      auto const in = in_.earliest(-(x.deadline + shift), x.in_time, -pace_.end_of(q));
      if (!in) {
        if (options_.may_stall) forced_.push(o);
        continue;
      }
      time const in_begin = -*in - x.in_time;
      auto const out = out_.earliest(x.release + shift, x.out_time, in_begin);
      if (!out) {
        if (options_.may_stall) forced_.push(o);
        continue;
      }
      if (*out + x.out_time > pace_.begin_of(q)) {
        late_.emplace(*out + x.out_time, o);
        if (options_.may_stall) forced_.push(o);
        continue;
      }
      return reserve(q, o, *out, in_begin);
    }
    return force_one(q);
  }

  /// One for which the lanes have no time; or more of one that is taken than they have time for.
  [[nodiscard]] std::optional<bytes> force_one(std::int64_t q) {
    while (!forced_.empty()) {
      occurrence const o = forced_.top();
      forced_.pop();
      item& x = items_[o.item];
      if (x.taken || x.last + o.step * n_ < q) continue;
      // What the lanes can spare, so that later choices know how busy they are.
      if (auto const out = out_.earliest(x.release, x.out_time, x.deadline)) out_.reserve(*out, x.out_time);
      if (auto const in = in_.earliest(-x.deadline, x.in_time, -x.release)) in_.reserve(*in, x.in_time);
      take(o, x.release, x.deadline - x.in_time, x.first, x.last);
      return relieve(q, x.first + o.step * n_, x.last + o.step * n_, x.size);
    }
    return options_.may_stall ? extend_one(q) : std::nullopt;
  }

  /// What is taken could be away for longer. O(what is taken).
  [[nodiscard]] std::optional<bytes> extend_one(std::int64_t q) {
    item* longest = nullptr;
    std::int64_t until = q - 1, step_of_longest = 0;
    for (std::uint32_t const k : taken_) {
      item& x = items_[k];
      for (std::int64_t step = x.step; step <= x.step + 1; ++step) {
        std::int64_t const own = q - step * n_;
        if (own < x.first || own > x.last || (own >= x.from && own <= x.to)) continue;
        std::int64_t const last = (own < x.from ? x.from - 1 : x.last) + step * n_;
        if (last <= until) continue;
        longest = &x;
        until = last;
        step_of_longest = step;
      }
    }
    if (longest == nullptr) return std::nullopt;
    std::int64_t const own = q - step_of_longest * n_;
    if (own < longest->from) {
      longest->from = own;
      longest->out = longest->release;
    } else {
      longest->to = longest->last;
      longest->in = longest->deadline - longest->in_time;
    }
    return relieve(q, q, until, longest->size);
  }

  [[nodiscard]] bytes reserve(std::int64_t q, occurrence const& o, time out, time in) {
    item& x = items_[o.item];
    out_.reserve(out, x.out_time);
    in_.reserve(-in - x.in_time, x.in_time);
    time const shift = o.step * pace_.step;
    // It covers what begins after its way out and ends before its way in.
    std::int64_t first = x.first + o.step * n_, last = x.last + o.step * n_;
    first = first_where(first, q, [&](std::int64_t i) { return pace_.begin_of(i) >= out + x.out_time; });
    last = first_where(q, last + 1, [&](std::int64_t i) { return pace_.end_of(i) > in; }) - 1;
    take(o, out - shift, in - shift, first - o.step * n_, last - o.step * n_);
    return relieve(q, first, last, x.size);
  }

  void take(occurrence const& o, time out, time in, std::int64_t from, std::int64_t to) {
    item& x = items_[o.item];
    x.out = out;
    x.in = in;
    x.from = from;
    x.to = to;
    x.step = o.step;
    x.taken = true;
    taken_.push_back(o.item);
  }

  /// Counts `size` as away over these operations, and over the same a step later.
  [[nodiscard]] bytes relieve(std::int64_t q, std::int64_t first, std::int64_t last, bytes size) {
    std::int64_t const end = begin_ + n_;
    change_[index(std::min(last + 1, end))] -= size;  // wraps below zero, and back in the sum
    if (first + n_ < end) {
      change_[index(std::max(first + n_, q + 1))] += size;
      change_[index(std::min(last + 1 + n_, end))] -= size;
    }
    return size;
  }

  template <class Predicate>
  [[nodiscard]] static std::int64_t first_where(std::int64_t low, std::int64_t high, Predicate holds) {
    while (low < high) {
      std::int64_t const middle = low + (high - low) / 2;
      if (holds(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /// Back in the program's own direction.
  [[nodiscard]] chosen named(item const& x) const {
    if (!options_.backwards) return {x.absence, x.out, x.in};
    time const end = pace_.step + (at_.absences()[x.absence].before > n_ ? pace_.step : time::zero());
    return {x.absence, end - x.in - x.in_time, end - x.out - x.out_time};
  }

  setting const& at_;
  cover_options options_;
  std::uint32_t n_;
  pace pace_;
  std::vector<bytes> loads_;
  std::vector<item> items_;
  timetable out_, in_;
  std::int64_t begin_ = 0;
  std::vector<bytes> change_;  // of the bytes away, from the first operation looked at on
  std::priority_queue<occurrence> waiting_, forced_;
  std::priority_queue<delayed, std::vector<delayed>, later> late_;
  std::vector<std::uint32_t> taken_;  // items, in order
};

}  // namespace gmlake::swap
