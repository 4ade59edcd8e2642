#pragma once
/// What a program is planned for, when that is not the machine that it was recorded on: another link to the host, and
/// operations that take longer or shorter. An H200 as measured, by default.

#include <cmath>

#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/program.hpp"

namespace gmlake::swap {

struct machine {
  swap::channel channel = {};
  double operation_time = 1;  ///< operations take so many times what was recorded; 0 or more, and finite
};

/// The program as it runs on `m`: times in whole nanoseconds, rounded to the nearest. Linear. Precondition: all of its
/// operations together take less than 2⁶³ ns there.
[[nodiscard]] inline program on(machine const& m, program p) {
  if (m.operation_time == 1) return p;
  for (time& t : p.operations) {
    t = time(std::llround(static_cast<double>(t.count()) * m.operation_time));
  }
  return p;
}

}  // namespace gmlake::swap
