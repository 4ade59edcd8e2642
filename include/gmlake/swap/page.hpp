#pragma once
/// A swappable block as the pager knows it: who uses it now, when it was used last, and what the running step's log and
/// the plan in force call it.

#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

#include "gmlake/core/intrusive.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/swap/recomputation.hpp"
#include "gmlake/swap/tag.hpp"

namespace gmlake::swap {

/// Whether a block that is to be allocated may leave.
enum class may_leave : std::uint8_t {
  never,
  if_large,  ///< as large as the pager's options ask for
  always,    ///< if the pool can have it leave at all
};

struct page {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t by_serial = std::uint64_t{1} << 63;
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// What the pager has seen to; where the memory is at this moment, the pool knows.
  enum class place : std::uint8_t {
    here,    ///< there for whoever was told of it
    coming,  ///< memory is there, contents for streams that wait for them
    out,     ///< leaving or absent
  };

  address begin{};
  bytes size = 0;
  stream home{};             ///< that it was allocated for
  stream last{};             ///< of its last access
  stream recorded{};         ///< the last that the pool was told of beside `home`
  std::uint64_t serial = 0;  ///< in the order of birth, of all
  std::uint64_t as = 0;      ///< what the pool knows it by, as those in its place in other steps; or `by_serial`
  tag group{};               ///< in which the pool pauses it
  std::uint32_t job = 0;     ///< whose it is
  std::uint32_t users = 0;   ///< running operations that hold it
  std::uint32_t pins = 0;
  place where = place::here;
  bool read_only = false;
  bool planned = false;  ///< out: because a schedule says so
  bool listed = false;   ///< among those that may be sent away on demand
  /// Its uses are announced: an operation has named it, or it was made while nothing was paged. What none has named may
  /// be a library's own, used unseen: it stays.
  bool named = false;
  bool fixed = false;    ///< not swappable: it is too small, or the plan in force when it was made has it stay
  bool refused = false;  ///< it could not leave when it should have, in this step
  /// How its contents are made again, where they can be.
  std::unique_ptr<recomputation> recompute;
  bool discarded = false;         ///< its contents are to be made again before its next use
  std::thread::id recomputed_by;  ///< which does so now
  bool recomputes = false;        ///< allocated for making others again: not of the step

  // In its job's log.
  std::uint64_t step = 0;           ///< in which it was born
  std::uint32_t number = none;      ///< among those born in the running step
  std::uint32_t rank = none;        ///< among those left over from the step before
  std::uint64_t logged_in = never;  ///< the step in which it was logged last
  std::uint32_t variable = none;    ///< there

  // In the order of victims.
  std::uint32_t priority = 0;      ///< its job's
  std::uint64_t next_use = never;  ///< by schedule, in ticks; never: none known
  std::uint64_t last_use = 0;      ///< in ticks

  list_hook by_place;  ///< among those coming, or those out
  list_hook by_use;
  set_hook by_next_use;
  bool ranked = false;  ///< in the order of next uses
};

}  // namespace gmlake::swap
