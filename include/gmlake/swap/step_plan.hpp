#pragma once
/// A schedule in the form in which a pager carries it out: what leaves after which operation and what comes back from
/// which on, in order, and when each block is used next.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gmlake/swap/claims.hpp"
#include "gmlake/swap/own_mappings.hpp"
#include "gmlake/swap/pager_options.hpp"
#include "gmlake/swap/schedule.hpp"
#include "gmlake/swap/step_log.hpp"
#include "gmlake/swap/timing.hpp"

namespace gmlake::swap {

struct planned_out {
  std::uint32_t variable = 0;
  std::uint32_t after = 0;   ///< it leaves when this operation has ended
  std::uint32_t before = 0;  ///< and is accessed by this one next, or dies; counted on over the step's end
  std::uint32_t from = 0;    ///< its way back begins when all before this one have ended, or its like of the next step
                             ///< is born; counted on likewise
  std::uint32_t gone = 0;    ///< its memory is expected to be free when this one begins; counted on likewise
  bool discards = false;     ///< it is made again when it is accessed, and nothing is copied
};
struct planned_return {
  std::uint32_t variable = 0;
  std::int64_t from = 0;  ///< when all operations before this one have ended; negative: of the step before
  std::uint32_t due = 0;  ///< the operation that accesses it
};

/// When a block that has memory gives it to others, and when it wants memory next; operations counted on over the
/// step's end, `page::none`: never.
struct presence {
  std::uint32_t until = page::none;
  std::uint32_t again = page::none;
  bool dies = false;  ///< then; else it leaves, and its memory is free before that operation begins
};

/// What is carried out in one step.
struct planned_moves {
  std::vector<planned_out> outs;
  std::vector<planned_return> returns;
};

/// What plans that were made together are of.
struct plan_source {
  schedule moves;                           ///< of their steps, one after another
  std::vector<std::uint64_t> fingerprints;  ///< of these, in that order
};

class step_plan {
 public:
  /// Blocks too small to be movable have no mappings of their own. `in_turns`: with other jobs' steps. Throws
  /// `std::bad_alloc`. O(n log n).
  step_plan(step_program const& p, planned_moves moves, forecast const& expected, bool in_turns = false,
            std::shared_ptr<plan_source const> source = nullptr)
      : who_(p.who),
        prefixes_(p.prefixes),
        fingerprint_(p.fingerprint),
        counted_(p.counted),
        moves_(std::move(moves)),
        claims_(claims_of(p).beyond),
        in_turns_(in_turns),
        host_bound_(!p.program.launched.empty()),
        starts_(starts_of(p.program)),
        expected_(expected),
        source_(std::move(source)),
        away_(moves_.outs) {
    auto const n = static_cast<std::uint32_t>(p.program.operations.size());
    std::vector<bool> leaves(who_.size());
    std::vector<std::uint32_t> moments;
    for (planned_out const& o : moves_.outs) {
      leaves[o.variable] = true;
      moments.insert(moments.end(), {o.after, o.from % n});
    }
    std::ranges::sort(away_, {}, in_order);
    std::vector<bool> const mapped = own_mappings(p.program, leaves, std::move(moments), p.counted.smallest);
    for (std::uint32_t v = 0; v < who_.size(); ++v) {
      variable const& of = p.program.variables[v];
      lives_.push_back({of.carried ? page::none : of.birth, of.carried || of.death >= n ? page::none : of.death});
      first_use_.push_back(static_cast<std::uint32_t>(uses_.size()));
      for (access const& a : of.accesses) uses_.push_back(a.operation);
      again_.push_back(of.carried && !of.accesses.empty() ? of.accesses.front().operation + n : page::none);
      identity const& who = who_[v];
      if (who.is == identity::kind::elder) {
        elders_.emplace(who.serial, v);
        continue;
      }
      auto& all = who.is == identity::kind::born ? born_ : left_over_;
      if (who.number >= all.size()) all.resize(who.number + std::size_t{1}, page::none);
      all[who.number] = v;
      if (who.is != identity::kind::born) continue;
      if (who.number >= births_.size()) births_.resize(who.number + std::size_t{1});
      births_[who.number] = {of.size, !leaves[v] && of.death < n, mapped[v]};
    }
    first_use_.push_back(static_cast<std::uint32_t>(uses_.size()));
  }

  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] std::uint32_t operations() const noexcept { return static_cast<std::uint32_t>(prefixes_.size()); }
  /// Of all that a step does up to the end of operation i.
  [[nodiscard]] std::uint64_t prefix(std::uint32_t i) const noexcept { return prefixes_[i]; }
  [[nodiscard]] planned_moves const& moves() const noexcept { return moves_; }
  [[nodiscard]] identity const& who(std::uint32_t variable) const noexcept { return who_[variable]; }
  [[nodiscard]] forecast const& expected() const noexcept { return expected_; }
  /// What its moves are of, with those of the plans made together with it; null where contents are made again.
  [[nodiscard]] std::shared_ptr<plan_source const> const& source() const noexcept { return source_; }

