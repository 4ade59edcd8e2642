#pragma once
/// From a trace that tells of accesses and times to what each of its steps does, as swapping sees it.
///
/// Operations are counted over the whole trace, and an allocation's life is a range of them. What stands between two
/// `o` lines belongs to the operation that the second one ends:
///
///     o,…  a,7,512,0  r,3  w,7  f,3  f,5  o,…      block 7 is born before this operation; 5 is freed before it,
///                                                  and 3, which it reads, before the next one
///
/// A block that is born and freed in between, and that nothing accesses, is what the operation itself needs, and lives
/// for it. An operation is in the step in which its `o` stands; accesses that no `o` follows are in none.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmlake/swap/program.hpp"
#include "gmlake/trace/event.hpp"
#include "gmlake/trace/lifetimes.hpp"

namespace gmlake::trace {

struct step_program {
  swap::program program;
  std::vector<std::uint32_t> allocations;  ///< by variable: its id in the trace; ascending
};

struct step_programs {
  std::vector<step_program> steps;
  std::string error;  ///< empty: none

  [[nodiscard]] bool has_value() const noexcept { return error.empty(); }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
};

namespace detail {

/// The lives and accesses of a whole trace, in operations.
struct lives_in_operations {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  struct life {
    bytes size = 0;                ///< as placed
    std::uint64_t birth = 0;       ///< it exists from before this operation on
    std::uint64_t death = never;   ///< and until before this one; not after its birth: for none
    std::uint64_t used = 0;        ///< the operation behind its last access; 0: none
    std::uint64_t copied = never;  ///< the operation during which the host was first said to have a copy
    std::uint64_t born_in = 0;     ///< steps begun at its birth
  };
  struct use {
    std::uint64_t operation = 0;
    std::uint32_t id = 0;
    bool writes = false;
  };

  std::vector<life> all;                 ///< by id, so in order of birth
  std::vector<use> uses;                 ///< in order
  std::vector<swap::time> times;         ///< by operation
  std::vector<std::uint64_t> steps;      ///< by step: its first operation
  std::vector<std::uint32_t> transient;  ///< born and freed since the last operation's end

  explicit lives_in_operations(trace const& t) {
    all.reserve(t.allocations);
    for (event const& e : t.events) take(e, t);
  }

 private:
  void take(event const& e, trace const& t) {
    std::uint64_t const now = times.size();
    switch (e.kind) {
      case event_kind::allocate: all.push_back({.size = placed_size(e), .birth = now, .born_in = steps.size()}); break;
      case event_kind::deallocate: free(e.id); break;
      case event_kind::mark:
        if (t.labels[e.id] != step_label) break;
        // They were gone before the operation that the next step begins with.
        for (std::uint32_t const id : std::exchange(transient, {})) all[id].death = all[id].birth;
        steps.push_back(now);
        break;
      case event_kind::read:
      case event_kind::write:
        all[e.id].used = now + 1;
        uses.push_back({.operation = now, .id = e.id, .writes = e.kind == event_kind::write});
        break;
      case event_kind::operation:
        times.emplace_back(static_cast<swap::time::rep>(e.size));
        transient.clear();
        break;
      case event_kind::host_copy: all[e.id].copied = std::min(all[e.id].copied, now); break;
    }
  }

