#pragma once
/// In what pieces copies let other work of their copy engine in between, which waits for all that is ready else:
/// others' copies, however small, and the mapping of memory (`copy_gate`). Each piece takes the link a little longer,
/// and the less often memory is mapped, the less it is worth that this waits for little: pieces are twice as large with
/// each copy that nothing has been mapped since, up to a size.

#include <algorithm>
#include <cstdint>

#include "gmlake/core/types.hpp"

namespace gmlake::swap {

class copy_pieces {
 public:
  static constexpr bytes smallest = 8_MiB, largest = 32_MiB;

  /// `closings`: how often the gate has been closed so far, which was long ago.
  explicit constexpr copy_pieces(std::uint64_t closings = 0) noexcept : closings_(closings) {}

  /// Those of the copy that is queued next, when the gate has been closed so often.
  [[nodiscard]] constexpr bytes next(std::uint64_t closings) noexcept {
    if (closings != closings_) next_ = smallest;
    closings_ = closings;
    bytes const now = next_;
    next_ = std::min(2 * now, largest);
    return now;
  }

 private:
  std::uint64_t closings_;
  bytes next_ = largest;
};

}  // namespace gmlake::swap
