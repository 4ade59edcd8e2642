#pragma once
/// Whether a program has had one request at a time for long: each freed before the next came. What is alone has nothing
/// to be placed beside, so there is nothing to plan, and its requests need not be watched.

#include <cstdint>

#include "gmlake/core/types.hpp"

namespace gmlake::plan {

class lull {
 public:
  /// So many requests on end: more than programs make that way on their way from one step to the next.
  static constexpr std::uint32_t long_enough = 4096;

  /// A request comes while so many bytes are live. Ends as soon as something requested meanwhile is.
  [[nodiscard]] bool lasts(bytes live) noexcept {
    if (live > before_) alone_ = 0;
    else if (alone_ < long_enough) ++alone_;
    before_ = live;
    return alone_ == long_enough;
  }

 private:
  bytes before_ = 0;
  std::uint32_t alone_ = 0;  ///< requests on end
};

}  // namespace gmlake::plan
