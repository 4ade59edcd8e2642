#pragma once
/// In what pieces a copy out lets the mapping of memory in between (`copy_gate`). Each piece takes the link a little
/// longer, and the less often memory is mapped, the less that is worth: they are twice as large with each copy that
/// nothing has been mapped since, until copies don't wait for the gate any more.

#include <cstdint>

#include "gmlake/core/types.hpp"

namespace gmlake::swap {

class copy_pieces {
 public:
  static constexpr bytes smallest = 8_MiB;

  /// `closings`: how often the gate has been closed so far, which was long ago.
  explicit constexpr copy_pieces(std::uint64_t closings = 0) noexcept : closings_(closings) {}

  /// Those of the copy that is queued next, when the gate has been closed so often; 0: it is one that doesn't wait.
  [[nodiscard]] constexpr bytes next(std::uint64_t closings) noexcept {
    if (closings != closings_) {
      closings_ = closings;
      copies_since_ = 0;
    }
    return copies_since_ < most ? smallest << copies_since_++ : 0;
  }

 private:
  static constexpr unsigned most = 8;

  std::uint64_t closings_;
  unsigned copies_since_ = most;  ///< up to that many
};

}  // namespace gmlake::swap
