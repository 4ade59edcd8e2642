#pragma once
/// Goes through a step under a schedule on a pool, without data, several times: allocates, vacates, refills and frees
/// as the simulation has it, to see what the pool reserves where the plan only adds up, and how many driver calls that
/// takes. Each moment comes when all before it are over, so nothing waits.
///
/// A pool reserves more than the plan's peak for three reasons: fragmentation; chunks, of which a block has whole ones;
/// and blocks too small for a chunk of their own, where what is beside them keeps the chunk.

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/swap/changes.hpp"
#include "gmlake/swap/own_mappings.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/schedule.hpp"

namespace gmlake::swap {

struct rehearsal_result {
  std::optional<gmlake::error> failed;  ///< the pool's, at which it ended
  change at{};                          ///< there
  std::uint32_t steps = 0;              ///< completed
  bytes reserved_peak = 0;              ///< by the pool, at its highest in all steps
  bytes reserved_after_first = 0;       ///< as the first step ended
  std::uint64_t moved = 0;              ///< blocks vacated and refilled
};

/// A pool of movable blocks, as `basic_pool` is.
template <class P>
concept RehearsalPool = Pool<P> && requires(P& p, request const& r, address a) {
  { p.allocate(r) } noexcept -> std::same_as<result<address>>;
  { p.vacate(a, vacating::leave) } noexcept -> std::same_as<result<void>>;
  { p.foresee(a, foresight{}) } noexcept -> std::same_as<result<void>>;
  { p.refill(a) } noexcept -> std::same_as<result<void>>;
};

struct rehearsal_options {
  bytes movable = 16_MiB;  ///< blocks of that size and more have mappings of their own (`own_mappings`), as what moves
  vacating way = vacating::leave;
  bool foresee = true;  ///< the pool is told when blocks come and go
};

/// One rehearsal. The pool has no other user; it holds what is carried until it is destroyed.
template <RehearsalPool P>
class rehearsal {
 public:
  /// Preconditions: as for `changes_of`, which made `all`.
  rehearsal(P& pool, program const& p, schedule const& s, std::vector<change> all, rehearsal_options o = {})
      : pool_(pool),
        program_(p),
        changes_(std::move(all)),
        options_(o),
        moves_(p.variables.size()),
        when_(p.variables.size()),
        blocks_(p.variables.size()) {
    for (move const& m : s.moves) moves_[m.away.variable] = true;
    std::vector<std::uint32_t> moments;
    for (move const& m : s.moves) moments.insert(moments.end(), {m.away.after, m.from});
    std::vector<bool> const mapped = own_mappings(p, moves_, std::move(moments), o.movable);
    for (std::size_t v = 0; v < moves_.size(); ++v) moves_[v] = moves_[v] || mapped[v];
    for (std::size_t i = 0; i < changes_.size(); ++i) when_[changes_[i].variable].push_back(i + 1);
  }

  /// May be called once. What returns during the first step before it has left leaves at the beginning.
  [[nodiscard]] rehearsal_result run(std::uint32_t steps = 3) {
    begin();
    for (; result_.steps < steps && !result_.failed; ++result_.steps) {
      for (change const& c : changes_) {
        ++now_;
        if (!act(c)) break;
      }
      if (result_.failed) break;
      if (result_.steps == 0) result_.reserved_after_first = pool_.stats().reserved.now;
    }
    result_.reserved_peak = pool_.stats().reserved.peak;
    return result_;
  }

 private:
  void begin() {
    std::vector<bool> const resident = resident_at_begin(program_, changes_);
    // One after the other, so that what is absent never needs room together.
    for (bool const stays : {false, true}) {
      for (std::uint32_t v = 0; v < program_.variables.size() && !result_.failed; ++v) {
        if (!program_.variables[v].carried || resident[v] != stays) continue;
        if (act({time::zero(), change_kind::born, v}) && !stays) (void)act({time::zero(), change_kind::left, v});
      }
    }
  }

  bool act(change const& c) {
    address& block = blocks_[c.variable];
    result<void> done;
    switch (c.kind) {
      case change_kind::born: {
        result<address> const made =
            pool_.allocate(request{.size = program_.variables[c.variable].size,
                                   .where = moves_[c.variable] ? placement::movable : placement::anywhere,
                                   .foreseen = foreseen(c.variable)});
        if (made) block = *made;
        else done = failure(made.error());
        break;
      }
      case change_kind::dead: done = pool_.deallocate(block); break;
      case change_kind::left:
        done = pool_.vacate(block, options_.way);
        ++result_.moved;
        break;
      case change_kind::returns:
        done = pool_.foresee(block, foreseen(c.variable));
        if (done) done = pool_.refill(block);
        break;
    }
    if (done) return true;
    result_.failed = done.error();
    result_.at = c;
    return false;
  }

  /// The variable's next two changes: steps repeat.
  [[nodiscard]] foresight foreseen(std::uint32_t v) const {
    std::vector<std::uint64_t> const& all = when_[v];
    if (!options_.foresee) return {};
    if (all.empty()) return {.now = now_};
    std::uint64_t const n = changes_.size(), step = now_ == 0 ? 0 : (now_ - 1) / n * n;
    auto const next = static_cast<std::size_t>(std::ranges::upper_bound(all, now_ - step) - all.begin());
    auto const at = [&](std::size_t i) { return step + i / all.size() * n + all[i % all.size()]; };
    return {.as = v + std::uint64_t{1}, .now = now_, .until = at(next), .again = at(next + 1)};
  }

  P& pool_;
  program const& program_;
  std::vector<change> changes_;
  rehearsal_options options_;
  std::vector<bool> moves_;
  std::vector<std::vector<std::uint64_t>> when_;  ///< by variable: its changes' numbers within the step
  std::uint64_t now_ = 0;                         ///< changes so far
  std::vector<address> blocks_;
  rehearsal_result result_;
};

}  // namespace gmlake::swap
