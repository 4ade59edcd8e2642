#pragma once
/// What a copier's transfers took, those that it has timed: the link as it is at work, where `calibrate` measures one
/// that is idle.

#include <concepts>
#include <cstdint>

#include "gmlake/swap/copier.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// Of one direction.
struct lane_load {
  std::uint32_t transfers = 0;
  bytes size = 0;  ///< of all of them
  time took{};     ///< by the device's clock; what they waited for before is not in it

  void add(bytes n, time t) noexcept {
    ++transfers;
    size += n;
    took += t;
  }
};

struct carried {
  lane_load out, in;
};

/// A copier that tells what its transfers took, as far as it has timed them: each once, when it is over.
template <class C>
concept TimingCopier = Copier<C> && requires(C& c) {
  { c.take_carried() } noexcept -> std::same_as<carried>;
};

}  // namespace gmlake::swap
