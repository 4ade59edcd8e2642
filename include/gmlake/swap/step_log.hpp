#pragma once
/// What a job does in its running step, noted as it happens, and the program that it makes when the step is over. Two
/// steps that do the same have equal fingerprints, wherever their blocks lie.
///
/// A block is known again in another step by its number among those born in it; by its number among those left over
/// from the step before that go in it; or by itself, where it stays. What was there before a step counts in the
/// fingerprint by its size only, so that blocks that are replaced each step make no difference.

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/swap/measured_time.hpp"
#include "gmlake/swap/page.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

struct identity {
  enum class kind : std::uint8_t { born, left_over, elder };
  kind is = kind::elder;
  std::uint32_t number = 0;  ///< born, left over: in that order
  std::uint64_t serial = 0;  ///< elder: which page
  address begin{};           ///< and where
  bool outlives = false;     ///< born: it is there when the step is over

  /// Whether a step finds the same block by both.
  [[nodiscard]] friend constexpr bool operator==(identity const& a, identity const& b) noexcept {
    return a.is == b.is && (a.is == kind::elder ? a.serial == b.serial : a.number == b.number);
  }
};

/// What blocks count for in schedules: movable ones take whole chunks, smaller ones share them.
struct block_counting {
  bytes smallest = 0;  ///< of movable blocks
  bytes chunk = 1;     ///< theirs

  [[nodiscard]] bytes operator()(bytes size) const noexcept {
    return size < smallest ? size : (size + chunk - 1) / chunk * chunk;
  }
};

struct step_program {
  swap::program program;
  std::vector<identity> who;            ///< by variable
  std::vector<std::uint64_t> prefixes;  ///< by operation: of all up to its end
  std::uint64_t fingerprint = 0;
  block_counting counted = {};
};

/// Holds at most so many accesses and births; a step with more is not logged. No call throws but `program`.
class step_log {
 public:
  explicit step_log(std::size_t most_events) noexcept : most_(most_events) {}

  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  [[nodiscard]] std::uint32_t operations() const noexcept { return operations_; }
  /// Blocks born in the step so far: the next one's number.
  [[nodiscard]] std::uint32_t births() const noexcept { return births_; }
  /// Whether all that the step has done is there.
  [[nodiscard]] bool complete() const noexcept { return !full_; }
  [[nodiscard]] std::uint64_t prefix() const noexcept { return prefix_; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return mixed(prefix_ ^ signature_, operations_); }
  /// By operation; unknown where nobody has told.
  [[nodiscard]] std::vector<measured_time> const& times() const noexcept { return times_; }
  /// By operation: what the host took to launch it.
  [[nodiscard]] std::vector<time> const& launches() const noexcept { return launches_; }

  /// A step is over, the next begins.
  void begin_step() noexcept {
    ++step_;
    for (page* const p : left_over_) {
      if (p != nullptr) p->rank = page::none;
    }
    left_over_.clear();
    std::swap(left_over_, born_);
    std::erase(left_over_, nullptr);
    for (std::uint32_t i = 0; i < left_over_.size(); ++i) {
      left_over_[i]->number = page::none;
      left_over_[i]->rank = i;
    }
    variables_.clear();
    uses_.clear();
    prefixes_.clear();
    times_.clear();
    launches_.clear();
    births_ = operations_ = 0;
    prefix_ = signature_ = 0;
    full_ = false;
  }

  void born(page& p) noexcept {
    p.step = step_;
    p.number = births_++;
    signature_ += mixed(birth, std::uint64_t{p.number} << 40 ^ p.size);
    note([&] {
      born_.push_back(&p);
      add(p, identity::kind::born, p.number, operations_);
    });
    if (full_) p.number = page::none;
  }

  void freed(page& p) noexcept {
    note([&] {
      if (p.logged_in != step_) add_older(p);
      variable& v = variables_[p.variable];
      v.death = std::max(operations_, v.used);
    });
    forget(p);
  }
  /// It is gone, or another log's from now on.
  void forget(page& p) noexcept {
    if (p.number < born_.size()) born_[p.number] = nullptr;
    if (p.rank < left_over_.size()) left_over_[p.rank] = nullptr;
    p.number = p.rank = page::none;
    p.logged_in = page::never;
  }

