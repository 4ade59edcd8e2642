#pragma once
/// What is known of a movable block that comes and goes again and again, as in a step that repeats. Advice only: it
/// decides which of the free chunks a mapping gets, so that they are free again whenever the block needs them, and the
/// mapping can stay as it is.

#include <cstdint>
#include <limits>

namespace gmlake {

/// Times are ticks of the caller's clock.
struct foresight {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  /// Blocks of one number follow one another on one mapping, and the chunks mapped there are left to them at the times
  /// at which they are wanted. 0: of no such block.
  std::uint64_t as = 0;
  std::uint64_t now = 0;
  std::uint64_t soon = never;   ///< memory that is free by then is not waited for long
  std::uint64_t until = never;  ///< when its memory will be free for others: it has left, or was freed
  bool dies = false;            ///< and its mapping too, as it is freed then
  std::uint64_t again = never;  ///< when its memory is wanted next after that
  bool at_once = false;         ///< what has to be waited for is taken for want of other memory only
  bool waits = false;           ///< unless that is so, for what is mapped, as driver calls for other memory cost more
};

}  // namespace gmlake