  void free(std::uint32_t id) {
    life& l = all[id];
    l.death = std::max<std::uint64_t>(times.size(), l.used);
    if (l.death != l.birth || l.born_in != steps.size()) return;
    transient.push_back(id);
    ++l.death;
  }
};

}  // namespace detail

/// One program a step: the k-th from the k-th "step" mark to the next, the last to the trace's end, which may be early.
/// Marks behind the last operation begin none. What comes before the first is in no program, but for the blocks that it
/// leaves. In a step:
///
/// - a variable is a block that lives during at least one of its operations, of the size as placed;
/// - `handed_on` is what is allocated within and is not freed before the next step's first operation;
/// - `carried` is what was allocated before the step's mark and is not freed before the next step's first operation;
///   what was allocated before and goes within has birth 0, what is allocated within and stays has the end as its
///   death;
/// - `has_copy` is what the host has a copy of from before its first access in the step, and the step doesn't write;
/// - an operation's accesses to a variable are one.
///
/// Precondition: `t` keeps the readers' rules (see parse_result.hpp), and a step has fewer than 2³² operations. Errors:
/// a trace without step marks, or without operations behind the first of them. Linear in the events and in the
/// variables of all steps. Throws only `std::bad_alloc`.
[[nodiscard]] inline step_programs programs_of(trace const& t) {
  using lives_in = detail::lives_in_operations;
  lives_in run(t);
  if (run.times.empty()) return {{}, "the trace has no operations: it was recorded without accesses"};
  if (run.steps.empty()) return {{}, "the trace has no marks \"step\""};
  std::uint64_t const total = run.times.size();
  while (!run.steps.empty() && run.steps.back() == total) run.steps.pop_back();
  if (run.steps.empty()) return {{}, "no operation follows the first mark \"step\""};

  step_programs made;
  std::vector<std::uint32_t> alive;                   // ids
  std::vector<std::uint32_t> number(run.all.size());  // of a variable in the step's program, by id
  std::uint32_t unborn = 0;
  std::size_t use = 0;
  for (std::size_t k = 0; k < run.steps.size(); ++k) {
    std::uint64_t const begin = run.steps[k];
    std::uint64_t const end = k + 1 < run.steps.size() ? run.steps[k + 1] : total;
    for (; unborn < run.all.size() && run.all[unborn].birth < end; ++unborn) alive.push_back(unborn);
    std::erase_if(alive, [&](std::uint32_t id) { return run.all[id].death <= std::max(begin, run.all[id].birth); });

    step_program& step = made.steps.emplace_back();
    swap::program& p = step.program;
    p.operations.assign(run.times.begin() + static_cast<std::ptrdiff_t>(begin),
                        run.times.begin() + static_cast<std::ptrdiff_t>(end));
    if (begin == end) continue;
    step.allocations = alive;
    for (std::uint32_t const id : alive) {
      lives_in::life const& l = run.all[id];
      number[id] = static_cast<std::uint32_t>(p.variables.size());
      p.variables.push_back({.size = l.size,
                             .birth = static_cast<std::uint32_t>(std::max(l.birth, begin) - begin),
                             .death = static_cast<std::uint32_t>(std::min(l.death, end) - begin),
                             .carried = l.born_in <= k && l.death > end,
                             .handed_on = l.born_in > k && l.death > end,
                             .has_copy = l.copied < end,
                             .accesses = {}});
    }
    while (use < run.uses.size() && run.uses[use].operation < begin) ++use;
    for (; use < run.uses.size() && run.uses[use].operation < end; ++use) {
      lives_in::use const& u = run.uses[use];
      swap::variable& v = p.variables[number[u.id]];
      auto const operation = static_cast<std::uint32_t>(u.operation - begin);
      if (v.accesses.empty() || v.accesses.back().operation != operation) {
        v.accesses.push_back({.operation = operation, .reads = false, .writes = false});
      }
      (u.writes ? v.accesses.back().writes : v.accesses.back().reads) = true;
      v.has_copy = v.has_copy && !u.writes && run.all[u.id].copied <= u.operation;
    }
  }
  return made;
}

/// Whether two steps do the same but for the times that their operations take: the same variables, in order of birth,
/// with the same accesses. Linear.
[[nodiscard]] inline bool alike(swap::program const& a, swap::program const& b) noexcept {
  auto const same_access = [](swap::access const& x, swap::access const& y) {
    return x.operation == y.operation && x.reads == y.reads && x.writes == y.writes;
  };
  return a.operations.size() == b.operations.size() &&
         std::ranges::equal(a.variables, b.variables, [&](swap::variable const& x, swap::variable const& y) {
           return x.size == y.size && x.birth == y.birth && x.death == y.death && x.carried == y.carried &&
                  x.handed_on == y.handed_on && x.has_copy == y.has_copy &&
                  std::ranges::equal(x.accesses, y.accesses, same_access);
         });
}

/// Equal for steps that are `alike`, and hardly ever for others: to find the step that comes most often. Linear.
[[nodiscard]] inline std::uint64_t fingerprint(swap::program const& p) noexcept {
  std::uint64_t hash = 0;
  auto const mix = [&hash](std::uint64_t n) {
    hash = (hash ^ n) * 0x9e3779b97f4a7c15;  // odd: one to one
    hash ^= hash >> 32;
  };
  mix(p.operations.size());
  for (swap::variable const& v : p.variables) {
    mix(v.size);
    mix(std::uint64_t{v.birth} << 32 | v.death);
    mix(v.accesses.size() << 3 | std::uint64_t{v.handed_on} << 2 | std::uint64_t{v.carried} << 1 |
        std::uint64_t{v.has_copy});
    for (swap::access const& a : v.accesses) {
      mix(std::uint64_t{a.operation} << 2 | std::uint64_t{a.reads} << 1 | std::uint64_t{a.writes});
    }
  }
  return hash;
}

}  // namespace gmlake::trace