  /// Whether it knows when the host launches operations, as that is what steps wait for. Then the host does not wait
  /// for a copy out, so that its block may come back to other memory: the block comes back later.
  [[nodiscard]] bool host_bound() const noexcept { return host_bound_; }
  /// Whether the job's steps wait for their turn.
  [[nodiscard]] bool takes_turns() const noexcept { return in_turns_; }
  /// What the rest of the step, from before operation i on, takes at its peak beyond what is there between steps.
  [[nodiscard]] bytes claim(std::uint32_t i) const noexcept { return i < claims_.size() ? claims_[i] : 0; }
  /// How many operations from i on run no longer than that together. Logarithmic.
  [[nodiscard]] std::uint32_t within(time t, std::uint32_t i) const noexcept {
    if (i >= operations()) return 0;
    auto const first = starts_.begin() + i;
    return static_cast<std::uint32_t>(std::ranges::upper_bound(first, starts_.end(), *first + t) - first) - 1;
  }

  /// Whether the step's block of that number and size is foreseen.
  [[nodiscard]] bool knows(std::uint32_t born, bytes size) const noexcept {
    return born < births_.size() && births_[born].size == counted_(size);
  }
  /// Whether one that is stays on the device for all its life, which ends in the step; and has no mapping of its own.
  [[nodiscard]] bool stays(std::uint32_t born) const noexcept { return births_[born].stays; }
  [[nodiscard]] bool shares_mapping(std::uint32_t born) const noexcept { return !births_[born].mapped; }
  [[nodiscard]] std::uint32_t variable_born(std::uint32_t born) const noexcept { return born_[born]; }

  /// Of a block that has memory when operation i begins. Logarithmic.
  [[nodiscard]] presence presence_of(std::uint32_t variable, std::uint32_t i) const noexcept {
    std::uint32_t const n = operations();
    if (planned_out const* const o = next_out(variable, i)) return {o->gone, o->from};
    if (lives_[variable].death != page::none) return {lives_[variable].death, lives_[variable].birth + n, true};
    if (planned_out const* const o = next_out(variable, 0)) return {n + o->gone, n + o->from};
    return {};
  }

  /// The first operation behind `i` that accesses the page, counted on over the step's end; none: `page::none`.
  /// Logarithmic in its accesses.
  [[nodiscard]] std::uint32_t next_use(page const& p, std::uint32_t i) const noexcept {
    std::uint32_t const v = variable_of(p);
    if (v == page::none) return page::none;
    auto const begin = uses_.begin() + first_use_[v];
    auto const end = uses_.begin() + first_use_[v + 1];
    auto const next = std::upper_bound(begin, end, i);
    return next != end ? *next : again_[v];
  }
  /// The same from the step's beginning on.
  [[nodiscard]] std::uint32_t first_use(page const& p) const noexcept {
    std::uint32_t const v = variable_of(p);
    return v != page::none && first_use_[v] != first_use_[v + 1] ? uses_[first_use_[v]] : page::none;
  }

 private:
  struct birth {
    bytes size = 0;
    bool stays = false;
    bool mapped = false;
  };
  struct life {
    std::uint32_t birth = 0, death = 0;  ///< none: in another step
  };
  static constexpr auto in_order = [](planned_out const& o) noexcept { return std::pair(o.variable, o.after); };

  /// When it leaves next, once operation i has begun; null: not in this step.
  [[nodiscard]] planned_out const* next_out(std::uint32_t variable, std::uint32_t i) const noexcept {
    auto const next = std::ranges::lower_bound(away_, std::pair(variable, i), {}, in_order);
    return next != away_.end() && next->variable == variable ? &*next : nullptr;
  }

  [[nodiscard]] std::uint32_t variable_of(page const& p) const noexcept {
    if (p.number != page::none) return p.number < born_.size() ? born_[p.number] : page::none;
    if (p.rank < left_over_.size() && left_over_[p.rank] != page::none) return left_over_[p.rank];
    auto const found = elders_.find(p.serial);
    return found != elders_.end() ? found->second : page::none;
  }

  std::vector<identity> who_;
  std::vector<std::uint64_t> prefixes_;
  std::uint64_t fingerprint_ = 0;
  block_counting counted_;
  planned_moves moves_;
  std::vector<bytes> claims_;  ///< by operation
  bool in_turns_, host_bound_;
  std::vector<time> starts_;  ///< of operations that nothing holds up, and their end
  forecast expected_;
  std::shared_ptr<plan_source const> source_;
  std::vector<std::uint32_t> first_use_, uses_, again_;  ///< by variable
  std::vector<std::uint32_t> born_, left_over_;          ///< variables by number
  std::vector<birth> births_;                            ///< by number of those born
  std::vector<life> lives_;                              ///< by variable
  std::vector<planned_out> away_;                        ///< by variable
  std::unordered_map<std::uint64_t, std::uint32_t> elders_;
};

}  // namespace gmlake::swap