  /// By the operation that ends next. `recompute`: what making again what it found would have taken; none: it can't be.
  void accessed(page& p, bool reads, bool writes, time recompute = {}) noexcept {
    std::uint64_t const who = p.number != page::none ? p.number + std::uint64_t{1} : 0;
    signature_ += mixed(who << 2 | std::uint64_t{reads} << 1 | std::uint64_t{writes}, p.size);
    note([&] {
      if (p.logged_in != step_) add_older(p);
      variable& v = variables_[p.variable];
      v.used = operations_ + 1;
      v.read_only = p.read_only && !writes;
      v.pinned = v.pinned || p.pins > 0;
      v.recompute = std::max(v.recompute, recompute);
      uses_.push_back({operations_, p.variable & most_variables, reads, writes, recompute > time::zero()});
    });
  }

  /// `launch`: what the host took for it.
  void end_operation(time launch = {}) noexcept {
    prefix_ = mixed(prefix_, std::exchange(signature_, 0));
    note([&] {
      prefixes_.push_back(prefix_);
      times_.emplace_back();
      launches_.push_back(launch);
    });
    ++operations_;
  }

  void took(std::uint32_t operation, measured_time t) noexcept {
    if (operation < times_.size()) times_[operation] = t;
  }

  /// The page that is meant, if it lives; null else. An elder is looked for by the caller.
  [[nodiscard]] page* find(identity const& who) const noexcept {
    auto const& all = who.is == identity::kind::born ? born_ : left_over_;
    return who.number < all.size() ? all[who.number] : nullptr;
  }

  /// Of the step so far, with times still to be set: all operations take none. Blocks not used in it are left out, but
  /// for those freed. Precondition: complete. Throws `std::bad_alloc`. Linear.
  [[nodiscard]] step_program program(block_counting const& counted) const {
    step_program made;
    made.counted = counted;
    made.prefixes = prefixes_;
    made.fingerprint = fingerprint();
    made.program.operations.assign(operations_, time::zero());
    std::vector<std::uint32_t> number(variables_.size(), page::none);
    std::vector<std::uint32_t> const going = numbers_of_going();
    std::vector<bool> const gone = gone_at_once();
    std::uint32_t left = 0;  // for the next step
    for (std::uint32_t i = 0; i < variables_.size(); ++i) {
      variable const& v = variables_[i];
      swap::variable made_of = shaped(v, counted);
      if (v.is == identity::kind::born && v.death == alive) {
        made_of.handed_on = left >= gone.size() || !gone[left];
        ++left;
      }
      if (made_of.birth >= made_of.death) continue;
      number[i] = static_cast<std::uint32_t>(made.program.variables.size());
      made.program.variables.push_back(std::move(made_of));
      bool const stays = v.is == identity::kind::left_over && v.death == alive;
      bool const outlives = v.is == identity::kind::born && v.death == alive;
      made.who.push_back({stays ? identity::kind::elder : v.is, going[i], v.serial, v.begin, outlives});
    }
    for (use const& u : uses_) {
      variable const& of = variables_[u.variable];
      if (number[u.variable] == page::none || !moves(of)) continue;
      swap::variable& made_of = made.program.variables[number[u.variable]];
      auto& accesses = made_of.accesses;
      if (accesses.empty() || accesses.back().operation != u.operation) {
        accesses.push_back({u.operation, false, false, u.recomputable});
      }
      accesses.back().reads = accesses.back().reads || u.reads;
      accesses.back().writes = accesses.back().writes || u.writes;
      made_of.has_copy = made_of.has_copy && !accesses.back().writes;
    }
    return made;
  }

 private:
  static constexpr std::uint32_t alive = page::none;
  static constexpr std::uint32_t most_variables = (std::uint32_t{1} << 29) - 1;
  static constexpr std::uint64_t birth = 0x8000'0000'0000'0000;

