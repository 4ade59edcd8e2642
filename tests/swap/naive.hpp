#pragma once
/// Swapping as plainly as can be: steps laid out one after the other, time in single nanoseconds. And schedules at
/// random, all schedules of a tiny program.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "gmlake/swap/absence.hpp"
#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/schedule.hpp"

namespace gmlake::swap::naive {

struct seen {
  bool stuck = false;
  std::vector<time> begins;  ///< of each step, and the last one's end
  bytes peak = 0;            ///< of the last step
};

/// The rules of simulate.hpp.
[[nodiscard]] inline seen simulate(program const& p, schedule const& s, channel const& c, bytes limit, int steps) {
  struct transfer {
    std::uint32_t move;
    int step;  ///< in which it leaves
    bool begun = false, over = false;
  };
  auto const n = static_cast<int>(p.operations.size());
  std::vector<transfer> outs, ins;
  for (int k = -1; k <= steps; ++k) {
    for (std::uint32_t m = 0; m < s.moves.size(); ++m) {
      absence const& a = s.moves[m].away;
      if (k >= 0 || (comes_back(p, a) && static_cast<int>(a.before) >= n)) outs.push_back({m, k, k < 0, k < 0});
    }
  }
  for (int k = 0; k <= steps; ++k) {
    for (std::uint32_t const m : s.returns)
      ins.push_back({m, static_cast<int>(s.moves[m].away.before) < n ? k : k - 1});
  }
  auto const same = [](std::vector<transfer>& of, transfer const& t) -> transfer& {
    return *std::ranges::find_if(of, [&](transfer const& o) { return o.move == t.move && o.step == t.step; });
  };
  auto const of = [&](transfer const& t) -> variable const& { return p.variables[s.moves[t.move].away.variable]; };
  std::vector<bool> for_good(p.variables.size());
  for (move const& m : s.moves) {
    if (!comes_back(p, m.away)) for_good[m.away.variable] = true;
  }

  bytes resident = 0;
  for (variable const& v : p.variables) resident += v.carried ? v.size : 0;
  for (transfer const& t : outs) resident -= t.over ? of(t).size : 0;

  seen result;
  int begun = 0, over = 0;  // operations
  transfer* out = nullptr;
  transfer* in = nullptr;
  time operation_until{}, out_until{}, in_until{};
  auto const launch = [&] {
    auto const i = static_cast<std::size_t>(begun % n);
    return i == 0 || p.launched.empty() ? time::zero() : result.begins.back() + p.launched[i];
  };
  for (time now{};; ++now) {
    for (bool again = true; again;) {
      again = false;
      if (begun > over && operation_until == now) {
        for (std::size_t v = 0; v < p.variables.size(); ++v) {
          variable const& x = p.variables[v];
          if (!x.carried && !for_good[v] && static_cast<int>(x.death) == over % n + 1) resident -= x.size;
        }
        ++over;
        for (transfer& t : outs) {
          if (t.begun || !of(t).has_copy || over <= t.step * n + static_cast<int>(s.moves[t.move].away.after)) continue;
          t.begun = t.over = true;
          resident -= of(t).size;
        }
      }
      if (out != nullptr && out_until == now) {
        out->over = true;
        resident -= of(*out).size;
        out = nullptr;
      }
      if (in != nullptr && in_until == now) {
        in->over = true;
        in = nullptr;
      }
      for (bool more = true; more;) {
        more = false;
        if (begun == over) {
          bytes born = 0;
          for (variable const& v : p.variables)
            born += !v.carried && static_cast<int>(v.birth) == begun % n ? v.size : 0;
          bool const there = std::ranges::all_of(ins, [&](transfer const& t) {
            return t.over || t.step * n + static_cast<int>(s.moves[t.move].away.before) != begun;
          });
          if (there && resident + born <= limit && now >= launch()) {
            if (begun % n == 0) {
              result.begins.push_back(now);
              if (begun == steps * n) return result;
              result.peak = resident;
            }
            resident += born;
            operation_until = now + p.operations[static_cast<std::size_t>(begun % n)];
            ++begun;
            more = again = true;
            result.peak = std::max(result.peak, resident);
            continue;
          }
        }
        auto const next_out =
            std::ranges::find_if(outs, [&](transfer const& t) { return !t.begun && !of(t).has_copy; });
        if (out == nullptr && next_out != outs.end() &&
            over > next_out->step * n + static_cast<int>(s.moves[next_out->move].away.after)) {
          out = &*next_out;
          out->begun = true;
          out_until = now + c.out.time_of(of(*out).size);
          more = again = true;
          continue;
        }
        auto const next_in = std::ranges::find_if(ins, [](transfer const& t) { return !t.begun; });
        if (in == nullptr && next_in != ins.end() && same(outs, *next_in).over &&
            resident + of(*next_in).size <= limit &&
            over >= next_in->step * n + static_cast<int>(s.moves[next_in->move].from)) {
          in = &*next_in;
          in->begun = true;
          in_until = now + c.in.time_of(of(*in).size);
          resident += of(*in).size;
          result.peak = std::max(result.peak, resident);
          more = again = true;
        }
      }
    }
    if (begun == over && out == nullptr && in == nullptr && now >= launch()) {
      result.stuck = true;
      return result;
    }
  }
}

/// In the order of the moves.
[[nodiscard]] inline std::vector<std::uint32_t> all_returns(program const& p, schedule const& s) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t m = 0; m < s.moves.size(); ++m) {
    if (comes_back(p, s.moves[m].away)) all.push_back(m);
  }
  return all;
}

