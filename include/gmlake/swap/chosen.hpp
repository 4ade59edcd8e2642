#pragma once
/// A choice, before it is a schedule: what leaves, and when its transfers are meant to begin.

#include <cstdint>

#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

/// Times count from the beginning of the step in which it leaves, and on over that step's end.
struct chosen {
  std::uint32_t absence = 0;  ///< its position in `setting::absences`
  time out{}, in{};
};

}  // namespace gmlake::swap