  struct variable {
    std::uint64_t serial = 0;
    address begin{};
    bytes size = 0;
    std::uint32_t birth = 0, death = alive;
    std::uint32_t used = 0;  ///< the operation behind its last access
    std::uint32_t number = 0;
    identity::kind is = identity::kind::elder;
    bool read_only = false, pinned = false;
    time recompute{};
  };
  struct use {
    std::uint32_t operation = 0;
    std::uint32_t variable : 29 = 0;
    bool reads : 1 = false, writes : 1 = false, recomputable : 1 = false;
  };

  [[nodiscard]] static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t z = (a + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 ^ b;
    z = (z ^ (z >> 31)) * 0x94d049bb133111eb;
    return z ^ (z >> 29);
  }

  template <std::invocable F>
  void note(F&& f) noexcept {
    if (full_) return;
    try {
      if (uses_.size() + variables_.size() < most_ && times_.size() < most_) {
        std::forward<F>(f)();
        return;
      }
    } catch (std::bad_alloc const&) {
    }
    full_ = true;
    for (page* const p : born_) {
      if (p != nullptr) p->number = page::none;
    }
    born_ = {};
    variables_ = {};
    uses_ = {};
    prefixes_ = {};
    times_ = {};
    launches_ = {};
  }

  void add(page& p, identity::kind is, std::uint32_t number, std::uint32_t born) {
    auto const i = static_cast<std::uint32_t>(variables_.size());
    variables_.push_back(
        {.serial = p.serial, .begin = p.begin, .size = p.size, .birth = born, .number = number, .is = is});
    p.variable = i;
    p.logged_in = step_;
  }
  void add_older(page& p) {
    bool const left = p.rank != page::none;
    add(p, left ? identity::kind::left_over : identity::kind::elder, left ? p.rank : 0, 0);
  }

  /// What goes in this step and was not left over by the last has no like in the next one: it only takes room.
  [[nodiscard]] static bool moves(variable const& v) noexcept {
    return !v.pinned && (v.is != identity::kind::elder || v.death == alive);
  }

  [[nodiscard]] swap::variable shaped(variable const& v, block_counting const& counted) const {
    swap::variable made{.size = counted(v.size), .birth = v.birth, .death = std::min(v.death, operations_)};
    made.carried = v.is != identity::kind::born && v.death == alive;
    made.has_copy = made.carried && v.read_only;
    made.recompute = v.recompute;
    if (v.death == v.birth && v.birth < operations_ && v.is == identity::kind::born) ++made.death;
    return made;
  }

  /// By rank, of those left over by the step before: whether it went before the first operation. As much is expected of
  /// those that this one leaves.
  [[nodiscard]] std::vector<bool> gone_at_once() const {
    std::vector<bool> gone;
    for (variable const& v : variables_) {
      if (v.is != identity::kind::left_over || v.death != 0) continue;
      if (v.number >= gone.size()) gone.resize(v.number + std::size_t{1});
      gone[v.number] = true;
    }
    return gone;
  }

  /// By variable: those left over that go are numbered among themselves, since the next step begins with no others.
  [[nodiscard]] std::vector<std::uint32_t> numbers_of_going() const {
    std::vector<std::uint32_t> number(variables_.size());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> going;  // rank, variable
    for (std::uint32_t i = 0; i < variables_.size(); ++i) {
      variable const& v = variables_[i];
      number[i] = v.number;
      if (v.is == identity::kind::left_over && v.death != alive) going.emplace_back(v.number, i);
    }
    std::ranges::sort(going);
    for (std::uint32_t k = 0; k < going.size(); ++k) number[going[k].second] = k;
    return number;
  }

  std::size_t most_;
  std::uint64_t step_ = 0;
  std::uint32_t operations_ = 0, births_ = 0;
  std::uint64_t prefix_ = 0, signature_ = 0;
  bool full_ = false;
  std::vector<page*> born_, left_over_;
  std::vector<variable> variables_;
  std::vector<use> uses_;
  std::vector<std::uint64_t> prefixes_;
  std::vector<measured_time> times_;
  std::vector<time> launches_;
};

}  // namespace gmlake::swap