/// Some absences in any order, most of it sensible.
[[nodiscard]] inline schedule any_schedule(program const& p, std::mt19937& random) {
  schedule s;
  auto const n = static_cast<std::uint32_t>(p.operations.size());
  for (absence const& a : absences_of(p)) {
    if (random() % 3 == 0) continue;
    s.moves.push_back({a, a.after + 1 + static_cast<std::uint32_t>(random() % (a.before - a.after))});
  }
  if (random() % 4 == 0) {
    s.returns = all_returns(p, s);
    std::ranges::shuffle(s.returns, random);
  } else {
    std::ranges::sort(s.moves, {}, [](move const& m) { return m.away.after; });
    s.returns = all_returns(p, s);
    std::ranges::sort(s.returns, {}, [&](std::uint32_t r) { return s.moves[r].away.before % n; });
  }
  return s;
}

/// Calls for every schedule: every choice, both orders, every beginning of the ways back. Exponential.
template <class Visit>
void all_schedules(program const& p, Visit&& visit) {
  std::vector<absence> const all = absences_of(p);
  for (std::uint32_t set = 0; set < (1U << all.size()); ++set) {
    std::vector<absence> some;
    for (std::uint32_t k = 0; k < all.size(); ++k) {
      if ((set >> k & 1U) != 0) some.push_back(all[k]);
    }
    std::vector<std::uint32_t> leave(some.size());
    std::iota(leave.begin(), leave.end(), 0U);
    do {
      schedule s;
      for (std::uint32_t const k : leave) s.moves.push_back({some[k], some[k].after + 1});
      s.returns = all_returns(p, s);
      do {
        auto const from = [&](auto const& self, std::size_t k) -> void {
          if (k == s.moves.size()) return visit(s);
          move& m = s.moves[k];
          if (!comes_back(p, m.away)) return self(self, k + 1);
          for (m.from = m.away.after + 1; m.from <= m.away.before; ++m.from) self(self, k + 1);
        };
        from(from, 0);
      } while (std::ranges::next_permutation(s.returns).found);
    } while (std::ranges::next_permutation(leave).found);
  }
}

/// A channel as fast as tiny programs are: some bytes a nanosecond.
[[nodiscard]] inline channel tiny_channel(std::mt19937& random) {
  auto const any = [&] { return lane{time(random() % 3), 500'000'000 + 500'000'000 * (random() % 8)}; };
  lane const out = any();
  return {out, any()};
}

}  // namespace gmlake::swap::naive
