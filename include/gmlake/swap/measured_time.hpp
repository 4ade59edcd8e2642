#pragma once
/// How long an operation runs, as far as it is known: measured, or guessed where the device was waiting for the host
/// while the operation was launched, so that only a part of what it took can be told from that.

#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

struct measured_time {
  time is{-1};           ///< negative: unknown
  bool guessed = false;  ///< any time that was measured is better

  [[nodiscard]] constexpr bool known() const noexcept { return is >= time::zero(); }

  /// The average with a newer one, which has that weight; what was measured stands before what was guessed, and what is
  /// known before what is not.
  constexpr void average(measured_time newer, double weight) noexcept {
    if (!newer.known() || (known() && newer.guessed && !guessed)) return;
    if (!known() || (guessed && !newer.guessed)) *this = newer;
    else is += time(static_cast<time::rep>(static_cast<double>((newer.is - is).count()) * weight));
  }
};

}  // namespace gmlake::swap
